"""From Workloads to Slices and back to the admission check: the controller's pure rules."""

import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest

from simulator.slice_controller import slices, states, workloads
from simulator.slice_controller.states import Failure, Grouped, Policy, SliceState

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
POLICY = Policy(activation_timeout_seconds=180, retry_delay_seconds=10)
RETRY_GATE = Policy(activation_timeout_seconds=180, retry_delay_seconds=10, retry_on_failure=True)
STRICT_GATE = Policy(
    activation_timeout_seconds=180, retry_delay_seconds=10, fail_on_untolerated_degraded=True
)
JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "controller": True}
LWS = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "l"}


def at(seconds_ago):
    return (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_slice(name="s", reason=None, status="False", since=0, message="", age=0, ids=("p0",), **metadata):
    conditions = []
    if reason:
        conditions = [
            {
                "type": "Ready",
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": at(since),
            }
        ]
    return {
        "metadata": {"name": name, "creationTimestamp": at(age)} | metadata,
        "spec": {"partitionIds": list(ids)},
        "status": {"conditions": conditions},
    }


def podset(name="ps", topology="2x2x2", replicas=1, **spec):
    return {
        "name": name,
        "count": replicas * 2,
        "topologyRequest": {"subGroupCount": replicas},
        "template": {
            "metadata": {"annotations": {"cloud.google.com/gke-tpu-slice-topology": topology}},
            "spec": {"nodeSelector": {"cloud.google.com/gke-tpu-accelerator": "tpu7x"}} | spec,
        },
    }


def assignment(name, *hosts):
    level = {"individual": {"prefix": "host-", "roots": [host.removeprefix("host-") for host in hosts]}}
    block = {"universal": "block"}
    part = {
        "domainCount": len(hosts),
        "valuesPerLevel": [block, level],
        "podCounts": {"universal": 1},
    }
    topology = {"levels": ["cloud.google.com/gce-topology-block", "kubernetes.io/hostname"], "slices": [part]}
    return {"name": name, "topologyAssignment": topology}


def workload(*podsets, owner=JOBSET, assignments=(), **status):
    conditions = [{"type": "QuotaReserved", "status": "True"}]
    return {
        "metadata": {"namespace": "ns", "name": "wl", "ownerReferences": [owner] if owner else []},
        "spec": {"podSets": list(podsets)},
        "status": {"conditions": conditions, "admission": {"podSetAssignments": list(assignments)}} | status,
    }


def nodes(shape="2x2x2", hosts_a_partition=2, count=8):
    key = f"cloud.google.com/gke-tpu-partition-{shape}-id"
    return {f"host-{index}": {key: f"p{index // hosts_a_partition}"} for index in range(count)}


def judge(found, desired, policy=POLICY, check=None, of=None):
    check = check or {"name": "ac", "state": "Pending", "message": ""}
    return states.judge(of or workload(podset()), check, Grouped.of(found, NOW, policy), desired, policy)


# --- names and partitions ---


def test_a_slice_is_named_after_namespace_workload_podset_and_index():
    assert slices.slice_name("ns", "jobset-a-1b2c3", "job-jax", 3) == "ns-jobset-a-1b2c3-job-jax-3"


@pytest.mark.parametrize("index", range(12))
def test_a_long_name_is_cut_and_hashed_to_what_gke_takes(index):
    arguments = ("llm-d-pd-disaggregation", "jobset-kueue-jobset-simple-subslicing-1a2b3", "job-jax", index)
    name = slices.slice_name(*arguments)
    full = "-".join(map(str, arguments))
    assert len(name) == 49
    assert name == f"{full[:43]}-{hashlib.sha256(full.encode()).hexdigest()[:5]}"
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)


def test_a_name_of_exactly_the_longest_length_stays_whole():
    assert slices.slice_name("n" * 40, "w", "pods", 1) == "n" * 40 + "-w-pods-1"
    assert len(slices.slice_name("n" * 41, "w", "pods", 1)) == 49


def test_partition_ids_are_distinct_in_the_order_of_the_assignment_and_cut_into_equal_chunks():
    given = workload(
        podset(replicas=2, topology="2x2x2"),
        assignments=[assignment("ps", "host-6", "host-7", "host-0", "host-1")],
    )
    (want,) = slices.wanted(given, nodes(), from_selectors=True)
    assert (want.count, want.partition_ids) == (2, ("p3", "p0"))
    assert [want.ids_of(index) for index in range(2)] == [["p3"], ["p0"]]


def test_a_super_slice_lists_one_id_a_cube():
    hosts = [f"host-{index}" for index in range(32)]
    given = workload(podset(topology="4x4x8"), assignments=[assignment("ps", *hosts)])
    (want,) = slices.wanted(given, nodes("4x4x4", 16, 32), from_selectors=True)
    (made,) = slices.plan(given, want, {}, retry_on_failure=False, from_selectors=True).create
    assert made["spec"] == {"type": "tpu7x", "topology": "4x4x8", "partitionIds": ["p0", "p1"]}
    assert slices.refusal([made], [], retry_on_failure=False) is None


def test_the_annotations_name_the_owner_and_nothing_else():
    given = workload(podset(), assignments=[assignment("ps", "host-0", "host-1")])
    (want,) = slices.wanted(given, nodes(), from_selectors=True)
    owner = {
        "accelerator.gke.io/owner-workload-namespace": "ns",
        "accelerator.gke.io/owner-workload-name": "wl",
        "accelerator.gke.io/owner-podset-name": "ps",
    }
    (plain,) = slices.plan(given, want, {}, retry_on_failure=False, from_selectors=True).create
    (retried,) = slices.plan(given, want, {}, retry_on_failure=True, from_selectors=True).create
    assert plain["metadata"] == {"name": "ns-wl-ps-0", "annotations": owner}
    assert retried["metadata"]["annotations"] == owner | {"slice.gke.io/retry-on-failure": "true"}
    assert slices.owner_key(plain) == "ns/wl"


def test_a_group_has_one_slice_and_its_leader_none():
    given = workload(
        podset("leader"),
        podset("worker"),
        owner=LWS,
        assignments=[assignment("leader", "host-0"), assignment("worker", "host-1")],
    )
    assert [want.podset for want in slices.wanted(given, nodes(), from_selectors=True)] == ["worker"]
    alone = workload(podset("main"), owner=LWS, assignments=[assignment("main", "host-0", "host-1")])
    assert [want.podset for want in slices.wanted(alone, nodes(), from_selectors=True)] == ["main"]


def test_an_existing_slice_on_other_partitions_goes_and_the_right_one_stays():
    given = workload(podset(), assignments=[assignment("ps", "host-0", "host-1")])
    (want,) = slices.wanted(given, nodes(), from_selectors=True)
    for ids, deleted in ((("p0",), 0), (("p1",), 1)):
        existing = {"ns-wl-ps-0": a_slice("ns-wl-ps-0", ids=ids)}
        plan = slices.plan(given, want, existing, retry_on_failure=False, from_selectors=True)
        assert (len(plan.create), len(plan.delete)) == (0, deleted)


def test_partitions_in_any_existing_slice_are_named_with_their_user():
    new = [a_slice("new", ids=("p0", "p1"))]
    new[0]["spec"]["topology"] = "4x4x8"
    others = [a_slice("theirs", ids=("p1",)), a_slice("old", ids=("p0",))]
    text = slices.refusal(new, others, retry_on_failure=False)
    assert (
        text == 'partition IDs ["p0 (used by old)" "p1 (used by theirs)"] are already used by existing Slices'
    )
    assert slices.refusal(new, others, retry_on_failure=True) is None


def test_a_wrong_number_of_partitions_is_refused_under_either_gate():
    new = [a_slice("one", ids=("p0",)), a_slice("two", ids=())]
    for item in new:
        item["spec"]["topology"] = "4x4x8"
    for gate in (True, False):
        text = slices.refusal(new, [], retry_on_failure=gate)
        assert text == "incorrect number of partitions for slices: [one two]"


# --- which workloads ---


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metadata": {"deletionTimestamp": "now"}}, "it has been deleted"),
        ({"status": {"conditions": [{"type": "Finished", "status": "True"}]}}, "it has finished"),
        ({"status": {"conditions": [{"type": "Evicted", "status": "True"}]}}, "it was evicted"),
        ({"status": {"conditions": [{"type": "Evicted", "status": "False"}]}}, None),
        ({"spec": {"active": False}}, "it is no longer active"),
        ({"metadata": {"ownerReferences": []}}, "it doesn't have owner"),
        (
            {
                "metadata": {
                    "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "controller": True}]
                }
            },
            "it has an unsupported owner",
        ),
        ({"metadata": {"ownerReferences": [JOBSET | {"controller": False}]}}, "it has an unsupported owner"),
        ({"metadata": {"ownerReferences": [LWS]}}, None),
    ],
)
def test_when_slices_must_go(change, reason):
    given = workload(podset())
    for part, values in change.items():
        given[part] = given[part] | values
    assert workloads.reason_to_finalize(given) == reason


def test_a_workload_waits_in_silence_until_every_host_of_it_has_a_partition():
    given = workload(podset(), assignments=[assignment("ps", "host-0", "host-1")])
    assert workloads.reason_to_skip(given, nodes(), from_selectors=True) is None
    late = nodes() | {"host-1": {}}
    assert workloads.reason_to_skip(given, late, from_selectors=True) == "has invalid topology assignments"
    gone = {"host-0": nodes()["host-0"]}
    assert workloads.reason_to_skip(given, gone, from_selectors=True) == "has invalid topology assignments"


def test_a_topology_without_hostnames_is_of_no_use():
    given = workload(podset(), assignments=[assignment("ps", "host-0", "host-1")])
    given["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]["levels"][1] = "rack"
    assert workloads.reason_to_skip(given, nodes(), from_selectors=True) == "has invalid topology assignments"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (workload(podset(topology="2x4")), "does not have a relevant podset"),
        (workload(podset()) | {"status": {}}, "does not have a quota reservation"),
        (workload(podset(), admission=None), "has no admission"),
        (workload(podset(), assignments=[{"name": "ps"}]), "has no topology assignment"),
    ],
)
def test_why_a_workload_is_passed_over(given, reason):
    assert workloads.reason_to_skip(given, nodes(), from_selectors=True) == reason


def test_compressed_host_names_are_read_with_prefix_root_and_suffix():
    part = {
        "domainCount": 2,
        "valuesPerLevel": [{"individual": {"prefix": "gke-", "suffix": "-x", "roots": ["a", "b"]}}],
    }
    one = {"domainCount": 1, "valuesPerLevel": [{"universal": "solo"}]}
    given = {"topologyAssignment": {"levels": ["kubernetes.io/hostname"], "slices": [part, one]}}
    assert workloads.hosts(given) == ["gke-a-x", "gke-b-x", "solo"]


def test_only_the_check_that_is_ours_is_found():
    given = workload(
        admissionChecks=[{"name": "other", "state": "Ready"}, {"name": "ac", "state": "Pending"}]
    )
    assert workloads.check_state(given, {"ac"}) == {"name": "ac", "state": "Pending"}
    assert workloads.check_state(given, set()) is None


# --- states of a Slice ---


@pytest.mark.parametrize(
    ("item", "policy", "expected"),
    [
        (a_slice(), POLICY, SliceState.CREATED),
        (a_slice(age=179), POLICY, SliceState.CREATED),
        (a_slice(age=180), POLICY, SliceState.STALE),
        (a_slice(reason="SliceNotCreated"), POLICY, SliceState.ACTIVATING),
        (a_slice(reason="ACTIVATING", since=179), POLICY, SliceState.ACTIVATING),
        (a_slice(reason="ACTIVATING", since=180), POLICY, SliceState.STALE),
        (a_slice(reason="ACTIVE", status="True", since=9999), POLICY, SliceState.ACTIVE),
        (a_slice(reason="ACTIVE_DEGRADED", status="True"), POLICY, SliceState.ACTIVE_DEGRADED),
        (a_slice(reason="FAILED"), POLICY, SliceState.FAILED),
        (a_slice(reason="FAILED", since=9999), RETRY_GATE, SliceState.FAILED),
        (a_slice(reason="FAILED", status="True"), POLICY, SliceState.ACTIVATING),
        (a_slice(reason="SliceCreationFailed"), POLICY, SliceState.FAILED),
        (a_slice(reason="SliceCreationFailed"), RETRY_GATE, SliceState.ACTIVATING),
        (a_slice(reason="SliceCreationFailed", since=180), RETRY_GATE, SliceState.STALE),
        (a_slice(reason="DEACTIVATING"), POLICY, SliceState.ACTIVATING),
        (a_slice(reason="UNKNOWN", status="Unknown", since=9999), POLICY, SliceState.ACTIVATING),
        (a_slice(reason="FAILED", deletionTimestamp=at(0)), POLICY, SliceState.DELETED),
    ],
)
def test_the_first_state_that_applies_wins(item, policy, expected):
    assert states.state_of(item, NOW, policy) == expected


# --- the verdict ---


def test_the_check_is_ready_when_every_slice_is_active_and_pins_the_pods_to_their_topology():
    given = workload(podset("a", "2x2x2"), podset("b", "4x4x4"), {"name": "c", "template": {}})
    found = [
        a_slice("s1", reason="ACTIVE", status="True"),
        a_slice("s2", reason="ACTIVE_DEGRADED", status="True"),
    ]
    verdict = judge(found, 2, of=given)
    assert verdict.failure is None
    assert verdict.check == {
        "name": "ac",
        "state": "Ready",
        "message": "Slices are in states: 1 ACTIVE, 1 ACTIVE_DEGRADED",
        "podSetUpdates": [
            {"name": "a", "nodeSelector": {"cloud.google.com/gke-tpu-topology": "2x2x2"}},
            {"name": "b", "nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4x4"}},
        ],
    }


def test_the_message_counts_states_in_a_fixed_order():
    found = [
        a_slice("s1", reason="ACTIVE", status="True"),
        a_slice("s2"),
        a_slice("s3", age=999),
        a_slice("s4", reason="ACTIVATING"),
        a_slice("s5", reason="ACTIVE", status="True"),
        a_slice("s6", deletionTimestamp=at(0)),
    ]
    verdict = judge(found, 6)
    assert verdict.check["state"] == "Pending"
    assert verdict.check["message"] == (
        "Slices are in states: 1 CREATED, 1 ACTIVATING, 2 ACTIVE, 1 DELETED, 1 STALE"
    )


def test_without_slices_the_check_waits_for_them():
    assert judge([], 2).check["message"] == "Waiting for Slices to be created"


def test_a_failed_slice_asks_for_a_retry_and_tells_what_it_said():
    found = [a_slice("bad", reason="FAILED", message="boom"), a_slice("good", reason="ACTIVE", status="True")]
    verdict = judge(found, 2)
    assert verdict.failure == Failure.RUNTIME
    assert verdict.check == {
        "name": "ac",
        "state": "Retry",
        "requeueAfterSeconds": 10,
        "message": "Slices are in states: 1 ACTIVE, 1 FAILED. Errors: bad: boom",
    }


def test_a_stale_slice_stays_pending_without_the_retry_gate():
    verdict = judge([a_slice("old", reason="ACTIVATING", since=999, message="slow")], 1)
    assert (verdict.check["state"], verdict.failure) == ("Pending", None)
    assert verdict.check["message"] == "Slices are in states: 1 STALE"


def test_a_stale_slice_asks_for_a_retry_with_the_retry_gate():
    found = [a_slice("old", reason="ACTIVATING", since=999, message="slow"), a_slice("mute", age=999)]
    verdict = judge(found, 2, RETRY_GATE)
    assert (verdict.check["state"], verdict.failure) == ("Retry", Failure.FORMATION_TIMEOUT)
    assert verdict.check["message"] == "Slices are in states: 2 STALE. Errors: old: slow (stale); mute: stale"


def degraded(podset_name):
    annotations = {"accelerator.gke.io/owner-podset-name": podset_name} if podset_name else {}
    return a_slice("d", reason="ACTIVE_DEGRADED", status="True", message="link", annotations=annotations)


@pytest.mark.parametrize("owner", ["strict", None])
def test_degraded_fails_a_podset_that_asked_for_healthy_cubes_under_the_gate(owner):
    state = {"cloud.google.com/gke-tpu-partition-4x4x4-state": "HEALTHY"}
    given = workload(podset("strict", nodeSelector=state), podset("lax"))
    verdict = judge([degraded(owner)], 1, STRICT_GATE, of=given)
    assert (verdict.check["state"], verdict.failure) == ("Retry", Failure.RUNTIME)
    assert verdict.check["message"] == "Slices are in states: 1 ACTIVE_DEGRADED. Errors: d: link (degraded)"
    assert judge([degraded("lax")], 1, STRICT_GATE, of=given).check["state"] == "Ready"
    assert judge([degraded(owner)], 1, POLICY, of=given).check["state"] == "Ready"


def test_once_retry_only_kueues_reset_brings_the_check_back():
    check = {"name": "ac", "state": "Retry", "message": "m", "requeueAfterSeconds": 10}
    verdict = judge([a_slice("s", reason="ACTIVE", status="True")], 1, check=check)
    assert verdict.check == check
    assert verdict.failure is None


def test_kueues_own_fields_of_the_check_are_carried_along_unchanged():
    check = {
        "name": "ac",
        "state": "Pending",
        "message": "",
        "lastTransitionTime": at(5),
        "retryCount": 3,
    }
    found = judge([a_slice("s", reason="ACTIVE", status="True")], 1, check=check).check
    assert (found["lastTransitionTime"], found["retryCount"]) == (at(5), 3)


def test_no_input_makes_it_write_rejected():
    reasons = [
        "FAILED",
        "SliceCreationFailed",
        "ACTIVE",
        "ACTIVE_DEGRADED",
        "DEACTIVATING",
        "INCOMPLETE",
        "UNKNOWN",
    ]
    for policy in (POLICY, RETRY_GATE, STRICT_GATE):
        for reason in reasons:
            for status in ("True", "False", "Unknown"):
                for since in (0, 999):
                    item = a_slice("s", reason=reason, status=status, since=since)
                    assert judge([item], 1, policy).check["state"] in {"Pending", "Ready", "Retry"}


def test_long_messages_are_cut_to_what_the_field_holds():
    found = [a_slice(f"s{index}", reason="FAILED", message="é" * 3000) for index in range(9)]
    text = judge(found, 9).check["message"]
    assert len(text.encode()) <= 32768
    assert text.endswith(" ...")
