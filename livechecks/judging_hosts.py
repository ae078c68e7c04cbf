"""Judging blocks, sub-blocks and hosts: there, free or ours, healthy, not under maintenance.

Pure. A sub-block is taken as a whole; GKE takes one as soon as one of its hosts is healthy (GKE guide "custom
scheduler"), so a partly ill one is a caution and a wholly ill one a refusal.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from facts import tpu
from livechecks import provider_questions as questions
from livechecks.answers import Answer, Outcome
from livechecks.findings import Finding, caution, manual, passed, refused
from livechecks.gathering import Gathered, Place
from livechecks.holdings import Holdings
from livechecks.holdings import of as holdings_of
from livechecks.judging_reservations import may_be_hidden, reserved_pools
from settings import Settings


def findings(settings: Settings, found: Gathered) -> Iterator[Finding]:
    """Everything about the hosts of the reservations that were seen."""
    held = holdings_of(found.of(questions.CLUSTER), settings.project)
    for index, pool in enumerate(settings.slice_pools):
        path = f"tpu-slices:slicePools[{index}].reservation"
        whole = Place.of(pool.reservation, settings.project)
        block = whole.inside(pool.reservation.block)
        if found.at(whole).document is None or pool.reservation.block is None:
            continue
        if found.at(block).document is None:
            yield from _unseen(settings, found, f"{path}.block", block, _names(found.at(whole), "blockNames"))
            continue
        for name in pool.reservation.sub_blocks:
            place = block.inside(block.block, name)
            if found.at(place).document is None:
                known = _names(found.at(block), "subBlockNames")
                yield from _unseen(settings, found, f"{path}.subBlocks", place, known)
            else:
                yield from _named_sub_block(found.at(place), f"{path}.subBlocks", place, held)
    yield from _cubes(settings, found, held)
    yield from _hosts(settings, found, held)


def _unseen(settings: Settings, found: Gathered, path: str, place: Place, known: str) -> Iterator[Finding]:
    part, kind = (place.sub_block, "sub-block") if place.sub_block else (place.block, "block")
    answer = found.at(place)
    if answer.outcome is Outcome.NOT_FOUND and not may_be_hidden(settings, found):
        yield refused(
            path,
            f"must be a {kind} of {place.block if place.sub_block else place.reservation}",
            got=part,
            reason=f"Google finds none of that name; there are {known}"
            if known
            else "Google finds none of that name",
            way_out="Choose one that is there.",
        )
    else:
        yield manual(
            f"the {kind} {part} of reservation {place.reservation}",
            answer,
            f"Look at `gcloud beta compute reservations sub-blocks list {place.reservation} --block-name={place.block} "
            f"--project={place.project}`: count, inUseCount, healthInfo.",
        )


def _named_sub_block(answer: Answer, path: str, place: Place, held: Holdings) -> Iterator[Finding]:
    part = _SubBlock(answer.document or {})
    own = held.hosts_in(place)
    foreign = max(0, part.in_use - own)
    is_certain = held.is_known and not held.pools_that_may_reach(place)
    if foreign and is_certain:
        yield refused(
            path,
            f"must be free, all {part.count} hosts of it",
            got=f"{place.sub_block} with {foreign} hosts in use",
            reason="a cube is a whole sub-block, and somebody else holds those hosts",
            way_out="Name a free sub-block, or have them given back.",
        )
    elif foreign:
        yield caution(
            f"sub-block {place.sub_block} has {foreign} hosts in use, and it could not be told whether they are this "
            "stack's."
        )
    else:
        yield passed(f"sub-block {place.sub_block} is free or ours")
    if part.healthy == 0 and not own:
        yield refused(
            path,
            "must have a healthy host",
            got=f"{place.sub_block} with {part.ill} degraded hosts",
            reason="GKE makes no node pool on a sub-block whose hosts are all degraded",
            way_out="Name another sub-block, or wait until Google has repaired it.",
        )
    else:
        yield from _condition(part, place.sub_block)


def _condition(part: "_SubBlock", name: str | None) -> Iterator[Finding]:
    if part.healthy is not None and part.healthy < tpu.HOSTS_PER_CUBE:
        yield caution(
            f"sub-block {name} has {part.healthy} healthy hosts of {tpu.HOSTS_PER_CUBE}: its pool comes up smaller, and "
            "no slice forms on what is missing."
        )
    if part.ill_links:
        yield caution(f"sub-block {name} has degraded links: its 4x4x4 slice forms only as DEGRADED.")
    if part.ongoing or part.pending:
        yield caution(
            f"sub-block {name} is under maintenance ({part.ongoing} ongoing, {part.pending} pending): slices there go to "
            "FAILED when it begins."
        )


def _cubes(settings: Settings, found: Gathered, held: Holdings) -> Iterator[Finding]:
    """Blocks from which Google picks the sub-blocks: enough of them must be free."""
    wanted: dict[Place, int] = defaultdict(int)
    path_of: dict[Place, str] = {}
    for index, pool in enumerate(settings.slice_pools):
        if pool.reservation.block is None:
            continue
        block = Place.of(pool.reservation, settings.project).inside(pool.reservation.block)
        wanted[block] += pool.cubes
        if not pool.reservation.sub_blocks:
            path_of[block] = f"tpu-slices:slicePools[{index}].cubes"
    for block, path in path_of.items():
        document = found.at(block).document
        if document is None:
            continue
        names = document.get("subBlockNames") or []
        answers = {name: found.at(block.inside(block.block, name)) for name in names}
        parts = {
            name: _SubBlock(answer.document)
            for name, answer in answers.items()
            if answer.document is not None
        }
        if names and len(parts) == len(names):
            free = sum(1 for part in parts.values() if part.in_use == 0 and part.healthy != 0)
            for name, part in parts.items():
                yield from _condition(part, name)
        else:
            total = int(document.get("reservationSubBlockCount") or 0)
            free = total - int(document.get("reservationSubBlockInUseCount") or 0)
            yield from _block_condition(document, block)
        yield _enough(
            path, wanted[block], free + held.pools_in(block), held, f"free cubes in block {block.block}"
        )


def _block_condition(document: Mapping[str, Any], block: Place) -> Iterator[Finding]:
    for health in document.get("healthInfos") or []:
        if ill := int(health.get("degradedSubBlockCount") or 0):
            yield caution(f"block {block.block} has {ill} degraded sub-blocks: GKE may pick one of them.")
    for group in document.get("reservationMaintenances") or []:
        ongoing, pending = _maintenance(group)
        if ongoing or pending:
            yield caution(
                f"block {block.block} is under maintenance ({ongoing} ongoing, {pending} pending): slices there go to "
                "FAILED when it begins."
            )


def _hosts(settings: Settings, found: Gathered, held: Holdings) -> Iterator[Finding]:
    """Reservations from which Google picks the block, or which have none: enough hosts must be free."""
    wanted: dict[Place, int] = defaultdict(int)
    path_of: dict[Place, str] = {}
    for path, pool, place in reserved_pools(settings):
        wanted[place] += pool.host_count
        if pool.reservation is not None and pool.reservation.block is None:
            path_of[place] = f"{path}.reservation"
    for place, path in path_of.items():
        for counts in (found.at(place).document or {}).get("specificReservations") or []:
            free = int(counts.get("count") or 0) - int(counts.get("inUseCount") or 0)
            yield _enough(
                path,
                wanted[place],
                free + held.hosts_in(place),
                held,
                f"free hosts in reservation {place.reservation}",
            )


def _enough(path: str, wanted: int, free: int, held: Holdings, what: str) -> Finding:
    if wanted <= free:
        return passed(f"{free} {what}, {wanted} wanted")
    if not held.is_known:
        return caution(
            f"{free} {what}, {wanted} wanted: it could not be told whether the rest is ours already."
        )
    return refused(
        path,
        f"must find {wanted} {what}",
        got=free,
        reason="what this stack holds is counted as free, and the rest is in use or degraded",
        way_out="Ask for fewer, name another, or have some given back.",
    )


class _SubBlock:
    """A sub-block as the provider's function shows it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.count = int(document.get("subBlockCount") or tpu.HOSTS_PER_CUBE)
        self.in_use = int(document.get("inUseCount") or 0)
        health = document.get("healthInfos") or []
        self.healthy = int(health[0].get("healthyHostCount") or 0) if health else None
        self.ill = int(health[0].get("degradedHostCount") or 0) if health else 0
        self.ill_links = int(health[0].get("degradedInfraCount") or 0) if health else 0
        groups = document.get("reservationSubBlockMaintenances") or [{}]
        self.ongoing, self.pending = _maintenance(groups[0])


def _maintenance(group: Mapping[str, Any]) -> tuple[int, int]:
    def count(state: str) -> int:
        keys = (
            f"maintenance{state}Count",
            f"instanceMaintenance{state}Count",
            f"subblockInfraMaintenance{state}Count",
        )
        return max(int(group.get(key) or 0) for key in keys)

    return count("Ongoing"), count("Pending")


def _names(answer: Answer, key: str) -> str:
    names = (answer.document or {}).get(key) or []
    return f"{', '.join(names[:8])}{' and others' if len(names) > 8 else ''}"
