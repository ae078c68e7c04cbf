"""What the Compute API says of a reservation, its blocks and its sub-blocks, and of the hosts in use there.

The counts are the region file's plus what this region's own node pools hold. A reservation of another project answers
only where it is shared with the asking one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.cloud import reservations
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, not_found
from simulator.cloud.identifiers import numeric_id, opaque
from simulator.cloud.kinds.base import COMPUTE_ADDRESS, ProviderDefaults, last_part
from simulator.cloud.region_file import Block, Reservation, SubBlock


def reservation(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    """`getReservation`."""
    found, path = _find(cloud, arguments, arguments.get("name"), defaults)
    parts = [(block, item) for block in found.blocks for item in block.sub_blocks]
    return {
        **_common(path, found),
        "kind": "compute#reservation",
        "status": "READY",
        "blockNames": [block.name for block in found.blocks],
        "specificReservationRequired": True,
        "deleteAtTime": found.end_time.isoformat() if found.end_time else "",
        "specificReservations": [
            {
                "count": found.host_count or sum(len(item.host_numbers) for _block, item in parts),
                "inUseCount": _hosts_without_block_in_use(cloud, found)
                + sum(_in_use(cloud, found, block, item) for block, item in parts),
                "instanceProperties": [
                    {
                        "machineType": found.machine_type,
                        "maintenanceInterval": found.maintenance_interval,
                        "guestAccelerators": [],
                        "localSsds": [],
                        "minCpuPlatform": "",
                    }
                ],
            }
        ],
        "shareSettings": [
            {
                "shareType": "SPECIFIC_PROJECTS" if found.shared_with else "LOCAL",
                "projectMaps": [{"id": item, "projectId": item} for item in found.shared_with],
                "projects": list(found.shared_with),
            }
        ],
    }


def block(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    """`getReservationBlock`."""
    found, path = _find(cloud, arguments, arguments.get("reservation"), defaults)
    part, path = _find_block(found, path, str(arguments.get("name")))
    in_use = [_in_use(cloud, found, part, item) for item in part.sub_blocks]
    healthy = sum(_is_healthy(item) for item in part.sub_blocks)
    return {
        **_common(path, found),
        "kind": "compute#reservationBlock",
        "name": part.name,
        "reservation": found.name,
        "resourceId": numeric_id(path),
        "status": "READY",
        "blockCount": sum(len(item.host_numbers) for item in part.sub_blocks),
        "inUseCount": sum(in_use),
        "reservationSubBlockCount": len(part.sub_blocks),
        "reservationSubBlockInUseCount": sum(1 for count in in_use if count),
        "subBlockNames": [item.name for item in part.sub_blocks],
        "healthInfos": [
            {
                "healthStatus": "HEALTHY" if healthy == len(part.sub_blocks) else "DEGRADED",
                "healthySubBlockCount": healthy,
                "degradedSubBlockCount": len(part.sub_blocks) - healthy,
            }
        ],
        "physicalTopologies": [
            {"cluster": opaque(found.project, found.zone), "block": _topology(found, part)}
        ],
        "reservationMaintenances": [_maintenance(part.sub_blocks)],
    }


def sub_block(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    """`getReservationSubBlock`."""
    found, path = _find(cloud, arguments, arguments.get("reservation"), defaults)
    parent, path = _find_block(found, path, str(arguments.get("reservationBlock")))
    path = f"{path}/reservationSubBlocks/{arguments.get('name')}"
    part = next((item for item in parent.sub_blocks if item.name == arguments.get("name")), None)
    if part is None:
        raise not_found(path)
    healthy = len([number for number in part.host_numbers if number not in part.unhealthy_hosts])
    return {
        **_common(path, found),
        "kind": "compute#reservationSubBlock",
        "name": part.name,
        "reservation": found.name,
        "reservationBlock": parent.name,
        "resourceId": numeric_id(path),
        "status": "READY",
        "subBlockCount": len(part.host_numbers),
        "inUseCount": _in_use(cloud, found, parent, part),
        "healthInfos": [
            {
                "healthStatus": "HEALTHY" if _is_healthy(part) else "DEGRADED",
                "healthyHostCount": healthy,
                "degradedHostCount": len(part.host_numbers) - healthy,
                "healthyInfraCount": 0 if part.health == "DEGRADED" else 1,
                "degradedInfraCount": 1 if part.health == "DEGRADED" else 0,
            }
        ],
        "physicalTopologies": [
            {
                "cluster": opaque(found.project, found.zone),
                "block": _topology(found, parent),
                "subBlock": opaque(found.project, found.name, parent.name, part.name),
            }
        ],
        "reservationSubBlockMaintenances": [_maintenance([part])],
    }


def _find(
    cloud: Cloud, arguments: Mapping[str, Any], name: object, defaults: ProviderDefaults
) -> tuple[Reservation, str]:
    project = arguments.get("project") or defaults.project or ""
    zone = arguments.get("zone") or defaults.zone
    wanted = last_part(str(name))
    path = f"projects/{project}/zones/{zone}/reservations/{wanted}"
    asker = defaults.project or project
    cloud.require_api(asker, "compute.googleapis.com")
    found = next(
        (
            item
            for item in cloud.region.reservations
            if (item.project, item.zone, item.name) == (project, zone, wanted)
        ),
        None,
    )
    if found is None or zone not in cloud.visible_zones(asker):
        raise not_found(path)
    if asker not in (found.project, *found.shared_with):
        # Wording: IAM's answer in the Compute API.
        raise GoogleRefusal(f"Required 'compute.reservations.get' permission for '{path}'", 403, "forbidden")
    return found, path


def _find_block(found: Reservation, path: str, name: str) -> tuple[Block, str]:
    path = f"{path}/reservationBlocks/{name}"
    part = next((item for item in found.blocks if item.name == name), None)
    if part is None:
        raise not_found(path)
    return part, path


def _common(path: str, found: Reservation) -> dict[str, Any]:
    return {
        "id": path,
        "name": found.name,
        "project": found.project,
        "zone": found.zone,
        "selfLink": COMPUTE_ADDRESS + path,
    }


def _held(cloud: Cloud, found: Reservation) -> list[dict[str, Any]]:
    own = (found.project, found.name)
    return [item for item in reservations.held(cloud) if (item["project"], item["reservation"]) == own]


def _hosts_without_block_in_use(cloud: Cloud, found: Reservation) -> int:
    return sum(len(item["host_numbers"]) for item in _held(cloud, found) if item["block"] is None)


def _in_use(cloud: Cloud, found: Reservation, parent: Block, part: SubBlock) -> int:
    ours = sum(
        len(item["host_numbers"])
        for item in _held(cloud, found)
        if (item["block"], item["sub_block"]) == (parent.name, part.name)
    )
    return part.in_use_host_count + ours


def _is_healthy(part: SubBlock) -> bool:
    return part.health == "HEALTHY" and not part.unhealthy_hosts


def _topology(found: Reservation, part: Block) -> str:
    return opaque(found.project, found.name, part.name)


def _maintenance(parts: list[SubBlock]) -> dict[str, Any]:
    def count(state: str) -> int:
        return sum(1 for part in parts if part.maintenance is not None and part.maintenance.state == state)

    return {
        "maintenanceOngoingCount": count("ONGOING"),
        "maintenancePendingCount": count("PENDING"),
        "instanceMaintenanceOngoingCount": 0,
        "instanceMaintenancePendingCount": 0,
        "subblockInfraMaintenanceOngoingCount": count("ONGOING"),
        "subblockInfraMaintenancePendingCount": count("PENDING"),
        "schedulingType": "GROUPED",
    }
