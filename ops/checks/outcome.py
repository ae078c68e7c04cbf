"""What a check found, in the one form that the table and `--json` print.

Owns the four answers a check can give and what each means for the exit code. Refuses to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """A check is proven, missed, impossible on this stack's shape, or could not be tried."""

    OK = "ok"
    MISS = "MISS"
    NOT_RUN = "not run"
    """Could not be tried because something before it missed: nothing is proven, so it counts as a miss."""
    NOT_APPLICABLE = "n/a"
    """The stack's shape cannot hold it: nothing is wrong."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One row."""

    step: str
    """The seed's step that it repeats; empty for what the seed does not do."""
    check: str
    status: Status
    seen: str = ""
    reasons: tuple[str, ...] = ()
    """Why it is not `ok`, and what to do about it."""
    seconds: float = 0.0

    @property
    def proven(self) -> bool:
        return self.status in (Status.OK, Status.NOT_APPLICABLE)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "status": self.status.name.lower(), "seconds": round(self.seconds, 3)}


def judged(
    step: str, check: str, *, seen: str, misses: Sequence[str], seconds: float = 0.0, most: int = 8
) -> Finding:
    """A finding from the list of what is wrong: none is `ok`."""
    shown = list(misses[:most]) + ([f"and {len(misses) - most} more"] if len(misses) > most else [])
    return Finding(
        step=step,
        check=check,
        status=Status.MISS if misses else Status.OK,
        seen=seen,
        reasons=tuple(shown),
        seconds=seconds,
    )
