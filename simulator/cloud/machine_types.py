"""Machine types that node pools may have, and what a node of each leaves to pods.

Owns the reading of a machine type's name and GKE's reservation rules for CPU nodes. TPU hosts' figures that were
measured stand in `facts.hosts`. Refuses a name that Compute Engine would not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from facts import hosts, tpu

# Compute Engine's machine families: GiB of memory a vCPU. Seen 2026-12-01; only shapes that node pools use.
_GIB_PER_VCPU: Final = {
    ("n2", "standard"): 4.0,
    ("n2", "highmem"): 8.0,
    ("n2", "highcpu"): 1.0,
    ("n2d", "standard"): 4.0,
    ("n2d", "highmem"): 8.0,
    ("n4", "standard"): 4.0,
    ("n4", "highmem"): 8.0,
    ("e2", "standard"): 4.0,
    ("e2", "highmem"): 8.0,
    ("e2", "highcpu"): 1.0,
    ("c3", "standard"): 4.0,
    ("c4", "standard"): 3.75,
    ("m1", "ultramem"): 24.025,
    ("m1", "megamem"): 14.9,
}
_NAMED: Final = {"e2-medium": (2, 4.0), "e2-small": (2, 2.0), "e2-micro": (2, 1.0)}
# TPU VMs: Google's TPU machine type tables.
_TPU_VMS: Final = {"ct6e-standard-4t": (180, 720.0), "tpu7x-standard-4t": (224, 960.0)}

# GKE "Plan node sizes": memory kept for the system, share of each band in GiB.
_MEMORY_BANDS: Final = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (float("inf"), 0.02))
_EVICTION_KIB: Final = 100 * 1024
# The same page: millicores kept of the first core, the second, the next two, and each beyond.
_CPU_BANDS: Final = ((1, 60), (1, 10), (2, 5), (float("inf"), 2.5))
# What a 100 GB boot disk leaves to pods on Container-Optimized OS; seen on GKE nodes.
EPHEMERAL_STORAGE: Final = "47093746742"


@dataclass(frozen=True)
class MachineType:
    """A machine type as a node."""

    name: str
    cpu_millis: int
    """Allocatable."""
    memory_kib: int
    """Allocatable."""

    @property
    def is_tpu(self) -> bool:
        """True for TPU hosts."""
        return self.name in tpu.MACHINES

    def allocatable(self, max_pods: int) -> dict[str, str]:
        """The node's `status.allocatable`, without chips."""
        return {
            "cpu": f"{self.cpu_millis}m",
            "memory": f"{self.memory_kib}Ki",
            "ephemeral-storage": EPHEMERAL_STORAGE,
            "pods": str(max_pods),
        }


def machine_type(name: str) -> MachineType | None:
    """The machine type of that name, or None."""
    if name == "tpu7x-standard-4t":
        measured = hosts.TPU7X_STANDARD_4T
        return MachineType(name, measured.cpu_millis, measured.memory_kib)
    shape = _TPU_VMS.get(name) or _NAMED.get(name) or _cpu_shape(name)
    if shape is None:
        return None
    vcpus, gib = shape
    kept_kib = _banded(gib, _MEMORY_BANDS) * 1024**2
    memory_kib = int(gib * 1024**2 - kept_kib - _EVICTION_KIB)
    return MachineType(name, int(vcpus * 1000 - _banded(vcpus, _CPU_BANDS)), memory_kib)


def _cpu_shape(name: str) -> tuple[int, float] | None:
    match = re.fullmatch(r"([a-z]\d[a-z]?)-([a-z]+)-(\d{1,3})", name)
    if match is None or (match[1], match[2]) not in _GIB_PER_VCPU:
        return None
    vcpus = int(match[3])
    return vcpus, vcpus * _GIB_PER_VCPU[match[1], match[2]]


def _banded(amount: float, bands: tuple[tuple[float, float], ...]) -> float:
    kept = 0.0
    for width, share in bands:
        kept += min(amount, width) * share
        amount = max(0.0, amount - width)
    return kept
