"""A region that holds exactly what a stack's settings ask for, so that any stack can be brought up unchanged.

Pure. What the settings leave to Google (names of blocks and sub-blocks, a project's number) is made up here in the
form that Google uses. Nothing is to spare: one cube more than the settings say is refused, as on the real reservation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from facts import locations, tpu, versions
from facts.gke import GkeVersion
from settings import Reservation as ReservationSetting
from settings import Settings
from simulator.cloud import region_file
from simulator.cloud.identifiers import opaque
from simulator.cloud.region_file import RegionFile

# What Google switches on in a new project and the program relies on before it can switch on more.
NEW_PROJECT_APIS = ["serviceusage.googleapis.com", "storage.googleapis.com"]


def region_of(settings: Settings) -> RegionFile:
    """The region that the stack fits."""
    document: dict[str, Any] = {
        "region": settings.region,
        "zones": list(_zones(settings)),
        "projects": _projects(settings),
        "gkeChannels": [_channel(settings)],
        "reservations": [*_slice_reservations(settings), *_multihost_reservations(settings)],
        "buckets": _buckets(settings),
        "existing": list(_existing_network(settings)),
    }
    return region_file.parse(document, "the region derived from the settings")


def block_of(reservation: ReservationSetting) -> str:
    """The block that a reservation setting means; Google names blocks so when the settings do not say."""
    return reservation.block or f"{reservation.name}-block-0001"


def _zones(settings: Settings) -> Iterator[dict[str, str]]:
    ordinary = locations.ordinary_zones(settings.region)
    named = [zone for zone in settings.cluster.system_pool.zones if zone not in ordinary]
    ordinary += [zone for zone in dict.fromkeys(named) if not locations.is_ai_zone(zone)]
    if settings.is_ai_zone:
        parent = ordinary[0] if ordinary else f"{settings.region}-a"
        yield from ({"name": zone} for zone in ordinary or [parent])
        yield {"name": settings.zone, "parent": parent}
    else:
        yield from ({"name": zone} for zone in dict.fromkeys([*ordinary, settings.zone]))


def _projects(settings: Settings) -> list[dict[str, Any]]:
    on_demand = sum(pool.chip_count for pool in settings.multihost_pools if pool.reservation is None)
    existing_apis = ["compute.googleapis.com"] if settings.network.existing else []
    own = {
        "id": settings.project,
        "number": settings.project_number or _number(settings.project),
        "enabledApis": [*NEW_PROJECT_APIS, *existing_apis],
        "tpuQuotas": [{"family": "CT6E", "chips": on_demand}],
    }
    owners = {reservation.project for reservation in _reservations(settings)} - {None, settings.project}
    return [own, *({"id": owner, "number": _number(str(owner))} for owner in sorted(map(str, owners)))]


def _number(project: str) -> str:
    return str(10**11 + int(opaque(project, length=12), 16) % (9 * 10**11))


def _channel(settings: Settings) -> dict[str, Any]:
    offered = {settings.cluster.version, versions.GKE_DEFAULT}
    return {
        "name": versions.GKE_RELEASE_CHANNEL,
        "default": settings.cluster.version,
        "versions": sorted(offered, key=GkeVersion.parse, reverse=True),
    }


def _reservations(settings: Settings) -> Iterator[ReservationSetting]:
    yield from (pool.reservation for pool in settings.slice_pools)
    yield from (pool.reservation for pool in settings.multihost_pools if pool.reservation is not None)


def _slice_reservations(settings: Settings) -> Iterator[dict[str, Any]]:
    blocks: dict[tuple[str, str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    intervals: dict[tuple[str, str, str], str] = {}
    for pool in settings.slice_pools:
        reservation = pool.reservation
        key = (reservation.project or settings.project, reservation.name, pool.machine_type)
        names = blocks[key][block_of(reservation)]
        names += reservation.sub_blocks or [
            f"{block_of(reservation)}-subblock-{len(names) + number:04d}"
            for number in range(1, pool.cubes + 1)
        ]
        intervals[key] = pool.host_maintenance or "AS_NEEDED"
    for (project, name, machine_type), held in blocks.items():
        yield {
            **_reservation(settings, project, name, machine_type),
            "maintenanceInterval": intervals[project, name, machine_type],
            "blocks": [
                {"name": block, "subBlocks": _sub_blocks(list(dict.fromkeys(names)))}
                for block, names in held.items()
            ],
        }


def _sub_blocks(names: list[str]) -> list[dict[str, str]]:
    width = tpu.HOSTS_PER_CUBE
    return [
        {"name": name, "hosts": f"{index * width}-{(index + 1) * width - 1}"}
        for index, name in enumerate(names)
    ]


def _multihost_reservations(settings: Settings) -> Iterator[dict[str, Any]]:
    hosts: dict[tuple[str, str, str], int] = defaultdict(int)
    for pool in settings.multihost_pools:
        if pool.reservation is not None:
            key = (pool.reservation.project or settings.project, pool.reservation.name, pool.machine_type)
            hosts[key] += pool.host_count
    for (project, name, machine_type), count in hosts.items():
        yield {**_reservation(settings, project, name, machine_type), "hostCount": count}


def _reservation(settings: Settings, project: str, name: str, machine_type: str) -> dict[str, Any]:
    return {
        "name": name,
        "project": project,
        "zone": settings.zone,
        "machineType": machine_type,
        "sharedWith": [] if project == settings.project else [settings.project],
    }


def _buckets(settings: Settings) -> list[dict[str, Any]]:
    names = [settings.pd_serving.model.bucket] if settings.pd_serving else []
    names += [item.checkpoint.removeprefix("gs://").split("/")[0] for item in settings.pathways_serving]
    location = settings.region.upper()
    return [
        {"name": name, "project": settings.project, "location": location} for name in dict.fromkeys(names)
    ]


def _existing_network(settings: Settings) -> Iterator[dict[str, Any]]:
    given, existing = settings.network, settings.network.existing
    if existing is None:
        return
    yield {
        "type": "gcp:compute/network:Network",
        "inputs": {"name": existing.network, "autoCreateSubnetworks": False, "mtu": given.mtu},
    }
    ranges = ((existing.pod_range, given.pod_cidr), (existing.service_range, given.service_cidr))
    common = {"project": settings.project, "region": settings.region, "network": existing.network}
    yield {
        "type": "gcp:compute/subnetwork:Subnetwork",
        "inputs": {
            **common,
            "name": existing.subnet,
            "ipCidrRange": given.subnet_cidr,
            "privateIpGoogleAccess": True,
            "secondaryIpRanges": [{"rangeName": name, "ipCidrRange": cidr} for name, cidr in ranges if name],
        },
    }
    if existing.proxy_subnet:
        yield {
            "type": "gcp:compute/subnetwork:Subnetwork",
            "inputs": {
                **common,
                "name": f"{existing.subnet}-proxy",
                "ipCidrRange": given.proxy_cidr,
                "purpose": "REGIONAL_MANAGED_PROXY",
                "role": "ACTIVE",
            },
        }
