"""The GKE cluster that slices live on, its system pool and the identity of its nodes.

Owns the control plane, its access and its kubeconfig. The GKE slice controller, the add-on that forms slices, is
switched on here; the user-space controller that asks for slices belongs to `Orchestration`.
Refuses the default node pool (it runs with the default service account) and nodes in an AI zone, where only
accelerator hosts are at home.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pulumi
import pulumi_gcp as gcp

from components import node_pools, readiness
from components.kubeconfig import kubeconfig
from facts import names, networks, versions

# What a node needs to be one: write logs and metrics, read the autoscaler's metrics. The codelab's default account
# holds project editor.
NODE_ROLE = "roles/container.defaultNodeServiceAccount"
# Small and in every region.
DEFAULT_POOL_MACHINE_TYPE = "e2-standard-2"
CLUSTER_TIMEOUTS = pulumi.CustomTimeouts(create="60m", update="120m", delete="60m")


@dataclass(frozen=True, kw_only=True)
class SystemPoolArgs:
    """The CPU nodes that run the controllers."""

    machine_type: str
    node_count: int
    """Nodes in each zone."""
    zones: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MaintenanceExclusionArgs:
    """A time in which GKE upgrades nothing by itself."""

    name: str
    start: datetime
    end: datetime
    scope: str


@dataclass(frozen=True, kw_only=True)
class SliceClusterArgs:
    """What `SliceCluster` is told."""

    project: str
    region: str
    cluster_name: str
    version: str
    """One exact GKE version; nodes follow the control plane."""
    system_pool: SystemPoolArgs
    slice_controller: bool
    """True when the cluster has pools whose slices are formed on demand."""
    private_nodes: bool
    control_plane_access: str | tuple[str, ...]
    """`dns`, `public`, or the ranges that may reach the control plane's address."""
    maintenance_exclusion: MaintenanceExclusionArgs | None
    deletion_protection: bool
    """True: GKE's own side refuses to delete the cluster."""
    protect: bool
    """True: the engine refuses to delete or replace it, and with it every pool."""
    network: pulumi.Input[str]
    subnet: pulumi.Input[str]
    pod_range: pulumi.Input[str | None]
    service_range: pulumi.Input[str | None]


class SliceCluster(pulumi.ComponentResource):
    """A regional GKE Standard cluster with a system pool, ready for TPU pools."""

    control_plane: pulumi.Resource
    """The cluster itself, without its system pool, for what has to go before it."""
    cluster_name: pulumi.Output[str]
    """Name of the cluster; pools depend on it."""
    node_service_account: pulumi.Output[str]
    """E-mail of the account that all nodes run as; available once its role is granted."""
    kubeconfig: pulumi.Output[str]
    """Secret YAML; holds no token."""
    identity: pulumi.Output[str]
    """What no other cluster has had, nor this one under another address: GKE's DNS name, which it gives to each."""

    def __init__(self, name: str, args: SliceClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-slices:index:SliceCluster", name, {}, opts)

        account = gcp.serviceaccount.Account(
            f"{name}-node-account",
            project=args.project,
            account_id=names.service_account_id(args.cluster_name, "nodes"),
            display_name=f"Nodes of {args.cluster_name}",
            opts=pulumi.ResourceOptions(
                parent=self, hooks=readiness.ask_until(f"{name}-iam-api", readiness.ENABLED_API)
            ),
        )
        node_role = gcp.projects.IAMMember(
            f"{name}-node-role",
            project=args.project,
            role=NODE_ROLE,
            member=account.member,
            opts=pulumi.ResourceOptions(
                parent=self, hooks=readiness.ask_until(f"{name}-projects-api", readiness.ENABLED_API)
            ),
        )
        # A node without its role comes up and then reports nothing: whoever takes the account takes the role too.
        self.node_service_account = pulumi.Output.all(account.email, node_role.id).apply(
            lambda both: str(both[0])
        )

        cluster = gcp.container.Cluster(
            f"{name}-cluster",
            _cluster(args, self.node_service_account),
            opts=pulumi.ResourceOptions(
                parent=self,
                delete_before_replace=True,
                protect=args.protect,
                # GKE reports the first pool's configuration here once the default pool is gone.
                ignore_changes=["nodeConfig"],
                custom_timeouts=CLUSTER_TIMEOUTS,
                hooks=readiness.ask_until(f"{name}-container-api", readiness.ENABLED_API),
            ),
        )
        gcp.container.NodePool(
            f"{name}-system-pool",
            project=args.project,
            cluster=cluster.name,
            location=args.region,
            name=names.SYSTEM_POOL,
            node_locations=list(args.system_pool.zones),
            node_count=args.system_pool.node_count,
            node_config=node_pools.node_config(args.system_pool.machine_type, self.node_service_account),
            management=node_pools.management(),
            upgrade_settings=gcp.container.NodePoolUpgradeSettingsArgs(
                strategy="SURGE", max_surge=1, max_unavailable=0
            ),
            opts=pulumi.ResourceOptions(
                parent=self, delete_before_replace=True, custom_timeouts=node_pools.POOL_TIMEOUTS
            ),
        )

        self.control_plane = cluster
        self.cluster_name = cluster.name
        self.kubeconfig = pulumi.Output.secret(_kubeconfig(cluster, args))
        self.identity = cluster.control_plane_endpoints_config.apply(_dns_endpoint)
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "node_service_account": self.node_service_account,
                "kubeconfig": self.kubeconfig,
                "identity": self.identity,
            }
        )


def _cluster(args: SliceClusterArgs, service_account: pulumi.Input[str]) -> gcp.container.ClusterArgs:
    access = args.control_plane_access
    return gcp.container.ClusterArgs(
        project=args.project,
        name=args.cluster_name,
        location=args.region,
        node_locations=list(args.system_pool.zones),
        network=args.network,
        subnetwork=args.subnet,
        networking_mode="VPC_NATIVE",
        ip_allocation_policy=gcp.container.ClusterIpAllocationPolicyArgs(
            cluster_secondary_range_name=args.pod_range, services_secondary_range_name=args.service_range
        ),
        release_channel=gcp.container.ClusterReleaseChannelArgs(channel=versions.GKE_RELEASE_CHANNEL),
        min_master_version=args.version,
        datapath_provider="ADVANCED_DATAPATH",
        gateway_api_config=gcp.container.ClusterGatewayApiConfigArgs(channel="CHANNEL_STANDARD"),
        monitoring_config=gcp.container.ClusterMonitoringConfigArgs(
            managed_prometheus=gcp.container.ClusterMonitoringConfigManagedPrometheusArgs(enabled=True),
            advanced_datapath_observability_config=(
                gcp.container.ClusterMonitoringConfigAdvancedDatapathObservabilityConfigArgs(
                    enable_metrics=True, enable_relay=False
                )
            ),
        ),
        workload_identity_config=gcp.container.ClusterWorkloadIdentityConfigArgs(
            workload_pool=f"{args.project}.svc.id.goog"
        ),
        addons_config=gcp.container.ClusterAddonsConfigArgs(
            http_load_balancing=gcp.container.ClusterAddonsConfigHttpLoadBalancingArgs(disabled=False),
            horizontal_pod_autoscaling=gcp.container.ClusterAddonsConfigHorizontalPodAutoscalingArgs(
                disabled=False
            ),
            gcp_filestore_csi_driver_config=gcp.container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs(
                enabled=True
            ),
            gcs_fuse_csi_driver_config=gcp.container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(
                enabled=True
            ),
            dns_cache_config=gcp.container.ClusterAddonsConfigDnsCacheConfigArgs(enabled=True),
            slice_controller_config=gcp.container.ClusterAddonsConfigSliceControllerConfigArgs(
                enabled=args.slice_controller
            ),
        ),
        enable_shielded_nodes=True,
        deletion_protection=args.deletion_protection,
        private_cluster_config=gcp.container.ClusterPrivateClusterConfigArgs(
            enable_private_nodes=args.private_nodes, enable_private_endpoint=_is_private(access)
        ),
        # By name, IAM decides who enters, from anywhere; then no address answers at all.
        control_plane_endpoints_config=gcp.container.ClusterControlPlaneEndpointsConfigArgs(
            dns_endpoint_config=gcp.container.ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(
                allow_external_traffic=access == "dns"
            ),
            ip_endpoints_config=gcp.container.ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs(
                enabled=access != "dns"
            ),
        ),
        master_authorized_networks_config=_authorized_networks(access),
        maintenance_policy=_maintenance(args.maintenance_exclusion),
        # The default pool exists for a minute and is removed; until then it is as harmless as any other.
        initial_node_count=1,
        remove_default_node_pool=True,
        node_config=gcp.container.ClusterNodeConfigArgs(
            machine_type=DEFAULT_POOL_MACHINE_TYPE,
            image_type=node_pools.IMAGE_TYPE,
            service_account=service_account,
            oauth_scopes=node_pools.NODE_SCOPES,
            workload_metadata_config=gcp.container.ClusterNodeConfigWorkloadMetadataConfigArgs(
                mode="GKE_METADATA"
            ),
            shielded_instance_config=gcp.container.ClusterNodeConfigShieldedInstanceConfigArgs(
                enable_secure_boot=True, enable_integrity_monitoring=True
            ),
        ),
    )


def _is_private(access: str | tuple[str, ...]) -> bool:
    """True when every range that may reach the control plane is private: then it needs no public address."""
    return isinstance(access, tuple) and all(networks.is_private(cidr) for cidr in access)


def _authorized_networks(
    access: str | tuple[str, ...],
) -> gcp.container.ClusterMasterAuthorizedNetworksConfigArgs | None:
    if isinstance(access, str):
        return None
    return gcp.container.ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=[
            gcp.container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=cidr)
            for cidr in access
        ]
    )


def _maintenance(
    exclusion: MaintenanceExclusionArgs | None,
) -> gcp.container.ClusterMaintenancePolicyArgs | None:
    if exclusion is None:
        return None
    return gcp.container.ClusterMaintenancePolicyArgs(
        # The provider takes an exclusion only together with a window; the hour is of no other use.
        daily_maintenance_window=gcp.container.ClusterMaintenancePolicyDailyMaintenanceWindowArgs(
            start_time="03:00"
        ),
        maintenance_exclusions=[
            gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
                exclusion_name=exclusion.name,
                start_time=_instant(exclusion.start),
                end_time=_instant(exclusion.end),
                exclusion_options=(
                    gcp.container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
                        scope=exclusion.scope
                    )
                ),
            )
        ],
    )


def _instant(moment: datetime) -> str:
    """RFC 3339 in UTC, as the API gives it back."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _kubeconfig(cluster: gcp.container.Cluster, args: SliceClusterArgs) -> pulumi.Output[str]:
    """Server and authority of the endpoint that was chosen."""
    access = args.control_plane_access
    if access == "dns":
        endpoint: pulumi.Output[Any] = cluster.control_plane_endpoints_config.apply(_dns_endpoint)
        return pulumi.Output.all(cluster.name, endpoint).apply(
            lambda both: kubeconfig(both[0], both[1], None)
        )
    private = cluster.private_cluster_config.apply(lambda config: str(config.private_endpoint))
    authority = cluster.master_auth.apply(lambda auth: auth.cluster_ca_certificate)
    address = private if _is_private(access) else cluster.endpoint
    return pulumi.Output.all(cluster.name, address, authority).apply(
        lambda all_three: kubeconfig(all_three[0], all_three[1], all_three[2])
    )


def _dns_endpoint(config: Any) -> str:
    return str(config.dns_endpoint_config.endpoint)
