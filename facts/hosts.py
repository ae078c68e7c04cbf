"""What a TPU host leaves to pods.

Owns the allocatable CPU and memory of TPU machine types, as GKE reports them on nodes; chips are in `facts.tpu`.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class HostCapacity:
    """Allocatable of one host."""

    cpu_millis: int
    memory_kib: int


# Measured on a tpu7x node by a third-party runbook, seen 2026-12-01: 223370m of 224 vCPUs, 919 GiB of 960.
TPU7X_STANDARD_4T: Final = HostCapacity(cpu_millis=223370, memory_kib=963568636)
