"""The life of a Slice: every state in its order, every refusal, and what must hold whatever happens."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from facts import labels, tpu
from simulator.addon.knobs import HostKnobs, Knobs, PartitionKnobs, SliceKnobs
from simulator.addon.lifecycle import USABLE, Reason
from tests.unit.addon_world import World, cube_hosts, partition_of

CUBES = (partition_of(0, "4x4x4"), partition_of(1, "4x4x4"))


def two_cubes(knobs: Knobs | None = None, **options) -> World:
    return World([*cube_hosts(0), *cube_hosts(1)], knobs, **options)


def slice_knobs(**options) -> Knobs:
    return Knobs(slices=(SliceKnobs(**options),))


# --- The way up and down -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*tpu.SUB_SLICE_SHAPES, "4x4x4"])
def test_a_slice_goes_through_its_states_in_order_and_its_hosts_alone_carry_its_labels(shape):
    world = two_cubes()
    world.create("s", shape, partition_of(1, shape))
    world.settle()
    assert world.history["s"] == ["SliceNotCreated", "ACTIVATING", "ACTIVE"]
    host_count = tpu.Topology.parse(shape).host_count
    assert world.labelled("s") == {f"host-1-{number:02d}" for number in range(host_count)}
    assert {
        host.labels.get(labels.TPU_TOPOLOGY) for host in world.hosts.values() if host.slice_label == "s"
    } == {shape}
    assert sum(labels.TPU_TOPOLOGY in host.labels for host in world.hosts.values()) == host_count


def test_a_super_slice_joins_two_cubes():
    world = two_cubes()
    world.create("s", "4x4x8", *CUBES)
    world.settle()
    assert world.reason("s") == "ACTIVE"
    assert len(world.labelled("s")) == 32


def test_a_deleted_slice_is_dismantled_unlabelled_and_gone_in_that_order():
    world = two_cubes()
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    world.delete("s")
    world.step()
    assert world.reason("s") == "DEACTIVATING"
    assert world.labelled("s") == set()
    world.settle(wait=False)
    assert world.reason("s") == "DEACTIVATING", "it takes its time"
    world.settle()
    assert world.objects == {}
    assert world.history["s"][-2:] == ["DEACTIVATING", "INCOMPLETE"]


def test_the_finalizer_is_there_before_the_first_state():
    world = two_cubes()
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.step()
    assert world.objects["s"]["metadata"]["finalizers"] == [labels.SLICE_FINALIZER]
    assert world.history["s"] == []


def test_a_slice_whose_finalizer_is_taken_away_while_it_hangs_leaves_no_label_behind():
    world = two_cubes(slice_knobs(deletion_hangs=True))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    world.delete("s")
    world.settle()
    assert world.reason("s") == "DEACTIVATING"
    del world.objects["s"]  # kubectl patch … remove /metadata/finalizers
    world.settle()
    assert world.labelled("s") == set()
    world.create("next", "4x4x4", CUBES[0])
    world.settle()
    assert world.reason("next") == "ACTIVE"


def test_the_transition_time_moves_only_when_ready_flips():
    world = two_cubes(slice_knobs(formation_seconds=40))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle(wait=False)
    created = world.ready("s")["lastTransitionTime"]
    assert world.reason("s") == "ACTIVATING"
    world.now += 7
    world.settle(wait=False)
    assert world.ready("s")["lastTransitionTime"] == created
    world.settle()
    active = world.ready("s")
    assert (active["status"], active["reason"]) == ("True", "ACTIVE")
    assert active["lastTransitionTime"] > created
    world.knobs = slice_knobs(outcome="degraded")
    world.now += 7
    world.settle()
    assert world.reason("s") == "ACTIVE_DEGRADED"
    assert world.ready("s")["lastTransitionTime"] == active["lastTransitionTime"]


def test_formation_takes_what_the_cloud_takes_divided_by_the_time_scale():
    ends = {}
    for scale in (1.0, 5.0, float("inf")):
        world = two_cubes(time_scale=scale)
        world.create("s", "2x2x2", partition_of(0, "2x2x2"))
        start = world.now
        world.settle()
        ends[scale] = world.now - start
    assert ends[1.0] == pytest.approx(5 * ends[5.0])
    assert 20 <= ends[1.0] <= 30
    assert ends[float("inf")] == 0


def test_after_a_restart_a_delay_goes_on_from_the_conditions_time():
    world = two_cubes(slice_knobs(formation_seconds=40, deletion_seconds=30))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle(wait=False)
    start = world.now
    world.now += 12
    world.restart()
    world.settle()
    assert world.reason("s") == "ACTIVE"
    assert world.now == pytest.approx(start + 40, abs=1)
    world.delete("s")
    world.settle(wait=False)
    start = world.now
    world.now += 12
    world.restart()
    world.settle()
    assert world.objects == {}
    assert world.now == pytest.approx(start + 30, abs=1)


def test_labels_come_late_when_asked():
    world = two_cubes(slice_knobs(label_delay_seconds=15))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle(wait=False)
    while world.reason("s") != "ACTIVE":
        world.now += 1
        world.settle(wait=False)
    assert world.labelled("s") == set()
    active = world.now
    world.settle()
    assert len(world.labelled("s")) == 2
    assert world.now == pytest.approx(active + 15, abs=1)


# --- Refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "ids", "text"),
    [
        ("4x4x8", CUBES[:1], "partition count does not match topology dimensions"),
        ("4x4x8", (CUBES[0], CUBES[0]), "partition count does not match topology dimensions"),
        ("2x2x2", (partition_of(0, "2x2x2", 0), partition_of(0, "2x2x2", 1)), "partition count"),
        ("4x4x4", ("nowhere",), "no node carries cloud.google.com/gke-tpu-partition-4x4x4-id nowhere"),
        ("2x2x2", (partition_of(0, "2x2x4"),), "no node carries"),
        ("2x3x4", CUBES[:1], "topology"),
    ],
)
def test_a_slice_that_does_not_match_the_nodes_fails_before_it_forms(topology, ids, text):
    world = two_cubes()
    world.create("s", topology, *ids)
    world.settle()
    assert world.history["s"] == ["SliceNotCreated", "SliceCreationFailed"]
    assert text in world.ready("s")["message"]
    assert world.ready("s")["status"] == "False"


@pytest.mark.parametrize(
    ("break_it", "text"),
    [
        (lambda world: world.hosts.pop("host-0-05"), "not all nodes of partition"),
        (lambda world: world.change("host-0-05", is_ready=False), "nodes are not ready: host-0-05"),
        (lambda world: world.change("host-0-05", is_ready=None), "nodes are not ready: host-0-05"),
        (lambda world: setattr(world, "knobs", Knobs(hosts=(HostKnobs(match="host-0-05", faulty=True),))), "is UNHEALTHY"),
        (lambda world: setattr(world, "knobs", Knobs(initialized=False)), "is UNSET"),
    ],
)  # fmt: skip
def test_a_slice_does_not_form_on_hosts_that_are_absent_or_unsound(break_it, text):
    world = two_cubes()
    break_it(world)
    world.create("s", "4x4x4", CUBES[0])
    world.settle()
    assert world.reason("s") == "SliceCreationFailed"
    assert text in world.ready("s")["message"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("4x4x4", "2x2x1"), ("2x2x1", "4x4x4"), ("2x2x2", "2x4x4"), ("4x4x8", "2x2x4"), ("2x2x2", "2x2x2")],
)
def test_overlap_is_judged_by_host_across_shapes(first, second):
    world = two_cubes()
    for name, shape in (("first", first), ("second", second)):
        world.create(name, shape, *(CUBES if shape == "4x4x8" else (partition_of(0, shape),)))
        world.settle()
    assert world.reason("first") == "ACTIVE"
    assert world.reason("second") == "SliceCreationFailed"
    assert "used by another slice: host-0-00 (by first)" in world.ready("second")["message"]


def test_of_two_slices_that_ask_at_once_the_older_gets_the_hosts():
    world = two_cubes()
    world.create("b-older", "2x2x2", partition_of(0, "2x2x2"))
    world.now += 1
    world.create("a-younger", "2x4x4", partition_of(0, "2x4x4"))
    world.settle()
    assert (world.reason("b-older"), world.reason("a-younger")) == ("ACTIVE", "SliceCreationFailed")


@pytest.mark.parametrize(
    "other", [{"block": "block-1"}, {"reservation": "res-b"}], ids=["another block", "another reservation"]
)
def test_cubes_of_different_blocks_or_reservations_are_failed_not_creation_failed(other):
    world = World([*cube_hosts(0), *cube_hosts(1, **other)])
    world.create("s", "4x4x8", *CUBES)
    world.settle()
    assert world.history["s"] == ["SliceNotCreated", "FAILED"]
    world.create("t", "4x4x4", CUBES[0])
    world.settle()
    assert world.reason("t") == "ACTIVE", "a Slice that never formed holds no hosts"


def test_creation_failed_stays_unless_the_annotation_asks_to_retry():
    world = two_cubes()
    world.create("holder", "4x4x4", CUBES[0])
    world.settle()
    world.create("gives-up", "2x2x1", partition_of(0, "2x2x1", 3))
    world.create("retries", "2x2x1", partition_of(0, "2x2x1", 9), retries=True)
    world.settle()
    assert (world.reason("gives-up"), world.reason("retries")) == ("SliceCreationFailed",) * 2
    world.delete("holder")
    world.settle()
    assert world.reason("retries") == "ACTIVE"
    assert world.reason("gives-up") == "SliceCreationFailed"


def test_a_deleted_slice_keeps_its_hosts_until_it_is_gone():
    world = two_cubes(slice_knobs(match="holder", deletion_hangs=True))
    world.create("holder", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    world.delete("holder")
    world.settle()
    world.create("next", "2x2x2", partition_of(0, "2x2x2"), retries=True)
    world.settle()
    assert world.reason("next") == "SliceCreationFailed"
    world.knobs = Knobs()
    world.settle()
    assert world.reason("next") == "ACTIVE"


# --- Faults ------------------------------------------------------------------------------------------------


def test_a_stalled_slice_never_leaves_activating():
    world = two_cubes(slice_knobs(outcome="stalled"))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    world.now += 1e6
    world.settle()
    assert world.reason("s") == "ACTIVATING"
    world.delete("s")
    world.settle()
    assert world.objects == {}


def test_a_failing_slice_is_failed_and_holds_its_hosts_until_it_is_deleted():
    world = two_cubes(slice_knobs(match="s", outcome="failed"))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    assert world.history["s"] == ["SliceNotCreated", "ACTIVATING", "FAILED"]
    assert world.labelled("s") == set()
    world.create("next", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    assert world.reason("next") == "SliceCreationFailed"


def test_an_active_slice_fails_when_a_host_of_it_does_and_only_that_one():
    world = two_cubes()
    world.create("hit", "2x2x2", partition_of(0, "2x2x2", 0))
    world.create("other", "2x2x2", partition_of(0, "2x2x2", 1))
    world.settle()
    world.change("host-0-01", is_ready=False)
    world.settle()
    assert (world.reason("hit"), world.reason("other")) == ("FAILED", "ACTIVE")
    assert world.ready("hit")["status"] == "False"
    assert world.labelled("hit") == set()
    world.change("host-0-01", is_ready=True)
    world.settle()
    assert world.reason("hit") == "FAILED", "a failed Slice does not come back"


def test_a_degraded_cube_degrades_its_slice_and_back():
    world = two_cubes(Knobs(partitions=(PartitionKnobs(id=CUBES[1], state="DEGRADED"),)))
    world.create("s", "4x4x8", *CUBES)
    world.create("sub", "2x2x1", partition_of(1, "2x2x1"))
    world.settle()
    assert world.reason("s") == "ACTIVE_DEGRADED"
    assert world.ready("s")["status"] == "True"
    assert len(world.labelled("s")) == 32
    world.knobs = Knobs()
    world.settle()
    assert world.reason("s") == "ACTIVE"


def test_a_slice_whose_hosts_are_gone_is_dismantled_though_nobody_deleted_it():
    world = two_cubes()
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    del world.hosts["host-0-01"]
    world.settle()
    assert world.history["s"][-2:] == ["DEACTIVATING", "INCOMPLETE"]
    assert "s" in world.objects
    world.delete("s")
    world.settle()
    assert world.objects == {}


def test_a_lost_slice_is_dismantled_by_its_knob():
    world = two_cubes()
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    world.knobs = slice_knobs(outcome="lost")
    world.settle()
    assert world.history["s"][-2:] == ["DEACTIVATING", "INCOMPLETE"]


def test_a_wrong_slice_label_is_put_on_and_taken_off_by_its_knob():
    world = two_cubes()
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    world.knobs = Knobs(hosts=(HostKnobs(match="host-0-00", slice_label="other"),))
    world.settle()
    assert world.labelled("s") == {"host-0-01"}
    assert world.labelled("other") == {"host-0-00"}
    world.delete("s")
    world.settle()
    assert world.objects == {}
    assert world.labelled("other") == set()


# --- Partition states --------------------------------------------------------------------------------------


def test_a_sound_cube_is_healthy_at_every_level():
    world = two_cubes()
    world.settle()
    assert all(set(world.states(level).values()) == {"HEALTHY"} for level in tpu.PARTITION_LEVELS)


def test_a_host_fault_is_a_fault_of_the_partitions_around_it_only():
    world = two_cubes(Knobs(hosts=(HostKnobs(match="host-0-03", faulty=True),)))
    world.settle()
    for level in tpu.PARTITION_LEVELS:
        hit = partition_of(0, level, 3 // tpu.Topology.parse(level).host_count)
        assert {key for key, state in world.states(level).items() if state == "UNHEALTHY"} == {hit}


def test_a_fault_between_hosts_leaves_the_narrower_partitions_sound():
    world = two_cubes(Knobs(partitions=(PartitionKnobs(id=partition_of(0, "2x2x4", 1), state="UNHEALTHY"),)))
    world.settle()
    assert "UNHEALTHY" not in world.states("2x2x2").values()
    assert world.states("2x2x4")[partition_of(0, "2x2x4", 1)] == "UNHEALTHY"
    assert world.states("2x4x4")[partition_of(0, "2x4x4", 0)] == "UNHEALTHY"
    assert world.states("2x4x4")[partition_of(0, "2x4x4", 1)] == "HEALTHY"
    assert world.states("4x4x4")[CUBES[0]] == "UNHEALTHY"


def test_only_whole_cubes_are_degraded():
    knobs = Knobs(
        partitions=(
            PartitionKnobs(id=CUBES[0], state="DEGRADED"),
            PartitionKnobs(id=partition_of(0, "2x2x2"), state="DEGRADED"),
        )
    )
    world = two_cubes(knobs)
    world.settle()
    assert world.states("4x4x4")[CUBES[0]] == "DEGRADED"
    assert set(world.states("2x2x2").values()) == {"HEALTHY"}


def test_a_pool_with_fewer_than_sixteen_nodes_is_incomplete():
    world = World(cube_hosts(0)[:15])
    world.settle()
    assert world.states("4x4x4") == {CUBES[0]: "INCOMPLETE"}
    assert world.states("2x2x2")[partition_of(0, "2x2x2", 7)] == "INCOMPLETE"
    assert world.states("2x2x2")[partition_of(0, "2x2x2", 0)] == "HEALTHY"


def test_a_host_whose_partition_ids_are_not_known_yet_is_unset():
    world = World(cube_hosts(0))
    for name in list(world.hosts):
        world.change(name, partition_ids={})
    world.settle()
    keys = [labels.partition_state(level) for level in tpu.PARTITION_LEVELS]
    assert {host.labels[key] for host in world.hosts.values() for key in keys} == {"UNSET"}


# --- Whatever happens --------------------------------------------------------------------------------------

EDGES = {
    None: {"SliceNotCreated", "DEACTIVATING"},
    "SliceNotCreated": {"SliceCreationFailed", "FAILED", "ACTIVATING", "DEACTIVATING"},
    "SliceCreationFailed": {"SliceCreationFailed", "FAILED", "ACTIVATING", "DEACTIVATING"},
    "ACTIVATING": {"ACTIVE", "ACTIVE_DEGRADED", "FAILED", "DEACTIVATING"},
    "ACTIVE": {"ACTIVE_DEGRADED", "FAILED", "DEACTIVATING"},
    "ACTIVE_DEGRADED": {"ACTIVE", "FAILED", "DEACTIVATING"},
    "FAILED": {"DEACTIVATING"},
    "DEACTIVATING": {"INCOMPLETE", "DEACTIVATING"},
    "INCOMPLETE": set(),
}
SHAPES = (*tpu.SUB_SLICE_SHAPES, "4x4x4", "4x4x8")


@st.composite
def events(draw):
    kind = draw(
        st.sampled_from(["create", "create", "create", "delete", "wait", "fault", "knobs", "restart"])
    )
    return kind, draw(st.integers(0, 31)), draw(st.sampled_from(SHAPES)), draw(st.booleans())


OUTCOMES = st.sampled_from(["active", "active", "degraded", "stalled", "failed", "lost"])


def check_invariants(world: World) -> None:
    forming = {*USABLE, Reason.ACTIVATING}
    held: dict[str, str] = {}
    for name, obj in world.objects.items():
        conditions = obj.get("status", {}).get("conditions")
        if not conditions or conditions[0]["reason"] not in {str(reason) for reason in forming}:
            continue
        level = obj["spec"]["topology"]
        level = level if level in tpu.SUB_SLICE_SHAPES else "4x4x4"
        for host in world.hosts.values():
            if host.partition_ids[level] in obj["spec"]["partitionIds"]:
                assert held.setdefault(host.name, name) == name, (
                    f"{host.name} is in {held[host.name]} and {name}"
                )
    for host in world.hosts.values():
        if host.slice_label is not None:
            assert held.get(host.name) in {host.slice_label, None}
        assert (labels.TPU_SLICE in host.labels) == (labels.TPU_TOPOLOGY in host.labels)
    for reasons in world.history.values():
        for before, after in zip([None, *reasons], reasons, strict=False):
            assert after in EDGES[before], f"{before} -> {after} in {reasons}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events(), min_size=4, max_size=25), OUTCOMES, st.booleans())
def test_no_host_is_ever_in_two_slices_and_every_deleted_slice_goes(script, outcome, delayed):
    world = two_cubes()
    behaviour = SliceKnobs(
        match="s*", formation_seconds=9, deletion_seconds=5, label_delay_seconds=3 * delayed
    )
    world.knobs = Knobs(slices=(behaviour,))
    for number, (kind, choice, shape, flag) in enumerate(script):
        live = sorted(world.objects)
        if kind == "create":
            per_cube = tpu.Topology.parse(shape).slices_per_cube
            ids = CUBES if shape == "4x4x8" else (partition_of(choice % 2, shape, choice % per_cube),)
            world.create(f"s{number}", shape, *ids, retries=flag)
        elif kind == "delete" and live:
            world.delete(live[choice % len(live)])
        elif kind == "wait":
            world.now += choice
        elif kind == "fault":
            world.change(sorted(world.hosts)[choice], is_ready=flag)
        elif kind == "knobs":
            world.knobs = Knobs(slices=(behaviour.model_copy(update={"outcome": outcome}),))
        elif kind == "restart":
            world.restart()
        for _ in range(1 + choice % 4):
            world.step()
            check_invariants(world)
    world.settle()
    check_invariants(world)
    for name in list(world.objects):
        world.delete(name)
    world.settle()
    assert world.objects == {}
    assert all(host.slice_label is None for host in world.hosts.values())


def test_a_slice_is_not_gone_before_its_labels_are():
    world = two_cubes(time_scale=float("inf"))
    world.create("s", "2x2x2", partition_of(0, "2x2x2"))
    world.settle()
    labelled = dict(world.hosts)
    world.delete("s")
    world.step()
    world.hosts = labelled  # the write of the labels was lost
    world.step()
    assert world.reason("s") == "DEACTIVATING"
    world.settle()
    assert world.objects == {}
