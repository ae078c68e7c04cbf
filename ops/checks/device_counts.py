"""What JAX printed in the pods' logs, judged by chips.

Owns the line `Global device count: <g> Local device count: <l>` and its two readings: tpu7x has two devices a
chip (16 and 256 for 2x2x2 and 4x4x8), while the seed's text counts one (8 and 128). The local count tells which
reading a pod used, because a host's chips are known; so a pod that sees only its own host is never taken for one
that sees the slice. Refuses to guess where the line is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ops.checks.slice_jobset import MACHINE, SliceJobSet

# `set -x` prints the command too, but with no numbers in it.
_LINE = re.compile(r"Global device count:\s*(\d+)\s+Local device count:\s*(\d+)")


@dataclass(frozen=True)
class DeviceCounts:
    """What one pod counted."""

    global_count: int
    local_count: int

    @property
    def devices_per_chip(self) -> int | None:
        """2 on tpu7x, 1 where chips were counted; None where the local count is neither."""
        for devices_per_chip in {MACHINE.devices_per_chip, 1}:
            if self.local_count == MACHINE.chips_per_host * devices_per_chip:
                return devices_per_chip
        return None


def read_counts(log: str) -> DeviceCounts | None:
    """The last such line of a log, or None."""
    found = _LINE.findall(log)
    return DeviceCounts(int(found[-1][0]), int(found[-1][1])) if found else None


def judge_counts(jobset: SliceJobSet, counts: Mapping[str, DeviceCounts | None]) -> list[str]:
    """Every pod printed the line, and every slice has as many chips as its topology."""
    misses = []
    chips_per_host, wanted = MACHINE.chips_per_host, jobset.topology.chip_count
    for pod, count in sorted(counts.items()):
        if count is None:
            misses.append(f"pod {pod} printed no device counts")
            continue
        per_chip = count.devices_per_chip
        if per_chip is None:
            misses.append(
                f"pod {pod} sees {count.local_count} local devices: a host has {chips_per_host} chips, "
                f"{chips_per_host * MACHINE.devices_per_chip} devices"
            )
        elif count.global_count != wanted * per_chip:
            misses.append(
                f"pod {pod} sees {count.global_count} devices, {count.global_count / per_chip:g} chips, "
                f"instead of {wanted * per_chip} devices, {wanted} chips"
            )
    if len({count.devices_per_chip for count in counts.values() if count}) > 1:
        misses.append("the pods do not count alike: some see one device a chip, some two")
    return misses


def counts_in_words(jobset: SliceJobSet, counts: Sequence[DeviceCounts | None]) -> str:
    """`8 chips = 16 devices a slice, 4 chips = 8 devices a host`, from what was printed."""
    seen = {count for count in counts if count is not None}
    if not seen:
        return "no counts"
    if len(seen) > 1 or next(iter(seen)).devices_per_chip is None:
        return "counts " + ", ".join(sorted(f"{count.global_count}/{count.local_count}" for count in seen))
    (count,) = seen
    chips = count.global_count // (count.devices_per_chip or 1)
    return (
        f"{chips} chips = {count.global_count} devices a slice, "
        f"{MACHINE.chips_per_host} chips = {count.local_count} devices a host"
    )
