"""The hosts of a node pool as Kubernetes nodes: names, labels, annotations, taints, allocatable.

Pure: the same pool gives the same hosts, so a restart changes nothing. TPU hosts carry what facts of 2026-12-01
(section 2) say of tpu7x and v6e nodes: partition ids are the reservation's, opaque and stable, and hosts of one
partition share them whatever their names. Labels that a Slice brings are the add-on's, not ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from facts import labels, tpu
from simulator.cloud.identifiers import opaque
from simulator.cloud.machine_types import MachineType
from simulator.cloud.region_file import SubBlock

MACHINE_FAMILY = "cloud.google.com/machine-family"
OS_DISTRIBUTION = "cloud.google.com/gke-os-distribution"
METADATA_SERVER = "iam.gke.io/gke-metadata-server-enabled"
SPOT = "cloud.google.com/gke-spot"
# The device plugin's label for parts of a v6e slice; the parts it knows.
_V6E_PARTS: Final = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}


@dataclass(frozen=True, kw_only=True)
class PoolShape:
    """What the hosts of a pool have in common."""

    project_number: str
    cluster: str
    pool: str
    uid: str
    """The cloud's own name of this very pool: a pool made again gets other host names."""
    region: str
    machine: MachineType
    max_pods: int
    node_config: Mapping[str, Any] = field(default_factory=dict)


def cpu_hosts(shape: PoolShape, zones: list[str], count_per_zone: int) -> list[dict[str, Any]]:
    """Ordinary nodes, spread over zones."""
    keys = [(zone, f"{zone}/{number}") for zone in zones for number in range(count_per_zone)]
    suffixes = _suffixes(shape, [key for _zone, key in keys])
    return [_host(shape, zone, suffixes[key], {}) for zone, key in keys]


def tpu7x_hosts(
    shape: PoolShape, zone: str, placement: Mapping[str, Any], sub_block: SubBlock
) -> list[dict[str, Any]]:
    """Hosts of a cube, provisioned and not yet wired to any slice."""
    suffixes = _suffixes(shape, placement["host_numbers"])
    return [
        _host(shape, zone, suffixes[number], _tpu(shape) | _cube_labels(placement, sub_block, number))
        for number in placement["host_numbers"]
    ]


def v6e_hosts(shape: PoolShape, zone: str, count: int, topology: str) -> list[dict[str, Any]]:
    """Hosts of a static slice, wired when the pool is made."""
    parts = [part for part in _V6E_PARTS if tpu.chip_count(part) <= tpu.chip_count(topology)]
    suffixes = _suffixes(shape, list(range(count)))
    hosts = []
    for number in range(count):
        own = _tpu(shape) | {labels.TPU_TOPOLOGY: topology}
        for part in parts:
            index = number // max(1, tpu.chip_count(part) // tpu.CHIPS_PER_HOST)
            own[f"cloud.google.com/gke-tpu-slice-{part}-id"] = opaque(shape.uid, part, index)
        hosts.append(_host(shape, zone, suffixes[number], own))
    return hosts


def instance_group(shape: PoolShape, zone: str) -> str:
    """Path of the managed instance group that makes the hosts of a zone."""
    name = f"{_prefix(shape)}-{opaque(shape.uid, zone, length=8)}-grp"
    return f"projects/{shape.project_number}/zones/{zone}/instanceGroupManagers/{name}"


def _suffixes(shape: PoolShape, keys: Sequence[Any]) -> dict[Any, str]:
    """Four characters a host, as random as GKE's: hosts of a partition are no neighbours by name."""
    found: dict[Any, str] = {}
    for key in keys:
        attempts = (opaque(shape.uid, key, attempt, length=4) for attempt in itertools.count())
        found[key] = next(suffix for suffix in attempts if suffix not in found.values())
    return found


def _host(shape: PoolShape, zone: str, suffix: str, own: Mapping[str, str]) -> dict[str, Any]:
    config = shape.node_config
    name = f"{_prefix(shape)}-{opaque(shape.uid, zone, length=8)}-{suffix}"
    allocatable = shape.machine.allocatable(shape.max_pods)
    taints = [
        {"key": taint["key"], "value": taint["value"], "effect": _EFFECTS[taint["effect"]]}
        for taint in config.get("taints") or []
    ]
    if shape.machine.is_tpu:
        allocatable[labels.TPU_RESOURCE] = str(tpu.MACHINES[shape.machine.name].chips_per_host)
        taints.append(
            {"key": labels.TPU_TAINT, "value": labels.TPU_TAINT_VALUE, "effect": labels.TPU_TAINT_EFFECT}
        )
    return {
        "name": name,
        "labels": {
            **(config.get("labels") or {}),
            **_common_labels(shape, zone),
            **own,
            labels.HOSTNAME: name,
        },
        "annotations": {labels.CREATED_BY_MIG: instance_group(shape, zone)},
        "allocatable": allocatable,
        "taints": taints,
    }


def _prefix(shape: PoolShape) -> str:
    return f"gke-{shape.cluster[:16].rstrip('-')}-{shape.pool[:18].rstrip('-')}"


def _common_labels(shape: PoolShape, zone: str) -> dict[str, str]:
    config = shape.node_config
    common = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        labels.INSTANCE_TYPE: shape.machine.name,
        labels.REGION: shape.region,
        labels.ZONE: zone,
        labels.NODE_POOL: shape.pool,
        MACHINE_FAMILY: shape.machine.name.split("-")[0],
        OS_DISTRIBUTION: "cos",
    }
    if (config.get("workloadMetadataConfig") or {}).get("mode") == "GKE_METADATA":
        common[METADATA_SERVER] = "true"
    if config.get("spot"):
        common[SPOT] = "true"
    return common


def _tpu(shape: PoolShape) -> dict[str, str]:
    machine = tpu.MACHINES[shape.machine.name]
    return {
        labels.TPU_ACCELERATOR: machine.accelerator,
        labels.ACCELERATOR_COUNT: str(machine.chips_per_host),
        # assumed: the codelab selects nodes by it, the vendor documents only the taint of that name.
        labels.TPU_PRESENT: labels.TPU_TAINT_VALUE,
    }


def _cube_labels(placement: Mapping[str, Any], sub_block: SubBlock, number: int) -> dict[str, str]:
    block = (placement["project"], placement["reservation"], placement["block"])
    cube = (*block, placement["sub_block"])
    index = number - sub_block.host_numbers.start
    present = {other - sub_block.host_numbers.start for other in placement["host_numbers"]}
    found = {
        labels.TOPOLOGY_MODE: labels.TOPOLOGY_MODE_PROVISION_ONLY,
        labels.TOPOLOGY_BLOCK: opaque(*block),
        labels.TOPOLOGY_SUB_BLOCK: opaque(*cube),
        labels.TOPOLOGY_HOST: opaque(*cube, number),
        labels.RESERVATION_NAME: placement["reservation"],
    }
    for shape in tpu.PARTITION_LEVELS:
        width = tpu.chip_count(shape) // tpu.CHIPS_PER_HOST
        first = index // width * width
        is_whole = set(range(first, first + width)) <= present
        found[labels.partition_id(shape)] = opaque(*cube, shape, first // width)
        found[labels.partition_state(shape)] = _state(shape, sub_block, is_whole)
    return found


def _state(shape: str, sub_block: SubBlock, is_whole: bool) -> str:
    if not is_whole:
        return labels.PARTITION_INCOMPLETE
    is_degraded = shape == tpu.CUBE and sub_block.health == "DEGRADED"
    return labels.PARTITION_DEGRADED if is_degraded else labels.PARTITION_HEALTHY
