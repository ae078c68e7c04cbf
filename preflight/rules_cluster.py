"""Rules of the cluster: where its system pool stands, what fits on it, which versions do.

Owns what joins cluster, zone and pools. Refuses to ask GKE what it offers today: that is a live check.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from facts import gke, locations, machines, maintenance, versions
from facts.refusal import Refusal
from facts.text import listed

if TYPE_CHECKING:
    from settings import Settings

Found = Iterator[tuple[str, Refusal]]


def system_zones_are_ordinary_zones_of_the_region(settings: "Settings", _now: datetime) -> Found:
    """CPU machines never go to an AI zone, and a regional cluster has nodes in its region only."""
    zones = settings.cluster.system_pool.zones
    region = settings.region
    if not zones and not locations.default_system_zones(region):
        yield (
            "cluster.systemPool.zones",
            Refusal(
                "must be given",
                reason=f"the ordinary zones of {region} are not in our table",
                way_out=f"`gcloud compute zones list --filter=region:{region}` prints them; AI zones do not count.",
            ),
        )
    for index, zone in enumerate(zones):
        path = f"cluster.systemPool.zones[{index}]"
        if locations.region_of(zone) != region:
            yield (
                path,
                Refusal(
                    f"must lie in {region}",
                    got=zone,
                    reason="the cluster is regional, and the region follows from `zone`",
                    way_out=f"Use zones such as {region}-a, or another `zone`.",
                ),
            )
        elif locations.is_ai_zone(zone):
            yield (
                path,
                Refusal(
                    "must not be an AI zone",
                    got=zone,
                    reason="AI zones are for accelerator hosts and have few CPU machines and no regional disks",
                    way_out=f"Use ordinary zones: {', '.join(locations.default_system_zones(region)) or region + '-a'}.",
                ),
            )
        if zone in zones[:index]:
            yield (
                path,
                Refusal(
                    "must be listed once",
                    got=zone,
                    reason="a pool has its nodes in a zone once",
                    way_out="Remove it, and raise `nodeCount` for more nodes in each zone.",
                ),
            )


def controllers_fit_the_system_pool(settings: "Settings", _now: datetime) -> Found:
    """Every controller finds a node with room for what it requests."""
    pool = settings.cluster.system_pool
    zone_count = len(pool.zones) or len(locations.default_system_zones(settings.region)) or 3
    requests = machines.controller_requests(
        dynamic_slicing=bool(settings.slice_pools), endpoint_picker=settings.pd_serving is not None
    )
    nodes = pool.node_count * zone_count
    homeless = machines.unplaced(requests, pool.machine_type, nodes)
    if homeless:
        wanted = sum(request.cpu_millis for request in requests.values()) / 1000
        largest = max(request.cpu_millis for request in requests.values()) / 1000
        yield (
            "cluster.systemPool",
            Refusal(
                "must hold the controllers' requests",
                got=f"{nodes} x {pool.machine_type}",
                reason=f"{listed(homeless)} would stay Pending: together they ask for {wanted:g} CPUs, the "
                f"largest for {largest:g} on one node",
                way_out="Use a larger `machineType` (the codelab's is n2-standard-32) or a higher `nodeCount`.",
            ),
        )


def version_reaches_the_floors(settings: "Settings", _now: datetime) -> Found:
    """GKE can do what the stack asks for."""
    version = settings.cluster.version
    floors: dict[str, str] = {}
    if settings.slice_pools:
        floors = {
            "All Capacity reservations": versions.GKE_MINIMUM_ALL_CAPACITY,
            "the slice controller add-on": versions.GKE_MINIMUM_SLICE_CONTROLLER,
            "super-slicing": versions.GKE_MINIMUM_SUPER_SLICING,
            "sub-slicing": versions.GKE_MINIMUM_SUB_SLICING,
        }
    if settings.pd_serving:
        floors["GKE's own inference CRDs"] = versions.GKE_MINIMUM_INFERENCE_CRDS
    if settings.multihost_pools:
        floors["multi-host v6e slices"] = versions.GKE_MINIMUM_V6E
    missed = {what: floor for what, floor in floors.items() if not gke.at_least(version, floor)}
    if missed:
        highest = max(missed.values(), key=gke.GkeVersion.parse)
        needs = listed(f"{floor} for {what}" for what, floor in missed.items())
        yield (
            "cluster.version",
            Refusal(
                f"must be at least {highest}",
                got=version,
                reason=f"GKE needs {needs}",
                way_out=f"Use {max(highest, versions.GKE_DEFAULT, key=gke.GkeVersion.parse)}, which this program was "
                "tried with.",
            ),
        )


def exclusion_is_one_that_gke_takes(settings: "Settings", now: datetime) -> Found:
    """The exclusion is not over, not empty and not too long."""
    exclusion = settings.cluster.maintenance_exclusion
    if exclusion is None:
        return
    try:
        maintenance.check_exclusion(exclusion.start, exclusion.end, exclusion.scope, now)
    except Refusal as refusal:
        yield "cluster.maintenanceExclusion", refusal
