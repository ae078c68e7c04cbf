"""Telling a live process from another one that was given the same number."""

from __future__ import annotations

from pathlib import Path


def start_time_of(pid: int) -> int | None:
    """When the process started, in clock ticks since boot (/proc/PID/stat, field 22); None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended: only its parent has not asked yet.
    return None if fields[0] == "Z" else int(fields[19])
