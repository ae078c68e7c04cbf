"""A region is derived from any stack's settings, and a stack that does not fit a region is told before it begins."""

from pathlib import Path

import pytest
import yaml

import settings
from simulator.cloud import derive, region_file
from simulator.cloud.shortfalls import shortfalls
from tests.fakes.cloud_region import LOCAL_REGION

ROOT = Path(__file__).parents[2]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


def config_of(stack):
    return yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]


def local_with(**changes):
    config = config_of("local")
    for key, value in changes.items():
        config[f"tpu-slices:{key}"] = value
    return settings.load(config)


@pytest.mark.parametrize("stack", STACKS)
def test_every_committed_stack_fits_the_region_derived_from_it(stack):
    loaded = settings.load(config_of(stack))
    assert shortfalls(loaded, derive.region_of(loaded)) == []


@pytest.mark.parametrize("stack", STACKS)
def test_a_derived_region_is_a_region_file(stack):
    region = derive.region_of(settings.load(config_of(stack)))
    assert region_file.parse(yaml.safe_load(region_file.dump(region))) == region


def test_stack_local_fits_the_committed_local_region():
    assert shortfalls(settings.load(config_of("local")), region_file.load(LOCAL_REGION)) == []


def test_a_shared_reservation_belongs_to_its_owner_and_is_shared_with_the_stack():
    [reservation] = derive.region_of(settings.load(config_of("prod"))).reservations
    assert (reservation.project, reservation.shared_with) == ("example-capacity", ["example-prod"])
    assert reservation.maintenance_interval == "PERIODIC"
    assert len(reservation.blocks[0].sub_blocks) == 4


def test_two_pools_of_one_block_get_sub_blocks_of_their_own():
    pools = [
        {"name": name, "cubes": 2, "reservation": {"name": "tpu7-reservation", "block": "block-0"}}
        for name in ("one", "two")
    ]
    [reservation] = derive.region_of(local_with(slicePools=pools)).reservations
    assert len({sub_block.name for sub_block in reservation.blocks[0].sub_blocks}) == 4


def test_an_existing_network_is_there_before_the_stack():
    network = {"existing": {"network": "shared-vpc", "subnet": "shared-subnet", "proxySubnet": True}}
    region = derive.region_of(local_with(network=network))
    assert [item.inputs["name"] for item in region.existing] == [
        "shared-vpc",
        "shared-subnet",
        "shared-subnet-proxy",
    ]


def test_three_cubes_of_a_block_that_has_two_are_told_at_once():
    pool = {"name": "tpu7-pool", "cubes": 3, "reservation": {"name": "tpu7-reservation", "block": "block-0"}}
    [problem] = shortfalls(local_with(slicePools=[pool]), region_file.load(LOCAL_REGION))
    assert "`slicePools[0].cubes` must be at most 2 (got 3)" in problem


@pytest.mark.parametrize(
    ("reservation", "words"),
    [
        ({"name": "another"}, "the region has none of that name there"),
        ({"name": "tpu7-reservation", "project": "some-project"}, "the region has none of that name there"),
        ({"name": "tpu7-reservation", "block": "block-9"}, "it has block-0"),
        (
            {"name": "tpu7-reservation", "block": "block-0", "subBlocks": ["nine"]},
            "must be sub-blocks of the block",
        ),
    ],
)
def test_a_reservation_that_is_not_there_is_told_at_once(reservation, words):
    pool = {"name": "tpu7-pool", "cubes": 1, "reservation": reservation}
    [problem] = shortfalls(local_with(slicePools=[pool]), region_file.load(LOCAL_REGION))
    assert words in problem
