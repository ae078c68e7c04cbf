"""GKE node pools: system pools, tpu7x cubes from a reservation, static v6e slices.

Owns which hosts a pool has and hands them to the cluster side; what Google refuses is `node_pool_rules`. A failed
instance group leaves the pool behind in state ERROR, as in the cloud, and is tried again at the next update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.container import NodePool, NodePoolArgs

from facts import names, tpu
from simulator.cloud import gke_versions, node_hosts, reservations
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, OperationFailed, Refusal
from simulator.cloud.identifiers import now, opaque
from simulator.cloud.inventory import Record
from simulator.cloud.kinds import node_pool_rules as rules
from simulator.cloud.kinds.base import COMPUTE_ADDRESS, CONTAINER_ADDRESS, Kind, Place, ProviderDefaults
from simulator.cloud.kinds.clusters import (
    CLUSTER,
    MAX_PODS_PER_NODE,
    cluster_id,
    node_zones,
    refuse_active_slices,
)
from simulator.cloud.kinds.workload_policies import NODE_POOL
from simulator.cloud.machine_types import machine_type
from simulator.cloud.sdk_schema import Problem, ResourceSchema


class NodePoolKind(Kind):
    """`gcp.container.NodePool`."""

    token = NODE_POOL
    schema = ResourceSchema(NodePool, NodePoolArgs)
    api = "container.googleapis.com"
    noun = "NodePool"
    name_pattern = rf"^[a-z]([-a-z0-9]{{0,{names.NODE_POOL_NAME_LENGTH - 2}}}[a-z0-9])?$"
    keeps_failed = True
    # GKE API and provider defaults (Terraform google-beta, read 2026-12-01).
    defaults = MappingProxyType(
        {
            "deletionPolicy": "DELETE",
            "management": {"autoRepair": True, "autoUpgrade": True},
            "maxPodsPerNode": MAX_PODS_PER_NODE,
            "namePrefix": "",
            "operation": "",
            "upgradeSettings": {"maxSurge": 1, "maxUnavailable": 0, "strategy": "SURGE"},
        }
    )

    def fill(self, inputs: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
        filled = super().fill(inputs, defaults)
        cluster = filled.get("cluster")
        parts = cluster.split("/") if isinstance(cluster, str) else []
        # A pool may name its cluster by the whole id, which then says where it is.
        if filled.get("location") is None:
            filled["location"] = parts[3] if len(parts) == 6 else defaults.zone or defaults.region
        return filled

    def place(self, inputs: Mapping[str, Any]) -> Place:
        project, location, name = inputs["project"], inputs["location"], inputs["name"]
        return Place(
            f"{cluster_id(project, location, inputs['cluster'])}/nodePools/{name}", project, name, location
        )

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        if inputs.get("namePrefix"):
            yield Problem("namePrefix", "is not simulated by this region: give the pool a name")
        strategy = (inputs.get("upgradeSettings") or {}).get("strategy", "SURGE")
        if strategy != "SURGE":
            yield Problem("upgradeSettings.strategy", "other than SURGE is not simulated by this region")

    def refuse_conflict(self, place: Place) -> Refusal:
        # Wording: the provider, which looks before it asks.
        return Refusal(f"resource - {place.id} - already exists")

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        cluster = self._cluster(cloud, inputs)
        zones = _zones(cloud, cluster, inputs)
        rules.refuse_request(cloud, place.name, inputs, zones)
        version = gke_versions.require_node_version(
            cloud.region, inputs.get("version"), cluster.computed["version"]
        )
        computed: dict[str, Any] = {"uid": opaque(place.id, now()), "version": version}
        value = rules.reservation_value(inputs)
        if value is not None and rules.fate(cloud, inputs) is None:
            request = reservations.Request(
                place.project,
                place.name,
                zones[0],
                inputs["nodeConfig"]["machineType"],
                rules.host_count(inputs),
            )
            placement = reservations.place(cloud, value, request).to_json()
            reservation, _sub_block = reservations.find(cloud, placement)
            rules.refuse_maintenance_interval(inputs, reservation.maintenance_interval)
            computed["placement"] = placement
        return computed

    def _cluster(self, cloud: Cloud, inputs: Mapping[str, Any]) -> Record:
        path = cluster_id(inputs["project"], inputs["location"], inputs["cluster"])
        cluster = cloud.inventory.get(path, CLUSTER)
        if cluster is None:
            # Wording: GKE API, as users quote it.
            raise GoogleRefusal(f"Not found: {path}.", 404, "notFound")
        if cluster.state not in ("READY", "UPDATING"):
            # Wording: GKE API, as users quote it.
            raise GoogleRefusal(
                f"Cluster is not running: {path} is in state {cluster.state}.", 400, "failedPrecondition"
            )
        return cluster

    async def provision(self, cloud: Cloud, record: Record) -> None:
        failure = rules.fate(cloud, record.inputs)
        if failure is not None:
            raise OperationFailed(failure, leaves_resource=True)
        if record.computed.get("placement") is None:
            zones = _zones(cloud, self._cluster(cloud, record.inputs), record.inputs)
            record.computed["placement"] = _placement(cloud, record.name, record.inputs, zones)
        await self._hand_over(cloud, record)

    async def apply_update(self, cloud: Cloud, record: Record, old_inputs: Mapping[str, Any]) -> None:
        if record.inputs.get("version") != old_inputs.get("version"):
            record.computed["version"] = record.inputs.get("version") or record.computed["version"]
        await self._hand_over(cloud, record)

    async def _hand_over(self, cloud: Cloud, record: Record) -> None:
        cluster = self._cluster(cloud, record.inputs)
        hosts = self._hosts(cloud, record, _zones(cloud, cluster, record.inputs))
        config = record.inputs.get("nodeConfig") or {}
        cloud.clusters.write_pool(
            cluster.name,
            record.name,
            {
                "name": record.name,
                "machineType": config.get("machineType", "e2-medium"),
                "zone": _zones(cloud, cluster, record.inputs)[0],
                "version": record.computed["version"],
                "labels": config.get("labels") or {},
                "taints": config.get("taints") or [],
                "hosts": hosts,
                "labelDelaySeconds": cloud.clock.scaled(cloud.region.knobs.label_delay_seconds),
            },
        )
        await cloud.clusters.ready_pool(cluster.name, record.name, len(hosts))

    def _hosts(self, cloud: Cloud, record: Record, zones: list[str]) -> list[dict[str, Any]]:
        inputs, shape = record.inputs, self._shape(cloud, record)
        if not shape.machine.is_tpu:
            return node_hosts.cpu_hosts(shape, zones, rules.host_count(inputs))
        placement = record.computed.get("placement")
        if shape.machine.name == rules.TPU7X_MACHINE:
            assert placement is not None
            _reservation, sub_block = reservations.find(cloud, placement)
            assert sub_block is not None
            return node_hosts.tpu7x_hosts(shape, zones[0], placement, sub_block)
        topology = rules.topology_of(cloud, inputs) or tpu.SINGLE_HOST_TOPOLOGIES[-1]
        return node_hosts.v6e_hosts(shape, zones[0], rules.host_count(inputs), topology)

    def _shape(self, cloud: Cloud, record: Record) -> node_hosts.PoolShape:
        config = record.inputs.get("nodeConfig") or {}
        machine = machine_type(config.get("machineType", "e2-medium"))
        assert machine is not None
        return node_hosts.PoolShape(
            project_number=cloud.project(record.inputs["project"]).number,
            cluster=record.inputs["cluster"].rsplit("/", 1)[-1],
            pool=record.name,
            uid=record.computed["uid"],
            region=cloud.region.region,
            machine=machine,
            max_pods=int(record.inputs.get("maxPodsPerNode") or MAX_PODS_PER_NODE),
            node_config=config,
        )

    def refuse_update(self, cloud: Cloud, record: Record, inputs: Mapping[str, Any]) -> None:
        cluster = self._cluster(cloud, inputs)
        rules.refuse_request(cloud, record.name, inputs, _zones(cloud, cluster, inputs))
        gke_versions.require_node_version(cloud.region, inputs.get("version"), cluster.computed["version"])
        failure = rules.fate(cloud, inputs)
        old, new = (item.get("nodeConfig") or {} for item in (record.inputs, inputs))
        if failure is not None and record.state != "ERROR":
            raise rules.bad_request(failure)
        if record.computed.get("placement") and old.get("machineType") != new.get("machineType"):
            # assumed: hosts of a reservation are of the reservation's machine type.
            raise rules.bad_request(
                "The machine type of a node pool on a specific reservation cannot be changed."
            )

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        refuse_active_slices(cloud, record.inputs["cluster"].rsplit("/", 1)[-1], record.name)

    async def release(self, cloud: Cloud, record: Record) -> None:
        await cloud.clusters.delete_pool(record.inputs["cluster"].rsplit("/", 1)[-1], record.name)

    def outputs(self, cloud: Cloud, record: Record) -> dict[str, Any]:
        inputs = record.inputs
        cluster = cloud.inventory.get(
            cluster_id(inputs["project"], inputs["location"], inputs["cluster"]), CLUSTER
        )
        zones = (
            _zones(cloud, cluster, inputs) if cluster is not None else list(inputs.get("nodeLocations") or [])
        )
        shape = self._shape(cloud, record)
        managers = [f"{COMPUTE_ADDRESS}{node_hosts.instance_group(shape, zone)}" for zone in zones]
        outputs = {
            **self.defaults,
            **inputs,
            "nodeLocations": zones,
            "nodeCount": rules.host_count(inputs),
            "initialNodeCount": inputs.get("initialNodeCount") or rules.host_count(inputs),
            "version": record.computed["version"],
            "instanceGroupUrls": managers,
            "managedInstanceGroupUrls": [url.replace("Managers", "s") for url in managers],
            "nodeConfig": _node_config(inputs.get("nodeConfig") or {}),
            "networkConfig": {"enablePrivateNodes": False, **(inputs.get("networkConfig") or {})},
        }
        topology = rules.topology_of(cloud, inputs)
        if inputs.get("placementPolicy") and topology is not None:
            # GKE stores the policy's topology in the pool (seen by vllm ci-infra #547).
            outputs["placementPolicy"] = {**inputs["placementPolicy"], "tpuTopology": topology}
        return outputs

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        path = resource_id.removeprefix(CONTAINER_ADDRESS)
        if path.startswith("projects/"):
            return path
        parts = path.split("/")
        left_out = [str(defaults.project), str(defaults.region)][: max(0, 4 - len(parts))]
        project, location, cluster, name = [*left_out, *parts][-4:]
        return f"{cluster_id(project, location, cluster)}/nodePools/{name}"


def _placement(cloud: Cloud, pool: str, inputs: Mapping[str, Any], zones: list[str]) -> dict[str, Any] | None:
    """Hosts of the reservation that the pool names, or None for a pool without one."""
    value = rules.reservation_value(inputs)
    if value is None:
        return None
    machine, count = inputs["nodeConfig"]["machineType"], rules.host_count(inputs)
    request = reservations.Request(inputs["project"], pool, zones[0], machine, count)
    placement = reservations.place(cloud, value, request).to_json()
    reservation, _sub_block = reservations.find(cloud, placement)
    rules.refuse_maintenance_interval(inputs, reservation.maintenance_interval)
    return placement


def _zones(cloud: Cloud, cluster: Record, inputs: Mapping[str, Any]) -> list[str]:
    return list(inputs.get("nodeLocations") or node_zones(cloud, cluster.inputs))


def _node_config(given: Mapping[str, Any]) -> dict[str, Any]:
    """What GKE fills in where the program gives nothing."""
    return {
        "machineType": "e2-medium",
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "imageType": "COS_CONTAINERD",
        "metadata": {"disable-legacy-endpoints": "true"},
        "oauthScopes": ["https://www.googleapis.com/auth/devstorage.read_only"],
        "serviceAccount": "default",
        "spot": False,
        **given,
    }
