"""Rules of the TPU pools: names, reservations and what two pools may not share.

Owns what joins one pool with another and with the zone. Refuses to guess how full a reservation is: that is a
live check.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from facts import names, tpu
from facts.refusal import Refusal

if TYPE_CHECKING:
    from settings import Reservation, Settings

Found = Iterator[tuple[str, Refusal]]


def sub_blocks_match_cubes(settings: "Settings", _now: datetime) -> Found:
    """Named sub-blocks are one a cube, distinct, and inside a named block."""
    for index, pool in enumerate(settings.slice_pools):
        path = f"slicePools[{index}].reservation.subBlocks"
        blocks = pool.reservation.sub_blocks
        if blocks and pool.reservation.block is None:
            yield (
                f"slicePools[{index}].reservation.block",
                Refusal(
                    "must be given beside `subBlocks`",
                    reason="a sub-block lies in a block, and its path names both",
                    way_out="Add the block's name.",
                ),
            )
        if blocks and len(blocks) != pool.cubes:
            yield (
                path,
                Refusal(
                    f"must name one sub-block for each of the {pool.cubes} cubes",
                    got=f"{len(blocks)}: {', '.join(blocks)}",
                    reason="pool 1 is made in the first, pool 2 in the second, and so on",
                    way_out=f"List {pool.cubes}, set `cubes` to {len(blocks)}, or name none and GKE picks.",
                ),
            )
        for name in _doubled(blocks):
            yield (
                path,
                Refusal(
                    "must name every sub-block once",
                    got=f"{name} twice",
                    reason="a sub-block is one cube",
                    way_out="Remove the second one.",
                ),
            )


def blocks_are_shared_without_overlap(settings: "Settings", _now: datetime) -> Found:
    """Entries that draw on one block fit it together and name no sub-block twice."""
    by_block: dict[str, list[int]] = {}
    for index, pool in enumerate(settings.slice_pools):
        if pool.reservation.block is not None:
            by_block.setdefault(_block(pool.reservation, settings.project), []).append(index)
    for block, indexes in by_block.items():
        pools = [settings.slice_pools[index] for index in indexes]
        cubes = sum(pool.cubes for pool in pools)
        last = f"slicePools[{indexes[-1]}]"
        if len(pools) > 1 and cubes > tpu.CUBES_PER_BLOCK:
            yield (
                f"{last}.cubes",
                Refusal(
                    f"must leave at most {tpu.CUBES_PER_BLOCK} cubes in {block}",
                    got=f"{cubes} over {len(pools)} entries",
                    reason="a block has no more",
                    way_out="Ask for fewer cubes, or draw on another block.",
                ),
            )
        shared = _doubled([name for pool in pools for name in set(pool.reservation.sub_blocks)])
        for name in shared:
            yield (
                f"{last}.reservation.subBlocks",
                Refusal(
                    "must not name a sub-block of another entry",
                    got=name,
                    reason="its 16 hosts fill one cube, and the second pool would find none",
                    way_out="Name another sub-block.",
                ),
            )


def reservations_lie_in_the_zone(settings: "Settings", _now: datetime) -> Found:
    """A path that names a zone names the stack's."""
    entries = [("slicePools", index, pool.reservation) for index, pool in enumerate(settings.slice_pools)]
    entries += [
        ("multihostPools", index, pool.reservation)
        for index, pool in enumerate(settings.multihost_pools)
        if pool.reservation
    ]
    for section, index, reservation in entries:
        if reservation.zone not in (None, settings.zone):
            yield (
                f"{section}[{index}].reservation",
                Refusal(
                    f"must lie in {settings.zone}",
                    got=f"{reservation.name} in {reservation.zone}",
                    reason="hosts are made in the stack's zone, and a reservation serves its own zone only",
                    way_out="Set `zone` to the reservation's, or use another reservation.",
                ),
            )


def pool_names_are_unique_and_fit(settings: "Settings", _now: datetime) -> Found:
    """Every node pool that the stack makes has its own name, and GKE takes it."""
    owner = {names.SYSTEM_POOL: "the system pool"}
    for index, pool in enumerate(settings.slice_pools):
        longest = pool.pool_names[-1]
        if len(longest) > names.NODE_POOL_NAME_LENGTH:
            yield (
                f"slicePools[{index}].name",
                Refusal(
                    f"must leave room for the number: at most {names.NODE_POOL_NAME_LENGTH} characters with it",
                    got=f"{longest}, {len(longest)} characters",
                    reason="GKE refuses a longer pool name",
                    way_out=f"Shorten it by {len(longest) - names.NODE_POOL_NAME_LENGTH}.",
                ),
            )
        yield from _claimed(owner, pool.pool_names, f"slicePools[{index}].name")
    for index, static in enumerate(settings.multihost_pools):
        yield from _claimed(owner, [static.name], f"multihostPools[{index}].name")


def _claimed(owner: dict[str, str], pool_names: list[str], path: str) -> Found:
    for name in pool_names:
        if name in owner:
            yield (
                path,
                Refusal(
                    "must lead to pool names of its own",
                    got=name,
                    reason=f"{owner[name]} has that name already",
                    way_out="Choose another name.",
                ),
            )
            return
        owner[name] = f"`{path}`"


def static_slices_have_one_source(settings: "Settings", _now: datetime) -> Found:
    """A static slice is spot or reserved, and drawn from one place."""
    for index, pool in enumerate(settings.multihost_pools):
        path = f"multihostPools[{index}]"
        if pool.spot and pool.reservation is not None:
            yield (
                f"{path}.spot",
                Refusal(
                    "must not be true beside `reservation`",
                    got=True,
                    reason="spot hosts are spare ones, reserved hosts are not",
                    way_out="Remove one of the two.",
                ),
            )
        if pool.reservation is not None and len(pool.reservation.sub_blocks) > 1:
            yield (
                f"{path}.reservation.subBlocks",
                Refusal(
                    "must name at most one sub-block",
                    got=", ".join(pool.reservation.sub_blocks),
                    reason="the pool is one slice and is made in one place",
                    way_out="Keep one.",
                ),
            )
        if pool.reservation is not None and pool.reservation.sub_blocks and pool.reservation.block is None:
            yield (
                f"{path}.reservation.block",
                Refusal(
                    "must be given beside `subBlocks`",
                    reason="a sub-block lies in a block, and its path names both",
                    way_out="Add the block's name.",
                ),
            )


def _block(reservation: "Reservation", project: str) -> str:
    return f"{reservation.project or project}/{reservation.name}/{reservation.block}"


def _doubled(values: list[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
