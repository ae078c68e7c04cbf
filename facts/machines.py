"""CPU machine types, and whether the system pool can hold what runs on it.

Owns the reading of a machine type's name, GKE's reservations on a node, and the requests of the controllers.
Refuses, with `ValueError`, a TPU or unreadable machine type for the system pool. Sources: Compute Engine
machine families and GKE "node allocatable" guide, seen 2026-12-01; charts of Kueue 0.18.2, JobSet 0.12.0,
LWS 0.8.0.
"""

import re
from dataclasses import dataclass
from typing import Final

from facts.refusal import Refusal

# Families of ordinary machines; memory a vCPU in GiB by class.
_FAMILIES: Final = {
    "c2": {"standard": 4.0},
    "c2d": {"standard": 4.0, "highcpu": 2.0, "highmem": 8.0},
    "c3": {"standard": 4.0, "highcpu": 2.0, "highmem": 8.0},
    "c3d": {"standard": 4.0, "highcpu": 2.0, "highmem": 8.0},
    "c4": {"standard": 3.75, "highcpu": 2.0, "highmem": 7.75},
    "c4d": {"standard": 3.75, "highcpu": 1.875, "highmem": 7.75},
    "e2": {"standard": 4.0, "highcpu": 1.0, "highmem": 8.0},
    "n1": {"standard": 3.75, "highcpu": 0.9, "highmem": 6.5},
    "n2": {"standard": 4.0, "highcpu": 1.0, "highmem": 8.0},
    "n2d": {"standard": 4.0, "highcpu": 1.0, "highmem": 8.0},
    "n4": {"standard": 4.0, "highcpu": 2.0, "highmem": 8.0},
}
_ARM: Final = ("t2a-", "c4a-", "n4a-")
_TPU: Final = ("ct", "tpu")
_ACCELERATED: Final = ("a2-", "a3-", "a4-", "g2-", "g4-")


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """CPU in thousandths and memory in MiB."""

    cpu_millis: int
    memory_mib: int


# What every GKE node runs besides: DNS cache, data plane, metrics, logging, CSI drivers (about, assumed).
NODE_OVERHEAD: Final = Capacity(cpu_millis=700, memory_mib=1100)

# The controllers' requests, as their charts ask; the slice controller's are ours (cluster-toolkit asks the same).
KUEUE: Final = Capacity(cpu_millis=500, memory_mib=512)
JOBSET: Final = Capacity(cpu_millis=500, memory_mib=128)
LWS: Final = Capacity(cpu_millis=1000, memory_mib=1024)
SLICE_CONTROLLER: Final = Capacity(cpu_millis=2000, memory_mib=4096)
# llm-d's picker: 4 CPU, 8 GiB (guides, base values).
ENDPOINT_PICKER: Final = Capacity(cpu_millis=4000, memory_mib=8192)


def controller_requests(*, dynamic_slicing: bool, endpoint_picker: bool) -> dict[str, Capacity]:
    """What the system pool must hold, by controller."""
    found = {"LWS": LWS}
    if dynamic_slicing:
        found |= {"Kueue": KUEUE, "JobSet": JOBSET, "the slice controller": SLICE_CONTROLLER}
    if endpoint_picker:
        found["the endpoint picker"] = ENDPOINT_PICKER
    return found


def unplaced(requests: dict[str, Capacity], machine_type: str, node_count: int) -> list[str]:
    """Controllers that find no room on so many nodes, the largest placed first."""
    node = allocatable(machine_type)
    free = [
        [node.cpu_millis - NODE_OVERHEAD.cpu_millis, node.memory_mib - NODE_OVERHEAD.memory_mib]
        for _ in range(node_count)
    ]
    left_over = []
    for name, request in sorted(requests.items(), key=lambda item: -item[1].cpu_millis):
        for room in free:
            if room[0] >= request.cpu_millis and room[1] >= request.memory_mib:
                room[0] -= request.cpu_millis
                room[1] -= request.memory_mib
                break
        else:
            left_over.append(name)
    return left_over


def machine_capacity(machine_type: str) -> Capacity:
    """What the machine has."""
    match = re.fullmatch(r"(?P<family>[a-z]\d[a-z]?)-(?P<kind>[a-z]+)-(?P<vcpus>\d+)", machine_type)
    if match and match["kind"] in _FAMILIES.get(match["family"], {}):
        vcpus = int(match["vcpus"])
        gib = vcpus * _FAMILIES[match["family"]][match["kind"]]
        return Capacity(cpu_millis=vcpus * 1000, memory_mib=int(gib * 1024))
    custom = re.fullmatch(r"(n1|n2|n2d|n4|e2)-custom-(?P<vcpus>\d+)-(?P<mib>\d+)(-ext)?", machine_type)
    if custom:
        return Capacity(cpu_millis=int(custom["vcpus"]) * 1000, memory_mib=int(custom["mib"]))
    raise Refusal(
        "must be an ordinary CPU machine type such as n2-standard-32",
        got=machine_type,
        reason=_why_not(machine_type),
        way_out="The codelab uses n2-standard-32.",
    )


def check_system_machine_type(machine_type: str) -> str:
    """The machine type, if the controllers can run on it."""
    machine_capacity(machine_type)
    return machine_type


def allocatable(machine_type: str) -> Capacity:
    """What GKE leaves to pods: it keeps part of the CPU and memory, and 100 MiB for eviction."""
    whole = machine_capacity(machine_type)
    cpu_kept = 0.0
    left = whole.cpu_millis
    for step, share in ((1000, 0.06), (1000, 0.01), (2000, 0.005), (left, 0.0025)):
        taken = min(step, left)
        cpu_kept += taken * share
        left -= taken
    memory_kept = 100.0
    left = whole.memory_mib
    for step, share in ((4096, 0.25), (4096, 0.20), (8192, 0.10), (114688, 0.06), (left, 0.02)):
        taken = min(step, left)
        memory_kept += taken * share
        left -= taken
    return Capacity(
        cpu_millis=whole.cpu_millis - int(cpu_kept), memory_mib=max(0, whole.memory_mib - int(memory_kept))
    )


def _why_not(machine_type: str) -> str:
    if machine_type.startswith(_TPU):
        return "TPU hosts carry a taint that keeps the controllers off"
    if machine_type.startswith(_ACCELERATED):
        return "a GPU host would idle under the controllers"
    if machine_type.startswith(_ARM):
        return "the slice controller's image is built for amd64"
    if machine_type.startswith(("e2-micro", "e2-small", "e2-medium", "f1-", "g1-")):
        return "a shared core cannot hold the controllers' requests"
    return "its size cannot be read from the name, so nobody could tell whether the controllers fit"
