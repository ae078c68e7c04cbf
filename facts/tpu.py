"""Topologies, chips, hosts, devices and partition levels.

Owns the arithmetic from a shape to everything that follows from it. Refuses, with `ValueError`, a shape that
the hardware or GKE's slice controller cannot form. Sources: GKE guides on dynamic slicing, the Slice CRD, the
user-space slice controller (AI-Hypercomputer/xpk, slice/), Google's TPU device plugin; seen 2026-12-01.
"""

import re
from dataclasses import dataclass
from math import prod
from typing import Final, Literal

from facts.refusal import Refusal

CHIPS_PER_HOST: Final = 4
"""Of every machine type that forms multi-host slices here: tpu7x-standard-4t and ct6e-standard-4t."""

CUBE: Final = "4x4x4"
CHIPS_PER_CUBE: Final = 64
HOSTS_PER_CUBE: Final = CHIPS_PER_CUBE // CHIPS_PER_HOST
CUBES_PER_BLOCK: Final = 144
"""A block is 144 sub-blocks, each a cube: 9216 chips (Google's guide to All Capacity mode)."""

CUBES_PER_SUPER_SLICE_DOCUMENTED: Final = 32
"""A release note says at most 32 sub-blocks a super-slice, the guides 144: above this we warn."""

SUB_SLICE_SHAPES: Final = ("2x2x1", "2x2x2", "2x2x4", "2x4x4")
"""Exactly these, in this spelling, smallest first."""

PARTITION_SHAPES: Final = (*reversed(SUB_SLICE_SHAPES[1:]), SUB_SLICE_SHAPES[0])
"""The sub-cube partition levels, widest first, as Kueue's Topology lists them below the cube."""

PARTITION_LEVELS: Final = (CUBE, *PARTITION_SHAPES)

TPU7X: Final = "tpu7x"
V6E: Final = "tpu-v6e-slice"

SLICE_TOPOLOGY: Final = rf"^({'|'.join(SUB_SLICE_SHAPES)}|[0-9]*[048]x[0-9]*[048]x[0-9]*[048])$"
"""Shapes as a pattern for editors; `Topology.parse` is the judge."""


@dataclass(frozen=True, kw_only=True)
class TpuMachine:
    """A machine type with TPU chips."""

    name: str
    accelerator: str
    """Value of the node label `cloud.google.com/gke-tpu-accelerator`."""
    chips_per_host: int
    devices_per_chip: int
    """What JAX counts: a tpu7x chip is two devices, a v6e chip one."""
    slicing: Literal["dynamic", "static"]
    topologies: tuple[str, ...] = ()
    """The multi-host topologies of a static machine; a dynamic one forms any of `Topology`."""


# v6e topologies: GKE's table of TPU v6e node pools; multi-host means more than one ct6e-standard-4t host.
MACHINES: Final = {
    machine.name: machine
    for machine in (
        TpuMachine(
            name="tpu7x-standard-4t",
            accelerator=TPU7X,
            chips_per_host=4,
            devices_per_chip=2,
            slicing="dynamic",
        ),
        TpuMachine(
            name="ct6e-standard-4t",
            accelerator=V6E,
            chips_per_host=4,
            devices_per_chip=1,
            slicing="static",
            topologies=("2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
        ),
    )
}

SINGLE_HOST_MACHINES: Final = {"ct6e-standard-1t": "1x1", "ct6e-standard-8t": "2x4"}
"""v6e machines whose one host is the whole slice: they take no topology and join no multi-host pool."""

SINGLE_HOST_TOPOLOGIES: Final = ("1x1", "2x2")
"""What one ct6e-standard-4t host or less already is."""


def dimensions(topology: str) -> tuple[int, ...]:
    """`"2x2x4"` → `(2, 2, 4)`; refuses anything that is not two or three whole numbers joined by `x`."""
    if not re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4}){1,2}", topology):
        raise Refusal(
            "must be numbers joined by x, such as 2x2x2 (three for tpu7x, two for v6e)",
            got=topology,
            reason="it names how the chips are wired",
            way_out=f"Use one of {', '.join(SUB_SLICE_SHAPES)}, {CUBE} or a super-slice such as 4x4x8.",
        )
    return tuple(int(part) for part in topology.split("x"))


def chip_count(topology: str) -> int:
    """Chips of a topology."""
    return prod(dimensions(topology))


def static_host_count(machine_type: str, topology: str) -> int:
    """Hosts of a static multi-host slice: chips by chips a host."""
    return chip_count(topology) // MACHINES[machine_type].chips_per_host


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A shape that GKE's slice controller can form from tpu7x cubes."""

    shape: str
    chip_count: int

    @classmethod
    def parse(cls, shape: str) -> "Topology":
        """The topology of that spelling; refuses what is neither a sub-slice nor a super-slice."""
        parts = dimensions(shape)
        if shape in SUB_SLICE_SHAPES:
            return cls(shape=shape, chip_count=prod(parts))
        choices = f"{', '.join(SUB_SLICE_SHAPES)} or {CUBE} and its multiples"
        if len(parts) != 3:
            raise Refusal(
                "must have three dimensions",
                got=shape,
                reason="tpu7x chips form a 3-D torus",
                way_out=f"Use {choices}.",
            )
        if tuple(sorted(parts)) != parts:
            raise Refusal(
                "must list its dimensions in non-decreasing order",
                got=shape,
                reason="GKE knows each shape under one spelling",
                way_out=_ordered_way_out(parts, choices),
            )
        if any(part % 4 for part in parts):
            raise Refusal(
                f"must be one of {', '.join(SUB_SLICE_SHAPES)}, or have every dimension divisible by 4",
                got=shape,
                reason="a sub-slice is one of four partitions of a cube, a super-slice joins whole cubes",
                way_out=f"Use {choices}.",
            )
        if prod(parts) > CUBES_PER_BLOCK * CHIPS_PER_CUBE:
            raise Refusal(
                f"must not exceed {CUBES_PER_BLOCK * CHIPS_PER_CUBE} chips",
                got=f"{shape}, {prod(parts)} chips",
                reason=f"a super-slice lies in one block, which has {CUBES_PER_BLOCK} cubes",
                way_out="Use a smaller shape, or several slices.",
            )
        return cls(shape=shape, chip_count=prod(parts))

    @property
    def is_sub_slice(self) -> bool:
        """True for a part of a cube; a whole cube and more is a super-slice."""
        return self.shape in SUB_SLICE_SHAPES

    @property
    def host_count(self) -> int:
        """Hosts, which is also the pods of a group and the parallelism of a Job."""
        return self.chip_count // CHIPS_PER_HOST

    @property
    def device_count(self) -> int:
        """Devices as JAX counts them over the whole slice."""
        return self.chip_count * MACHINES["tpu7x-standard-4t"].devices_per_chip

    @property
    def cube_count(self) -> int:
        """Cubes that a super-slice joins; 1 for a sub-slice, which lies in one."""
        return max(1, self.chip_count // CHIPS_PER_CUBE)

    @property
    def partition_count(self) -> int:
        """Partition ids that its Slice lists: one, or one a cube."""
        return self.cube_count

    @property
    def partition_level(self) -> str:
        """The shape whose partition ids its Slice lists."""
        return self.shape if self.is_sub_slice else CUBE

    @property
    def slices_per_cube(self) -> int:
        """How many fit one cube; 0 when it needs more than one."""
        return CHIPS_PER_CUBE // self.chip_count


def _ordered_way_out(parts: tuple[int, ...], choices: str) -> str:
    ordered = "x".join(str(part) for part in sorted(parts))
    known = ordered in SUB_SLICE_SHAPES or not any(part % 4 for part in parts)
    return f"Write {ordered}." if known else f"Use {choices}."


def check_slice_topology(shape: str) -> str:
    """The shape, if tpu7x cubes can form it."""
    return Topology.parse(shape).shape


def machine_types(slicing: Literal["dynamic", "static"]) -> list[str]:
    """Machine types that form slices that way."""
    return [machine.name for machine in MACHINES.values() if machine.slicing == slicing]


def check_slice_machine_type(machine_type: str) -> str:
    """The machine type, if its slices are dynamic."""
    if machine_type in machine_types("dynamic"):
        return machine_type
    static = machine_type in machine_types("static") or machine_type in SINGLE_HOST_MACHINES
    raise Refusal(
        f"must be {' or '.join(machine_types('dynamic'))}",
        got=machine_type,
        reason="only tpu7x has dynamic slicing",
        way_out="Static slices are listed under `multihostPools`." if static else "Leave the key out.",
    )


def check_multihost_machine_type(machine_type: str) -> str:
    """The machine type, if its multi-host slices are static."""
    if machine_type in machine_types("static"):
        return machine_type
    if machine_type in SINGLE_HOST_MACHINES:
        reason = (
            f"one such host is a whole slice ({SINGLE_HOST_MACHINES[machine_type]}), so it joins no other"
        )
    elif machine_type in machine_types("dynamic"):
        reason = "tpu7x hosts are sliced dynamically from reserved cubes"
    else:
        reason = "the program has been checked against v6e alone"
    raise Refusal(
        f"must be {' or '.join(machine_types('static'))}",
        got=machine_type,
        reason=reason,
        way_out="List tpu7x cubes under `slicePools`." if "tpu7x" in machine_type else "Leave the key out.",
    )


def check_static_topology(topology: str) -> str:
    """The topology, if it is a multi-host one of v6e."""
    machine = MACHINES["ct6e-standard-4t"]
    if topology in machine.topologies:
        return topology
    choices = ", ".join(machine.topologies)
    if topology in SINGLE_HOST_TOPOLOGIES:
        reason = "one host holds all of it, and GKE refuses a topology for a single-host pool"
    elif len(dimensions(topology)) == 3:
        reason = "v6e chips form a 2-D torus; three dimensions are tpu7x"
    elif "x".join(str(part) for part in sorted(dimensions(topology))) in machine.topologies:
        reason = "GKE spells the smaller dimension first"
    else:
        reason = "GKE offers no such v6e slice"
    raise Refusal(f"must be one of {choices}", got=topology, reason=reason, way_out=f"Use one of {choices}.")
