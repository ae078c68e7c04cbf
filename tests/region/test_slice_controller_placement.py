"""Where Kueue, the slice controller and the add-on together put work: packing, preemption, waiting, many at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from facts import labels, tpu
from simulator.addon.knobs import PartitionKnobs
from tests.region.conftest import Checkout
from tests.region.slices_at_work import MEDIUM, NODES, PATIENCE_SECONDS, SLICES, Region, until


@pytest.fixture(scope="module")
def cluster(running: Checkout) -> Region:
    return Region(running)


@pytest.fixture
def region(cluster: Region) -> Iterator[Region]:
    try:
        yield cluster
    finally:
        cluster.clean()


def test_sub_slices_of_all_shapes_fill_both_cubes_without_overlap(region: Region) -> None:
    wanted = {shape: tpu.Topology.parse(shape).host_count for shape in tpu.SUB_SLICE_SHAPES}
    # 8 hosts of each shape: the two cubes exactly.
    names = {region.submit(shape, replicas=8 // hosts, hosts=hosts): shape for shape, hosts in wanted.items()}
    for name in names:
        region.until_running(name, 8)
    assert region.outside_their_slice(list(names)) == []
    holders = [found.get(labels.TPU_SLICE) for found in region.tpu_hosts().values()]
    assert None not in holders
    slices = region.api.get(SLICES)["items"]
    assert {
        holders.count(item["metadata"]["name"]) == wanted[item["spec"]["topology"]] for item in slices
    } == {True}
    assert len(holders) == 32


def test_a_medium_super_slice_preempts_low_sub_slices_and_they_come_back_after(region: Region) -> None:
    low = region.submit("2x2x2", replicas=6)
    region.until_running(low, 12)
    medium = region.submit("4x4x8", hosts=32, priority=MEDIUM)
    region.until_running(medium, 32)
    assert region.outside_their_slice([medium]) == []
    assert region.condition(low, "Preempted")["status"] == "True"
    assert region.slices(low) == []
    region.delete(medium)
    region.until_running(low, 12)
    assert region.outside_their_slice([low]) == []


def test_what_does_not_fit_waits_with_kueues_reason(region: Region) -> None:
    halves = [region.submit("2x4x4", hosts=8) for _ in range(3)]
    for half in halves:
        region.until_running(half, 8)
    cube_of = labels.partition_id(tpu.CUBE)
    hosts = region.hosts()
    cubes: dict[str, list[str]] = {}
    for half in halves:
        cubes.setdefault(
            hosts[region.pods(labels.JOBSET_NAME, half)[0]["spec"]["nodeName"]][cube_of], []
        ).append(half)
    full = next(found for found in cubes.values() if len(found) == 2)
    region.delete(full[0])
    until(lambda: not region.slices(full[0]), "half of each cube free")
    # 16 hosts are free, but no whole cube.
    waiting = region.submit("4x4x4", hosts=16)
    reason = until(
        lambda: (
            "topology" in (found := region.condition(waiting, "QuotaReserved").get("message", "")) and found
        ),
        "Kueue's reason",
    )
    assert "doesn't allow to fit" in reason or "allows to fit only" in reason
    region.delete(full[1])
    region.until_running(waiting, 16)


def test_an_unhealthy_partition_is_left_out_until_it_is_well(region: Region) -> None:
    sick = min(found[labels.partition_id("2x2x2")] for found in region.tpu_hosts().values())
    region.knobs(partitions=(PartitionKnobs(id=sick, state="UNHEALTHY"),))
    state = labels.partition_state("2x2x2")
    until(
        lambda: "UNHEALTHY" in {found[state] for found in region.tpu_hosts().values()},
        "the add-on to mark the partition",
    )
    names = [region.submit("2x2x2") for _ in range(16)]

    def running() -> list[str]:
        return [name for name in names if region.running(name, 2)]

    until(lambda: len(running()) == 15, "15 of 16 to run")
    assert region.outside_their_slice(running()) == []
    used = {item["spec"]["partitionIds"][0] for item in region.api.get(SLICES)["items"]}
    assert sick not in used
    region.knobs()
    until(lambda: len(running()) == 16, "the last one on the healed partition")


def test_a_host_is_used_only_once_it_has_its_partition_ids(region: Region) -> None:
    host, found = next(iter(region.tpu_hosts().items()))
    ids = {labels.partition_id(level): found[labels.partition_id(level)] for level in tpu.PARTITION_LEVELS}
    region.api.merge_patch(f"{NODES}/{host}", {"metadata": {"labels": dict.fromkeys(ids)}})
    try:
        name = region.submit("4x4x8", hosts=32)
        until(
            lambda: region.condition(name, "QuotaReserved").get("status") == "False", "Kueue to find no room"
        )
        assert region.slices(name) == []
    finally:
        region.api.merge_patch(f"{NODES}/{host}", {"metadata": {"labels": ids}})
    region.until_running(name, 32)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_of_fifty_jobs_at_once_none_is_lost_and_none_runs_outside_its_slice(region: Region) -> None:
    waiting = [region.submit("2x2x1", hosts=1) for _ in range(50)]
    done = 0
    while waiting:
        expected = min(len(waiting), 32)
        running = until(
            lambda count=expected: (
                found
                if len(found := [name for name in waiting if region.running(name, 1)]) >= count
                else None
            ),
            f"{expected} of the {len(waiting)} left to run",
            2 * PATIENCE_SECONDS,
        )
        assert region.outside_their_slice(running) == []
        for name in running:
            region.delete(name)
            waiting.remove(name)
        done += len(running)
    assert done == 50
