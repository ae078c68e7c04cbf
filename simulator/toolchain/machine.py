"""Says in a second that this machine cannot build the toolchain, instead of after twenty minutes.

Checks platform, free disk and free memory, and only when something has to be built.
"""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from simulator.toolchain.errors import ToolchainError

BUILD_DISK_BYTES = 17 * 1000**3
"""Module cache (4.3 GB), compile cache (10 GB) and programs (1 GB) at their peak, and some room."""
BUILD_MEMORY_BYTES = 5 * 1000**3
"""Compiling the kubernetes provider's SDK takes 4.6 GB (measured 2026-12-01)."""
AMPLE_MEMORY_BYTES = 12 * 1000**3
"""With this much the compiler collects its garbage less often: a third less work, 8 GB at the most."""

_GO_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def go_platform(system: str = "", machine: str = "") -> str:
    """This machine's platform as Go names it, such as linux-amd64."""
    system = system or platform.system()
    machine = machine or platform.machine()
    if system != "Linux" or machine not in _GO_MACHINES:
        raise ToolchainError(
            f"this runs on Linux x86_64 or aarch64 (got {system} {machine}): the simulated hosts are Linux processes "
            "in namespaces of their own. Use a Linux machine, or a virtual machine with 2 cores and 12 GB."
        )
    return f"linux-{_GO_MACHINES[machine]}"


def existing_parent(folder: Path) -> Path:
    """The nearest folder above (or this one) that is there already."""
    while not folder.exists():
        folder = folder.parent
    return folder


def check_disk(cache: Path, needed: int = BUILD_DISK_BYTES) -> None:
    """Refuses to fill a disk that is too small; what a stopped build already put there counts."""
    free = shutil.disk_usage(existing_parent(cache)).free
    if free >= needed:
        return
    there = _bytes_below(cache / "build")
    if free + there < needed:
        raise ToolchainError(
            f"building the toolchain needs {needed / 1e9:.0f} GB of disk, of which {(free + there) / 1e9:.1f} GB are "
            f"there for {cache} (1 GB stays afterwards): free some, or set TPU_SLICES_CACHE to a folder on a larger "
            "disk."
        )


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            total += (Path(parent) / name).lstat().st_size
    return total


def available_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that a new process may use: the kernel's estimate with swap, within the container's limit."""
    fields = _fields(proc / "meminfo")
    available = fields.get("MemAvailable", 0) + fields.get("SwapFree", 0)
    try:
        limit = int((cgroups / "memory.max").read_text(encoding="utf-8"))
        used = int((cgroups / "memory.current").read_text(encoding="utf-8"))
        cached = _cgroup_cache(cgroups)
    except (OSError, ValueError):  # no container, or "max": no limit of its own
        return available
    return min(available, limit - used + cached)


def _fields(meminfo: Path) -> Mapping[str, int]:
    lines = (line.split() for line in meminfo.read_text(encoding="utf-8").splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3}


def _cgroup_cache(cgroups: Path) -> int:
    """File pages that the kernel gives back when asked; they count as used in a container."""
    words = (line.split() for line in (cgroups / "memory.stat").read_text(encoding="utf-8").splitlines())
    return sum(int(value) for name, value in words if name in ("inactive_file", "active_file"))


def check_memory(needed: int = BUILD_MEMORY_BYTES) -> None:
    """Refuses a build that the kernel would kill."""
    available = available_memory()
    if available < needed:
        raise ToolchainError(
            f"building the toolchain needs {needed / 1e9:.0f} GB of free memory (got {available / 1e9:.1f} GB): one "
            "of its packages alone takes 4.6 GB to compile. Close other programs, or add swap."
        )
