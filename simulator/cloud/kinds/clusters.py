"""GKE clusters: regional Standard clusters whose control plane the cluster side runs.

Owns what GKE checks of a cluster before it begins and what the real provider shows of one. Deleting a cluster deletes
its node pools, as GKE does, unless slices are active on them. Autopilot, inline node pools and ranges that GKE would
make by itself in a subnet are not simulated, and refused by name.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.container import Cluster, ClusterArgs

from facts import locations, names, versions
from facts.gke import GkeVersion
from simulator.cloud import gke_versions
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, ProviderRefusal, Refusal
from simulator.cloud.identifiers import opaque
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import (
    CONTAINER_ADDRESS,
    Kind,
    Place,
    ProviderDefaults,
    last_part,
    reference,
    require,
)
from simulator.cloud.kinds.cluster_outputs import cluster_outputs
from simulator.cloud.kinds.networks import NETWORK, SUBNETWORK, network_of
from simulator.cloud.kinds.workload_policies import NODE_POOL
from simulator.cloud.machine_types import machine_type
from simulator.cloud.node_hosts import PoolShape, cpu_hosts
from simulator.cloud.sdk_schema import Problem, ResourceSchema

CLUSTER = "gcp:container/cluster:Cluster"
DEFAULT_POOL = "default-pool"
DEFAULT_MACHINE_TYPE = "e2-medium"
MAX_PODS_PER_NODE = 110

_NOT_SIMULATED = ("enableAutopilot", "nodePools", "clusterIpv4Cidr", "enterpriseConfig", "fleet")


def cluster_id(project: str, location: str, cluster: str) -> str:
    """The id of a cluster from its name, or from any path that ends in it."""
    return f"projects/{project}/locations/{location}/clusters/{last_part(cluster)}"


def pools_of(cloud: Cloud, cluster: Record) -> list[Record]:
    """Node pools of a cluster."""
    return [pool for pool in cloud.inventory.of_type(NODE_POOL) if pool.id.startswith(f"{cluster.id}/")]


class ClusterKind(Kind):
    """`gcp.container.Cluster`."""

    token = CLUSTER
    schema = ResourceSchema(Cluster, ClusterArgs)
    api = "container.googleapis.com"
    noun = "Cluster"
    scope = ("project",)
    name_pattern = rf"^[a-z]([-a-z0-9]{{0,{names.CLUSTER_NAME_LENGTH - 2}}}[a-z0-9])?$"
    keeps_failed = True
    secret_outputs = (("masterAuth", "clientKey"),)
    defaults = MappingProxyType({"deletionProtection": True, "network": "default"})

    def fill(self, inputs: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
        filled = super().fill(inputs, defaults)
        filled.setdefault("location", defaults.zone or defaults.region)
        return filled

    def place(self, inputs: Mapping[str, Any]) -> Place:
        project, location, name = inputs["project"], inputs["location"], inputs["name"]
        return Place(cluster_id(project, location, name), project, name, location)

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        for name in _NOT_SIMULATED:
            if inputs.get(name):
                yield Problem(
                    name, "is not simulated by this region, which knows Standard clusters with own pools"
                )
        if not inputs.get("initialNodeCount"):
            yield Problem(
                "initialNodeCount", "must be at least 1: GKE makes a default pool, even to remove it at once"
            )
        if not isinstance(inputs.get("ipAllocationPolicy"), Mapping):
            yield Problem("ipAllocationPolicy", "must be given: this region knows VPC-native clusters only")

    def refuse_conflict(self, place: Place) -> Refusal:
        # Wording: GKE API, as users quote it.
        return GoogleRefusal(f"Already exists: {place.id}.", 409, "alreadyExists")

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if place.location != cloud.region.region:
            cloud.require_zones(place.project, [str(place.location)])
        zones = node_zones(cloud, inputs)
        cloud.require_zones(place.project, zones)
        refuse_cpu_in_ai_zone(
            zones, (inputs.get("nodeConfig") or {}).get("machineType", DEFAULT_MACHINE_TYPE)
        )
        subnet = _subnet_of(cloud, place, inputs)
        channel = (inputs.get("releaseChannel") or {}).get("channel")
        version = gke_versions.resolve(
            cloud.region, inputs.get("minMasterVersion"), None if channel == "UNSPECIFIED" else channel
        )
        _refuse_old_slice_controller(inputs, version)
        _refuse_past_exclusions(inputs)
        _refuse_same_name(cloud, place)
        ranges = _ranges_of(subnet, inputs["ipAllocationPolicy"])
        return {
            "uid": opaque(place.id, datetime.datetime.now(datetime.UTC).isoformat()),
            "version": version,
            **ranges,
        }

    async def provision(self, cloud: Cloud, record: Record) -> None:
        cloud.clusters.write_cluster(record.name, self._document(record))
        if not record.inputs.get("removeDefaultNodePool"):
            cloud.clusters.write_pool(record.name, DEFAULT_POOL, self._default_pool(cloud, record))
        record.computed["status"] = await cloud.clusters.running_cluster(record.name)

    def _document(self, record: Record) -> dict[str, Any]:
        inputs = record.inputs
        addons = inputs.get("addonsConfig") or {}
        return {
            "name": record.name,
            "project": inputs["project"],
            "location": inputs["location"],
            "version": record.computed["version"],
            "sliceController": is_slice_controller_on(inputs),
            "gatewayApi": (inputs.get("gatewayApiConfig") or {}).get("channel") == "CHANNEL_STANDARD",
            "workloadPool": (inputs.get("workloadIdentityConfig") or {}).get("workloadPool"),
            "httpLoadBalancing": not (addons.get("httpLoadBalancing") or {}).get("disabled", False),
            "network": last_part(inputs["network"]),
            "subnet": last_part(inputs["subnetwork"]),
            "podCidr": record.computed["podCidr"],
            "serviceCidr": record.computed["serviceCidr"],
        }

    def _default_pool(self, cloud: Cloud, record: Record) -> dict[str, Any]:
        config = record.inputs.get("nodeConfig") or {}
        machine = machine_type(config.get("machineType", DEFAULT_MACHINE_TYPE))
        assert machine is not None
        shape = PoolShape(
            project_number=cloud.project(record.inputs["project"]).number,
            cluster=record.name,
            pool=DEFAULT_POOL,
            uid=record.computed["uid"],
            region=cloud.region.region,
            machine=machine,
            max_pods=MAX_PODS_PER_NODE,
            node_config=config,
        )
        hosts = cpu_hosts(shape, node_zones(cloud, record.inputs), record.inputs["initialNodeCount"])
        return {"name": DEFAULT_POOL, "machineType": machine.name, "labels": {}, "taints": [], "hosts": hosts}

    def refuse_update(self, cloud: Cloud, record: Record, inputs: Mapping[str, Any]) -> None:
        asked = inputs.get("minMasterVersion")
        if asked != record.inputs.get("minMasterVersion"):
            channel = (inputs.get("releaseChannel") or {}).get("channel")
            gke_versions.resolve(cloud.region, asked, None if channel == "UNSPECIFIED" else channel)
        _refuse_past_exclusions(inputs)

    async def apply_update(self, cloud: Cloud, record: Record, old_inputs: Mapping[str, Any]) -> None:
        asked = record.inputs.get("minMasterVersion")
        if asked != old_inputs.get("minMasterVersion"):
            version = gke_versions.resolve(cloud.region, asked, None)
            # A control plane never goes back: the provider leaves a lower version alone.
            record.computed["version"] = max(record.computed["version"], version, key=GkeVersion.parse)
        cloud.clusters.write_cluster(record.name, self._document(record))
        record.computed["status"] = await cloud.clusters.running_cluster(record.name)

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        if record.inputs.get("deletionProtection", True):
            # Wording: the Terraform google provider, which keeps the protection itself.
            raise ProviderRefusal(
                "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with "
                "cluster deletion."
            )
        for pool in pools_of(cloud, record):
            refuse_active_slices(cloud, record.name, pool.name)

    async def release(self, cloud: Cloud, record: Record) -> None:
        for pool in pools_of(cloud, record):
            await cloud.clusters.delete_pool(record.name, pool.name)
            cloud.inventory.remove(pool)
        await cloud.clusters.delete_cluster(record.name)

    def outputs(self, cloud: Cloud, record: Record) -> dict[str, Any]:
        first_pool = next(iter(pools_of(cloud, record)), None)
        return cluster_outputs(record, node_zones(cloud, record.inputs), first_pool)

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        path = resource_id.removeprefix(CONTAINER_ADDRESS)
        if path.startswith("projects/"):
            return path
        parts = path.split("/")
        location, name = (parts[-2] if len(parts) > 1 else defaults.region), parts[-1]
        return cluster_id(parts[-3] if len(parts) > 2 else str(defaults.project), str(location), name)


def node_zones(cloud: Cloud, inputs: Mapping[str, Any]) -> list[str]:
    """Zones of a cluster's nodes: the ones asked for, else three ordinary zones of the region (GKE's choice)."""
    location = inputs.get("location")
    if inputs.get("nodeLocations"):
        return list(inputs["nodeLocations"])
    return cloud.region.ordinary_zones[:3] if location == cloud.region.region else [location]


def is_slice_controller_on(inputs: Mapping[str, Any]) -> bool:
    """True if the cluster has GKE's slice controller add-on."""
    return bool(((inputs.get("addonsConfig") or {}).get("sliceControllerConfig") or {}).get("enabled"))


def refuse_cpu_in_ai_zone(zones: list[str], machine: str) -> None:
    """AI zones hold accelerator hosts; CPU-only VMs are limited to what serves them (facts, 2026-12-01); assumed."""
    known = machine_type(machine)
    ai_zones = [zone for zone in zones if locations.is_ai_zone(zone)]
    if ai_zones and (known is None or not known.is_tpu):
        raise GoogleRefusal(
            f"Machine type {machine} is not available in AI zone {ai_zones[0]}: AI zones hold accelerator machines.",
            400,
            "badRequest",
        )


def refuse_active_slices(cloud: Cloud, cluster: str, pool: str) -> None:
    """Active Slices block the deletion of their hosts' pools (llm-d guide, codelab's teardown); wording assumed."""
    slices = cloud.clusters.active_slices(cluster, pool)
    if slices:
        raise GoogleRefusal(
            f"Node pool {pool} cannot be deleted: slices {', '.join(slices)} are active on its nodes. Delete them "
            "first.",
            400,
            "failedPrecondition",
        )


def _subnet_of(cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> Record:
    network = reference(inputs.get("network", "default"), place.project, "networks")
    require(cloud, network, NETWORK)
    region = f"regions/{cloud.region.region}"
    subnet_id = reference(
        inputs.get("subnetwork") or last_part(network), place.project, "subnetworks", region
    )
    subnet = require(cloud, subnet_id, SUBNETWORK)
    if network_of(subnet) != network:
        # Wording: GKE API, as users quote it.
        raise GoogleRefusal(
            f'Subnetwork "{subnet_id}" does not belong to network "{network}".', 400, "badRequest"
        )
    return subnet


def _ranges_of(subnet: Record, policy: Mapping[str, Any]) -> dict[str, str | None]:
    ranges = {item["rangeName"]: item["ipCidrRange"] for item in subnet.inputs.get("secondaryIpRanges") or []}
    found: dict[str, str | None] = {}
    for key, name_input, block_input in (
        ("podCidr", "clusterSecondaryRangeName", "clusterIpv4CidrBlock"),
        ("serviceCidr", "servicesSecondaryRangeName", "servicesIpv4CidrBlock"),
    ):
        name = policy.get(name_input)
        if name is not None and name not in ranges:
            # Wording: GKE API, as users quote it.
            raise GoogleRefusal(
                f'Services or pods secondary range "{name}" does not exist in subnetwork "{subnet.name}".',
                400,
                "badRequest",
            )
        # Without either GKE makes a range of its own; the cluster side then takes its default.
        found[key] = ranges.get(name) or policy.get(block_input)
    return found


def _refuse_old_slice_controller(inputs: Mapping[str, Any], version: str) -> None:
    """Floor: precondition of cluster-toolkit's GKE module; the API's wording is assumed to be the module's."""
    floor = versions.GKE_MINIMUM_SLICE_CONTROLLER
    if is_slice_controller_on(inputs) and GkeVersion.parse(version) < GkeVersion.parse(floor):
        raise GoogleRefusal(
            f"The GKE Slice Controller requires a GKE version of {floor} or higher (got {version}).",
            400,
            "badRequest",
        )


def _refuse_past_exclusions(inputs: Mapping[str, Any]) -> None:
    """GKE takes only maintenance exclusions that end in the future (maintenance guide); wording assumed."""
    policy = inputs.get("maintenancePolicy") or {}
    now = datetime.datetime.now(datetime.UTC)
    for exclusion in policy.get("maintenanceExclusions") or []:
        end = exclusion.get("endTime")
        if end and datetime.datetime.fromisoformat(end) <= now:
            raise GoogleRefusal(
                f"Maintenance exclusion {exclusion['exclusionName']} ends in the past: {end}.",
                400,
                "badRequest",
            )


def _refuse_same_name(cloud: Cloud, place: Place) -> None:
    """The region keeps one folder a cluster name: a limit of the simulator, not of Google."""
    for other in cloud.inventory.of_type(CLUSTER):
        if other.name == place.name and other.id != place.id:
            raise ProviderRefusal(
                f"this simulated region holds one cluster of a name, and {other.id} is called {place.name} already"
            )
