"""What a stack asks of a region that the region does not have: said before anything is made.

Pure. On the real cloud these are questions to Google (`safety.liveChecks`); a region's file answers them at once, so
that a stack that can never come up leaves nothing half made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from settings import Settings, SlicePool
from simulator.cloud.region_file import Block, RegionFile, Reservation


def shortfalls(settings: Settings, region: RegionFile) -> list[str]:
    """One sentence each; empty when the stack fits."""
    return [*_place(settings, region), *_cubes(settings, region), *_chips(settings, region)]


def _place(settings: Settings, region: RegionFile) -> Iterator[str]:
    if region.project(settings.project) is None:
        known = ", ".join(project.id for project in region.projects)
        yield (
            f"`gcp:project` must be a project of the region (got {settings.project}): it has {known}. Choose one, or "
            "start the region from another file."
        )
    for path, zone in [
        ("zone", settings.zone),
        *(("cluster.systemPool.zones", zone) for zone in settings.cluster.system_pool.zones),
    ]:
        if region.zone(zone) is None:
            known = ", ".join(item.name for item in region.zones)
            yield f"`{path}` must be a zone of the region (got {zone}): it has {known}. Choose one of them."
    if settings.cluster.version not in region.offered_versions:
        known = ", ".join(sorted(region.offered_versions))
        yield (
            f"`cluster.version` must be offered (got {settings.cluster.version}): the region offers {known}. Choose "
            "one of them."
        )


def _cubes(settings: Settings, region: RegionFile) -> Iterator[str]:
    asked: Counter[tuple[str, str, str | None]] = Counter()
    for index, pool in enumerate(settings.slice_pools):
        path = f"slicePools[{index}]"
        found = _reservation(settings, region, pool)
        if found is None:
            yield (
                f"`{path}.reservation` must be one that {settings.project} may use in {settings.zone} (got "
                f"{pool.reservation.value(settings.project)}): the region has none of that name there. Correct it."
            )
            continue
        blocks = [block for block in found.blocks if pool.reservation.block in (None, block.name)]
        if not blocks:
            names = ", ".join(block.name for block in found.blocks)
            yield (
                f"`{path}.reservation.block` must be a block of {found.name} (got {pool.reservation.block}): it has "
                f"{names}. Choose one of them."
            )
            continue
        yield from _missing_sub_blocks(pool, blocks, path)
        key = (found.project, found.name, pool.reservation.block)
        asked[key] += pool.cubes
        free = sum(_free_cubes(block) for block in blocks)
        if asked[key] > free:
            yield (
                f"`{path}.cubes` must be at most {free - asked[key] + pool.cubes} (got {pool.cubes}): "
                f"{' and '.join(block.name for block in blocks)} of reservation {found.name} has {free} free cubes in "
                "all. Ask for fewer, or name another block."
            )


def _reservation(settings: Settings, region: RegionFile, pool: SlicePool) -> Reservation | None:
    owner = pool.reservation.project or settings.project
    for found in region.reservations:
        is_shared = settings.project in (found.project, *found.shared_with)
        is_same = (found.project, found.name, found.zone) == (owner, pool.reservation.name, settings.zone)
        if is_same and is_shared and found.machine_type == pool.machine_type:
            return found
    return None


def _missing_sub_blocks(pool: SlicePool, blocks: list[Block], path: str) -> Iterator[str]:
    known = {sub_block.name for block in blocks for sub_block in block.sub_blocks}
    for name in pool.reservation.sub_blocks:
        if name not in known:
            yield (
                f"`{path}.reservation.subBlocks` must be sub-blocks of the block (got {name}): it has "
                f"{', '.join(sorted(known))}. Choose among them."
            )


def _free_cubes(block: Block) -> int:
    return sum(1 for item in block.sub_blocks if item.in_use_host_count == 0 and item.usable_host_numbers)


def _chips(settings: Settings, region: RegionFile) -> Iterator[str]:
    project = region.project(settings.project)
    quota = (
        next((item.chips for item in project.tpu_quotas if item.family == "CT6E"), None) if project else None
    )
    asked = sum(pool.chip_count for pool in settings.multihost_pools if pool.reservation is None)
    if quota is not None and asked > quota:
        yield (
            f"`multihostPools` must ask for at most {quota} v6e chips on demand (got {asked}): the project has no more "
            "quota in the region. Use fewer or smaller pools, or a reservation."
        )
