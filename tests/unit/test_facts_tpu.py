"""Shapes and what follows from them, over whole tables."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import tpu
from facts.refusal import Refusal

# GKE's guide on dynamic slicing and llm-d's, seen 2026-12-01:
# shape → chips, hosts, JAX devices, slices that fit a cube, partition ids.
DOCUMENTED = {
    "2x2x1": (4, 1, 8, 16, 1),
    "2x2x2": (8, 2, 16, 8, 1),
    "2x2x4": (16, 4, 32, 4, 1),
    "2x4x4": (32, 8, 64, 2, 1),
    "4x4x4": (64, 16, 128, 1, 1),
    "4x4x8": (128, 32, 256, 0, 2),
    "4x8x8": (256, 64, 512, 0, 4),
    "8x16x16": (2048, 512, 4096, 0, 32),
}


@pytest.mark.parametrize("shape", DOCUMENTED)
def test_a_shape_leads_to_the_documented_counts(shape: str) -> None:
    topology = tpu.Topology.parse(shape)
    counts = (
        topology.chip_count,
        topology.host_count,
        topology.device_count,
        topology.slices_per_cube,
        topology.partition_count,
    )
    assert counts == DOCUMENTED[shape]


def test_a_block_is_what_the_capacity_guide_says() -> None:
    # "1 block = 144 sub-blocks = 2304 hosts = 9216 chips".
    assert tpu.CUBES_PER_BLOCK * tpu.HOSTS_PER_CUBE == 2304
    assert tpu.CUBES_PER_BLOCK * tpu.CHIPS_PER_CUBE == 9216


def formable(parts: tuple[int, ...]) -> bool:
    """The slice controller's own rule, written anew from its error texts."""
    if "x".join(map(str, parts)) in ("2x2x1", "2x2x2", "2x2x4", "2x4x4"):
        return True
    a, b, c = parts
    return not (a % 4 or b % 4 or c % 4) and a <= b <= c and a * b * c <= 9216


def test_exactly_the_formable_shapes_are_taken() -> None:
    taken = set()
    for parts in itertools.product(range(1, 33), repeat=3):
        shape = "x".join(map(str, parts))
        try:
            tpu.Topology.parse(shape)
        except Refusal:
            assert not formable(parts), shape
        else:
            assert formable(parts), shape
            taken.add(shape)
    # The control: some were taken, of both kinds.
    assert {"2x2x1", "4x4x4", "16x16x32"} <= taken


@given(st.text(alphabet="0123456789xX -", max_size=12))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        topology = tpu.Topology.parse(text)
    except Refusal:
        return
    assert topology.host_count * tpu.CHIPS_PER_HOST == topology.chip_count
    assert topology.is_sub_slice == (topology.partition_level != tpu.CUBE)


def test_partition_levels_nest_each_half_of_the_one_above() -> None:
    counts = [tpu.Topology.parse(level).chip_count for level in tpu.PARTITION_LEVELS]
    assert counts == [64, 32, 16, 8, 4]


def test_a_shape_in_the_wrong_order_is_told_the_right_one() -> None:
    with pytest.raises(Refusal, match=r"Write 4x8x8\."):
        tpu.Topology.parse("8x4x8")


@pytest.mark.parametrize(("topology", "hosts"), [("2x4", 2), ("4x4", 4), ("4x8", 8), ("16x16", 64)])
def test_a_static_slice_has_a_host_for_every_four_chips(topology: str, hosts: int) -> None:
    assert tpu.static_host_count("ct6e-standard-4t", topology) == hosts


def test_every_static_topology_is_multi_host_and_spelt_smaller_side_first() -> None:
    for topology in tpu.MACHINES["ct6e-standard-4t"].topologies:
        rows, columns = tpu.dimensions(topology)
        assert rows <= columns
        assert tpu.chip_count(topology) > tpu.CHIPS_PER_HOST
