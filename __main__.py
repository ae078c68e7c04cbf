"""The program: settings → providers → components → exports.

Owns nothing but the joining. What a stack deploys follows from the sections of its file. Refuses a section whose
component does not exist yet, rather than leave it out in silence.
"""

# Settings first: a wrong one is told before the provider packages, which take seconds, are imported.
# ruff: noqa: E402
import settings as stack_settings

settings = stack_settings.from_pulumi()

from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s

from components.multihost_node_pools import MultihostNodePools, MultihostNodePoolsArgs, MultihostPoolArgs
from components.network import ExistingNetworkArgs, Network, NetworkArgs
from components.orchestration import LocalQueueArgs, Orchestration, OrchestrationArgs, QueuesArgs
from components.project_services import ProjectServices, ProjectServicesArgs
from components.slice_cluster import MaintenanceExclusionArgs, SliceCluster, SliceClusterArgs, SystemPoolArgs
from components.slice_controller import SliceControllerArgs
from components.superslice_node_pools import CubeArgs, SupersliceNodePools, SupersliceNodePoolsArgs
from facts import locations
from livechecks import checking

unbuilt = {"pdServing": settings.pd_serving, "pathwaysServing": settings.pathways_serving}
if asked_for := [key for key, section in unbuilt.items() if section]:
    raise pulumi.RunError(
        f"`{'`, `'.join(asked_for)}` must not be given yet: the program has no component for it, and would deploy the "
        "rest without it. Remove the section."
    )
for caution in stack_settings.warnings(settings):
    pulumi.log.warn(caution)

project, region, zone, cluster = settings.project, settings.region, settings.zone, settings.cluster
google = gcp.Provider("google", project=project, region=region)
if settings.safety.live_checks:
    checking.check(settings, google)
on_google = pulumi.ResourceOptions(providers=[google])

services = ProjectServices(
    "services", ProjectServicesArgs(project=project, sees_ai_zones=settings.is_ai_zone), opts=on_google
)
# What is enabled carries no output that the others could take: APIs and the view of AI zones.
after_services = pulumi.ResourceOptions(providers=[google], depends_on=[services])

existing = settings.network.existing
network = Network(
    "network",
    NetworkArgs(
        project=project,
        region=region,
        prefix=settings.network.name,
        mtu=settings.network.mtu,
        subnet_cidr=settings.network.subnet_cidr,
        proxy_cidr=settings.network.proxy_cidr,
        pod_cidr=settings.network.pod_cidr,
        service_cidr=settings.network.service_cidr,
        needs_nat=cluster.private_nodes,
        existing=ExistingNetworkArgs(**existing.model_dump()) if existing else None,
    ),
    opts=after_services,
)
access, exclusion = cluster.control_plane_access, cluster.maintenance_exclusion
slice_cluster = SliceCluster(
    "cluster",
    SliceClusterArgs(
        project=project,
        region=region,
        cluster_name=cluster.name,
        version=cluster.version,
        system_pool=SystemPoolArgs(
            machine_type=cluster.system_pool.machine_type,
            node_count=cluster.system_pool.node_count,
            zones=tuple(cluster.system_pool.zones or locations.default_system_zones(region)),
        ),
        slice_controller=bool(settings.slice_pools),
        private_nodes=cluster.private_nodes,
        control_plane_access=access if isinstance(access, str) else tuple(access),
        maintenance_exclusion=MaintenanceExclusionArgs(**exclusion.model_dump()) if exclusion else None,
        deletion_protection=cluster.deletion_protection,
        protect=settings.protects_cluster,
        network=network.network,
        subnet=network.subnet,
        pod_range=network.pod_range,
        service_range=network.service_range,
    ),
    # Firewall, NAT and proxy-only subnet: no output names them, yet nodes and load balancers need them to the last.
    opts=pulumi.ResourceOptions(providers=[google], depends_on=[network]),
)
on_cluster: dict[str, Any] = {
    "project": project,
    "region": region,
    "zone": zone,
    "cluster_name": slice_cluster.cluster_name,
    "node_service_account": slice_cluster.node_service_account,
}
pools: list[pulumi.Resource] = []
if settings.slice_pools:
    cubes = tuple(
        CubeArgs(
            pool_name=name,
            machine_type=pool.machine_type,
            reservation=value,
            host_maintenance=pool.host_maintenance,
            adopted=pool.adopted,
        )
        for pool in settings.slice_pools
        for name, value in pool.reservation_values(project).items()
    )
    slice_pools = SupersliceNodePools(
        "slice-pools",
        SupersliceNodePoolsArgs(
            **on_cluster,
            cubes=cubes,
            protect=settings.protects_reserved,
            cluster=slice_cluster.control_plane,
        ),
        opts=after_services,
    )
    pools.append(slice_pools)
if settings.multihost_pools:
    static = tuple(
        MultihostPoolArgs(
            pool_name=pool.name,
            machine_type=pool.machine_type,
            topology=pool.topology,
            host_count=pool.host_count,
            compact=pool.placement == "compact",
            spot=pool.spot,
            reservation=pool.reservation_value(project),
            protect=settings.protects_reserved if pool.reservation else cluster.deletion_protection,
        )
        for pool in settings.multihost_pools
    )
    pools.append(
        MultihostNodePools(
            "multihost-pools", MultihostNodePoolsArgs(**on_cluster, pools=static), opts=after_services
        )
    )

kubernetes = k8s.Provider(
    "kubernetes",
    kubeconfig=slice_cluster.kubeconfig,
    # Without it another address of the same cluster would replace every object, and with them every workload.
    cluster_identifier=slice_cluster.identity,
    # The API server composes its OpenAPI document anew after every definition, for longer than the default of 32 s
    # on a busy machine; a provider that missed it at its start calls the cluster unreachable for the whole run.
    kube_client_settings=k8s.KubeClientSettingsArgs(timeout=180),
    # The system pool: no controller starts before it, and on the way down every object goes before its nodes.
    opts=pulumi.ResourceOptions(depends_on=[slice_cluster]),
)
queues = settings.queues
orchestration = Orchestration(
    "orchestration",
    OrchestrationArgs(
        chart_source=settings.charts.source,
        queues=QueuesArgs(
            cube_count=settings.cube_count,
            cluster_queue=queues.cluster_queue,
            local_queues=tuple(LocalQueueArgs(**queue.model_dump()) for queue in queues.local_queues),
            priority_classes=queues.priority_classes,
            slice_controller=SliceControllerArgs(**settings.slice_controller.model_dump()),
            hosts=pools,
        )
        if settings.slice_pools
        else None,
    ),
    opts=pulumi.ResourceOptions(providers=[kubernetes]),
)

pulumi.export("project", project)
pulumi.export("region", region)
pulumi.export("zone", zone)
pulumi.export("clusterName", slice_cluster.cluster_name)
pulumi.export("kubeconfig", slice_cluster.kubeconfig)
pulumi.export("slicePools", slice_pools.pool_names if settings.slice_pools else [])
pulumi.export("chipCount", settings.chip_count)
pulumi.export("clusterQueue", orchestration.cluster_queue)
pulumi.export("namespaces", orchestration.namespaces)
