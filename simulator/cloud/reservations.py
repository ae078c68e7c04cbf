"""Which hosts of a reservation a node pool gets.

Owns the reading of a reservation affinity as GKE reads it, and the count of hosts that pools already hold. Refuses a
value form that GKE does not find, a reservation that is not there, not shared or over, a part that is full. Texts of
the refusals: public issues of cluster-toolkit (#5043) and gsutil (#1000), quoted in the facts of 2026-12-01.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal
from simulator.cloud.kinds.workload_policies import NODE_POOL
from simulator.cloud.region_file import Block, Reservation, SubBlock

# GKE autoscaler's tests and xpk: RES…, or projects/P/reservations/RES…; no zone, no host name of an API.
_VALUE = re.compile(
    r"^(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub_block>[^/]+))?)?$"
)


@dataclass(frozen=True)
class Placement:
    """Hosts that a pool holds."""

    project: str
    reservation: str
    host_numbers: list[int]
    block: str | None = None
    sub_block: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the inventory keeps it."""
        return asdict(self)


@dataclass(frozen=True)
class Request:
    """A pool that asks for hosts."""

    project: str
    pool: str
    zone: str
    machine_type: str
    host_count: int


def place(cloud: Cloud, value: str, request: Request) -> Placement:
    """The hosts that GKE gives to the pool; raises what GKE says when there are none."""
    match = _VALUE.match(value)
    if match is None:
        raise _not_found(value, request)
    owner = match["project"] or request.project
    reservation = next(
        (item for item in cloud.region.reservations if (item.project, item.name) == (owner, match["name"])),
        None,
    )
    # A path inside a reservation of another project is looked for in the pool's own project: same answer.
    shown = value if match["project"] is None else value.split("/reservations/", 1)[1]
    if reservation is None or not _may_use(reservation, request) or _is_over(reservation):
        raise _not_found(shown, request)
    if reservation.machine_type != request.machine_type:
        raise _insufficient(reservation, request, request.host_count)
    if not reservation.blocks:
        return _place_hosts(cloud, reservation, request)
    blocks = [block for block in reservation.blocks if match["block"] in (None, block.name)]
    if not blocks:
        raise _not_found(shown, request)
    if match["sub_block"] is not None:
        sub_block = next((item for item in blocks[0].sub_blocks if item.name == match["sub_block"]), None)
        if sub_block is None:
            raise _not_found(shown, request)
        return _place_cube(cloud, reservation, [(blocks[0], sub_block)], request)
    return _place_cube(
        cloud, reservation, [(block, item) for block in blocks for item in block.sub_blocks], request
    )


def find(cloud: Cloud, placement: Mapping[str, Any]) -> tuple[Reservation, SubBlock | None]:
    """The reservation and sub-block of a placement that was given before."""
    reservation = next(
        item
        for item in cloud.region.reservations
        if (item.project, item.name) == (placement["project"], placement["reservation"])
    )
    for block in reservation.blocks:
        for sub_block in block.sub_blocks:
            if (block.name, sub_block.name) == (placement["block"], placement["sub_block"]):
                return reservation, sub_block
    return reservation, None


def held(cloud: Cloud) -> Iterator[dict[str, Any]]:
    """Placements of every pool."""
    for pool in cloud.inventory.of_type(NODE_POOL):
        if pool.computed.get("placement"):
            yield pool.computed["placement"]


def _may_use(reservation: Reservation, request: Request) -> bool:
    is_shared = request.project in (reservation.project, *reservation.shared_with)
    return is_shared and reservation.zone == request.zone


def _is_over(reservation: Reservation) -> bool:
    """A reservation is deleted at its end time (Compute guide to future reservations); assumed to look absent then."""
    return reservation.end_time is not None and reservation.end_time <= datetime.datetime.now(datetime.UTC)


def _place_cube(
    cloud: Cloud, reservation: Reservation, candidates: list[tuple[Block, SubBlock]], request: Request
) -> Placement:
    """A pool takes a whole sub-block; whole ones first, else one with at least one healthy host (GKE guide)."""
    taken = {
        (item["block"], item["sub_block"])
        for item in held(cloud)
        if (item["project"], item["reservation"]) == (reservation.project, reservation.name)
    }
    free = [
        (block, sub_block)
        for block, sub_block in candidates
        if (block.name, sub_block.name) not in taken
        and sub_block.in_use_host_count == 0
        and sub_block.usable_host_numbers
    ]
    if not free:
        raise _insufficient(reservation, request, request.host_count)
    block, sub_block = max(free, key=lambda pair: len(pair[1].usable_host_numbers))
    return Placement(
        reservation.project, reservation.name, sub_block.usable_host_numbers, block.name, sub_block.name
    )


def _place_hosts(cloud: Cloud, reservation: Reservation, request: Request) -> Placement:
    taken = {
        number
        for item in held(cloud)
        if (item["project"], item["reservation"]) == (reservation.project, reservation.name)
        for number in item["host_numbers"]
    }
    free = [number for number in range(reservation.host_count or 0) if number not in taken]
    if len(free) < request.host_count:
        raise _insufficient(reservation, request, request.host_count - len(free))
    return Placement(reservation.project, reservation.name, free[: request.host_count])


def _not_found(shown: str, request: Request) -> GoogleRefusal:
    return GoogleRefusal(
        f'Google Compute Engine: reservation "{shown}" not found for node pool "{request.pool}" at zone '
        f'"{request.zone}".',
        404,
        "notFound",
    )


def _insufficient(reservation: Reservation, request: Request, short: int) -> GoogleRefusal:
    return GoogleRefusal(
        "Reservation does not have enough resources for the request: specific reservation "
        f'"{reservation.name}" is insufficient for node pool "{request.pool}" at zone "{request.zone}": required '
        f"{request.host_count} and short of {short} VM count of machine type {request.machine_type}.",
        429,
        "rateLimitExceeded",
    )
