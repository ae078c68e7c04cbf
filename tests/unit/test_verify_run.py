import io
import signal
from collections.abc import Callable
from typing import Any

import pytest

import settings
from facts import labels, tpu
from ops.checks import kubernetes_api as api
from ops.checks.interruption import Interruption
from ops.checks.kubernetes_api import ApiRefusal
from ops.checks.outcome import Status
from ops.checks.plan import Plan, plan_for
from ops.checks.slice_jobset import RUN_ANNOTATION
from ops.checks.verification import Options, Verification
from ops.checks.waiting import Progress
from tests.fakes.verify_cluster import FakeClock, FakeCluster, condition

NAMESPACE = "llm-d-pd-disaggregation"
SUB, SUPER = "kueue-jobset-simple-subslicing", "kueue-jobset-simple-superslicing"


CONFIG: dict[str, Any] = {
    "gcp:project": "example-project",
    "tpu-slices:zone": "us-central1-ai1a",
    "tpu-slices:slicePools": [
        {"name": "tpu7-pool", "cubes": 2, "reservation": {"name": "res-a", "block": "block-0"}}
    ],
}


def make_plan(*, cubes: int = 2, **config: Any) -> Plan:
    pool = {**CONFIG["tpu-slices:slicePools"][0], "cubes": cubes}
    loaded = settings.load({**CONFIG, "tpu-slices:slicePools": [pool], **config})
    return plan_for(loaded, namespace=None, run="here/1/now")


class Run:
    """Verify on a fake cluster, over."""

    def __init__(self, cluster: FakeCluster, plan: Plan | None = None, **options: Any) -> None:
        self.cluster = cluster
        self.progress = io.StringIO()
        clock = FakeClock(cluster)
        options = {"timeout_seconds": 120, "removal_timeout_seconds": 60, **options}
        with Interruption() as interruption:
            self.verification = Verification(
                cluster=cluster,
                plan=plan or make_plan(),
                options=Options(**options),
                clock=clock,
                progress=Progress(self.progress, clock=clock),
            )
            self.verification.run(interruption)
            self.exit_code = self.verification.exit_code(interruption)

    @property
    def reasons(self) -> str:
        return "\n".join(r for f in self.verification.findings for r in f.reasons)

    def status(self, check: str) -> Status:
        (found,) = [f for f in self.verification.findings if f.check == check]
        return found.status

    @property
    def missed(self) -> list[str]:
        return [f.check for f in self.verification.findings if f.status is Status.MISS]

    def leaves_nothing(self) -> bool:
        names = (api.JOBSETS, api.PODS, api.WORKLOADS, api.SLICES)
        labelled = [n for n in self.cluster.every(api.NODES) if labels.TPU_SLICE in n["metadata"]["labels"]]
        return not labelled and not any(self.cluster.every(resource) for resource in names)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def when_running(name: str, change: Callable[[FakeCluster], None]) -> Callable[[FakeCluster], None]:
    """Breaks the cluster once, after the pods of that JobSet have started."""
    done = []

    def after_step(cluster: FakeCluster) -> None:
        if not done and any(
            p["metadata"]["labels"][labels.JOBSET_NAME] == name for p in cluster.every(api.PODS)
        ):
            done.append(True)
            change(cluster)

    return after_step


def test_a_right_cluster_is_proven_and_nothing_is_left(cluster: FakeCluster) -> None:
    run = Run(cluster)
    assert run.exit_code == 0, run.reasons
    assert run.leaves_nothing()
    seen = {f.check: f.seen for f in run.verification.findings}
    assert seen["hosts labelled google.com/tpu=present"] == "32 of 32 nodes"
    assert seen[f"{SUB}: devices"] == "8 chips = 16 devices a slice, 4 chips = 8 devices a host"
    assert seen[f"{SUPER}: devices"] == "128 chips = 256 devices a slice, 4 chips = 8 devices a host"
    assert seen[f"{SUB}: pods Running"].startswith("12 of 12")
    assert seen[f"{SUPER}: pods Running"].startswith("32 of 32")


def test_the_super_slice_comes_while_the_sub_slices_run_and_they_come_back(cluster: FakeCluster) -> None:
    run = Run(cluster)
    assert run.status(f"{SUB}: placement again, after it gave way") is Status.OK


def test_the_seeds_own_reading_of_one_device_a_chip_is_proven_too(cluster: FakeCluster) -> None:
    cluster.counts = lambda topology: f"Global device count: {topology.chip_count} Local device count: 4"
    assert Run(cluster).exit_code == 0


def test_a_pod_that_sees_only_its_own_host_is_a_miss_although_it_counts_to_eight(
    cluster: FakeCluster,
) -> None:
    cluster.counts = lambda topology: "Global device count: 8 Local device count: 8"
    run = Run(cluster)
    assert run.exit_code == 1
    assert run.status(f"{SUB}: devices") is Status.MISS
    assert "sees 8 devices, 4 chips, instead of 16 devices, 8 chips" in run.reasons


def test_a_pod_that_prints_no_counts_is_a_miss_and_its_last_line_is_shown(cluster: FakeCluster) -> None:
    cluster.counts = lambda topology: "ERROR: No matching distribution found for jax"
    run = Run(cluster)
    assert f"{SUB}: devices" in run.missed
    assert "printed no device counts" in run.reasons
    assert "ends: + sleep infinity" in run.reasons
    assert run.leaves_nothing()


def test_a_pod_on_a_host_of_no_slice_is_a_miss(cluster: FakeCluster) -> None:
    def move(cluster: FakeCluster) -> None:
        cluster.every(api.PODS)[0]["spec"]["nodeName"] = "host-1-15"

    cluster.after_step = when_running(SUB, move)
    run = Run(cluster)
    assert run.exit_code == 1
    assert f"{SUB}: placement" in run.missed
    assert "ran on host-1-15, a host of no Slice" in run.reasons


def test_a_pod_outside_of_its_slices_is_a_miss_also_when_the_rest_never_runs(cluster: FakeCluster) -> None:
    def misplace(cluster: FakeCluster) -> None:
        for pod in cluster.every(api.PODS):
            pod["spec"]["nodeName"], pod["status"]["phase"] = "host-1-15", "Pending"

    cluster.after_step = misplace
    run = Run(cluster)
    assert {f"{SUB}: pods Running", f"{SUB}: placement"} <= set(run.missed)
    assert "was put on host-1-15, outside of its Slices" in run.reasons


def test_a_broken_slice_label_on_a_host_is_a_miss_and_says_which_host(cluster: FakeCluster) -> None:
    def relabel(cluster: FakeCluster) -> None:
        cluster.every(api.NODES)[0]["metadata"]["labels"][labels.TPU_SLICE] = "somebody-elses"

    cluster.after_step = when_running(SUB, relabel)
    run = Run(cluster)
    assert run.exit_code == 1
    assert "host host-0-00 is in a partition of Slice" in run.reasons
    assert "somebody-elses" in run.reasons


def test_pods_of_one_job_on_two_slices_are_a_miss(cluster: FakeCluster) -> None:
    def swap(cluster: FakeCluster) -> None:
        first, *_, last = cluster.every(api.PODS)
        hosts = first["spec"]["nodeName"], last["spec"]["nodeName"]
        last["spec"]["nodeName"], first["spec"]["nodeName"] = hosts

    cluster.after_step = when_running(SUB, swap)
    assert "spread over the Slices" in Run(cluster).reasons


def test_a_slice_that_never_becomes_active_is_a_miss_with_its_state_and_message(cluster: FakeCluster) -> None:
    def fail(cluster: FakeCluster) -> None:
        for slice_object in cluster.every(api.SLICES)[:1]:
            slice_object["status"]["conditions"] = [
                condition("Ready", "False", "FAILED", "formation timed out")
            ]

    cluster.after_step = fail
    run = Run(cluster)
    assert f"{SUB}: Slices ACTIVE" in run.missed
    assert "is FAILED (formation timed out)" in run.reasons
    assert run.leaves_nothing()


def test_a_slice_that_fails_while_the_counts_are_read_is_a_miss(cluster: FakeCluster) -> None:
    def vanish(verb: str, resource: object) -> None:
        if verb == "log" and cluster.every(api.SLICES):
            cluster.remove(api.SLICES, cluster.every(api.SLICES)[0]["metadata"]["name"])

    cluster.before_call = vanish
    assert "went while the counts were read" in Run(cluster).reasons


def test_a_missing_host_is_a_miss_by_both_selectors_and_the_sub_slices_are_still_tried(
    cluster: FakeCluster,
) -> None:
    cluster.remove(api.NODES, "host-1-15")
    run = Run(cluster)
    assert run.missed == ["hosts labelled google.com/tpu=present", "tpu7x hosts"]
    assert run.status(f"{SUB}: devices") is Status.OK
    assert run.status(f"{SUPER}: 4x4x8, 32 pods") is Status.NOT_RUN
    assert "the hosts form only 0" in run.reasons


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "check"),
    [
        (api.TOPOLOGIES, None, "slice-topology", "Topology slice-topology"),
        (api.RESOURCE_FLAVORS, None, "slice-rf", "ResourceFlavor slice-rf"),
        (api.ADMISSION_CHECKS, None, "ac", "AdmissionCheck ac"),
        (api.CLUSTER_QUEUES, None, "cq", "ClusterQueue cq"),
        (api.LOCAL_QUEUES, NAMESPACE, "lq", "LocalQueue lq"),
        (api.PRIORITY_CLASSES, None, "low-priority-1000", "WorkloadPriorityClasses"),
        (api.DEPLOYMENTS, "lws-system", "lws-controller-manager", "LWS rolled out"),
    ],
)
def test_each_missing_queue_or_controller_is_a_miss_and_stops_the_workloads(
    cluster: FakeCluster, resource: api.Resource, namespace: str | None, name: str, check: str
) -> None:
    cluster.remove(resource, name, namespace)
    run = Run(cluster)
    assert run.exit_code == 1
    assert run.missed == [check]
    assert run.status(f"{SUB}: 6 x 2x2x2, 12 pods") is Status.NOT_RUN


@pytest.mark.parametrize("resource", [api.ADMISSION_CHECKS, api.CLUSTER_QUEUES, api.LOCAL_QUEUES])
def test_a_queue_object_that_is_not_active_is_a_miss_in_its_controllers_words(
    cluster: FakeCluster, resource: api.Resource
) -> None:
    why = "references inactive AdmissionCheck(s): ac"
    cluster.every(resource)[0]["status"]["conditions"] = [condition("Active", "False", "CheckInactive", why)]
    run = Run(cluster)
    assert run.exit_code == 1
    assert why in run.reasons


def test_a_stack_of_one_cube_cannot_hold_the_super_slice_and_that_is_no_miss() -> None:
    run = Run(FakeCluster(cubes=1), make_plan(cubes=1))
    assert run.exit_code == 0, run.reasons
    assert run.status(f"{SUPER}: 4x4x8, 32 pods") is Status.NOT_APPLICABLE
    assert "joins 2 cubes of one block" in run.reasons


def test_two_cubes_of_two_reservations_cannot_hold_the_super_slice() -> None:
    pools = [
        {"name": name, "cubes": 1, "reservation": {"name": name, "block": "block-0"}}
        for name in ("res-a", "res-b")
    ]
    plan = make_plan(**{"tpu-slices:slicePools": pools})
    assert [jobset.name for jobset in plan.jobsets] == [SUB]
    assert plan.host_count_by_accelerator == {tpu.TPU7X: 32}


def test_a_stack_whose_own_serving_holds_a_cube_cannot_hold_the_super_slice_beside_it() -> None:
    serving = {"tpu-slices:pdServing": {"model": {"bucket": "weights", "path": "models/x"}}}
    plan = make_plan(**serving)
    assert [jobset.name for jobset in plan.jobsets] == [SUB]
    assert "its own pdServing holds 16" in plan.not_applicable[0].reasons[0]
    assert len(make_plan(cubes=3, **serving).jobsets) == 2


def test_one_step_can_be_tried_alone(cluster: FakeCluster) -> None:
    plan = plan_for(settings.load(CONFIG), namespace=None, run="here/1/now", steps=["9"])
    run = Run(cluster, plan)
    assert run.exit_code == 0
    assert {finding.step for finding in run.verification.findings} == {"5", "6", "7", "9", ""}


def test_a_stack_without_slice_pools_is_asked_only_for_its_hosts_and_lws() -> None:
    pool = {"name": "multihost-np", "topology": "4x4"}
    given = {
        "gcp:project": "example-project",
        "tpu-slices:zone": "us-east5-b",
        "tpu-slices:multihostPools": [pool],
    }
    plan = plan_for(settings.load(given), namespace=None, run="run")
    assert plan.host_count_by_accelerator == {tpu.V6E: 4}
    assert [controller.title for controller in plan.controllers] == ["LWS"]
    assert not plan.has_queues
    assert len(plan.not_applicable) == 2


def other_workload(cluster: FakeCluster, *, priority: int) -> None:
    """Somebody else's Workload on the first cube, as Kueue's v1beta2 writes an assignment."""
    individual = {"prefix": "host-0-", "roots": [f"{index:02d}" for index in range(16)]}
    part = {"domainCount": 16, "valuesPerLevel": [{"individual": individual}], "podCounts": {"universal": 1}}
    assignment = {"levels": [labels.HOSTNAME], "slices": [part]}
    admission = {
        "clusterQueue": "cq",
        "podSetAssignments": [{"name": "main", "topologyAssignment": assignment}],
    }
    workload = {
        "metadata": {"name": "jobset-training-12345"},
        "spec": {"priority": priority},
        "status": {"admission": admission, "conditions": [condition("Admitted", "True")]},
    }
    cluster.put(api.WORKLOADS, workload, "research")
    ids = [cluster.every(api.NODES)[0]["metadata"]["labels"][labels.partition_id("4x4x4")]]
    spec = {"type": "tpu7x", "topology": "4x4x4", "partitionIds": ids}
    cluster.put(api.SLICES, {"metadata": {"name": "training"}, "spec": spec, "status": {"conditions": []}})


def test_other_peoples_workloads_are_not_preempted_and_are_named(cluster: FakeCluster) -> None:
    other_workload(cluster, priority=500)
    run = Run(cluster)
    assert run.exit_code == 3
    assert run.status(f"{SUB}: devices") is Status.OK, "the sub-slices fit beside it"
    assert run.status(f"{SUPER}: 4x4x8, 32 pods") is Status.NOT_RUN
    assert "it would preempt Workload research/jobset-training-12345 (16 hosts, priority 500)" in run.reasons
    assert "--preempt" in run.reasons


def test_with_leave_to_preempt_the_super_slice_is_submitted(cluster: FakeCluster) -> None:
    other_workload(cluster, priority=500)
    run = Run(cluster, may_preempt=True)
    assert "it would preempt" not in run.reasons
    assert f"{SUPER}: Slices ACTIVE" in run.missed, "the fake never lets go of a foreign Slice"
    assert "allows to fit only" in run.reasons, "Kueue's own words"


def test_workloads_of_the_same_or_a_higher_priority_are_named_as_holders(cluster: FakeCluster) -> None:
    other_workload(cluster, priority=3000)
    run = Run(cluster, may_preempt=True)
    assert run.exit_code == 3
    assert "no room for 1 x 4x4x8, held by Workload research/jobset-training-12345" in run.reasons


def test_a_jobset_of_that_name_that_a_person_made_is_left_alone(cluster: FakeCluster) -> None:
    (sub, _) = make_plan().jobsets
    manifest = {**sub.manifest, "metadata": {**sub.manifest["metadata"], "annotations": {}}}
    cluster.create(api.JOBSETS, manifest)
    run = Run(cluster)
    assert run.exit_code != 0
    assert "a JobSet of this name is there already, made by somebody" in run.reasons
    assert cluster.get(api.JOBSETS, SUB, NAMESPACE) is not None


def test_what_a_killed_verify_left_is_removed_first(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sub, _) = make_plan().jobsets
    annotations = {RUN_ANNOTATION: "here/2/before"}
    cluster.create(
        api.JOBSETS, {**sub.manifest, "metadata": {**sub.manifest["metadata"], "annotations": annotations}}
    )
    monkeypatch.setattr("ops.checks.verification.run_is_dead", lambda run: run == "here/2/before")
    run = Run(cluster)
    assert run.exit_code == 0, run.reasons
    assert "was left by a verify that is gone" in run.progress.getvalue()


def test_a_slice_that_does_not_go_is_a_miss_and_the_way_to_remove_it_is_said(cluster: FakeCluster) -> None:
    cluster.never_removes_slices = True
    run = Run(cluster, make_plan(cubes=1))
    assert "nothing left behind" in run.missed
    assert any(item.what.startswith("Slice ") for item in run.verification.left)
    assert "kubectl delete slices.accelerator.gke.io" in run.reasons


def test_a_host_that_keeps_its_slice_label_is_a_leftover(cluster: FakeCluster) -> None:
    def stick(cluster: FakeCluster) -> None:
        node = cluster.every(api.NODES)[-1]
        stuck.append(node["metadata"]["labels"].get(labels.TPU_SLICE) or (stuck[-1] if stuck else None))
        if stuck[-1]:
            node["metadata"]["labels"][labels.TPU_SLICE] = stuck[-1]

    stuck: list[str | None] = []
    cluster.after_step = stick
    run = Run(cluster)
    assert "nothing left behind" in run.missed
    assert "on 1 hosts (host-1-15)" in run.reasons


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_removes_what_it_made_and_says_so_with_its_exit_code(
    cluster: FakeCluster, number: signal.Signals
) -> None:
    cluster.after_step = when_running(SUB, lambda cluster: signal.raise_signal(number))
    run = Run(cluster)
    assert run.exit_code == 128 + number
    assert run.leaves_nothing()


def test_a_signal_right_after_the_create_loses_nothing(cluster: FakeCluster) -> None:
    def interrupt(verb: str, resource: object) -> None:
        if verb == "list" and cluster.every(api.JOBSETS) and not sent:
            sent.append(True)
            signal.raise_signal(signal.SIGINT)

    sent: list[bool] = []
    cluster.before_call = interrupt
    run = Run(cluster)
    assert sent
    assert run.leaves_nothing()


def test_a_second_signal_leaves_things_and_says_what_and_how_to_remove_it(cluster: FakeCluster) -> None:
    def interrupt_twice(cluster: FakeCluster) -> None:
        if cluster.every(api.PODS) and len(sent) < 1:
            sent.append(1)
            signal.raise_signal(signal.SIGINT)
        elif sent and len(sent) < 2:
            sent.append(2)
            signal.raise_signal(signal.SIGINT)

    sent: list[int] = []
    cluster.never_removes_slices = True
    cluster.after_step = interrupt_twice
    run = Run(cluster)
    assert run.verification.abandoned
    assert run.exit_code == 130
    assert any("kubectl delete" in item.command for item in run.verification.left)


def test_a_fault_of_our_own_still_removes_what_was_made(cluster: FakeCluster) -> None:
    def break_down(verb: str, resource: object) -> None:
        if verb == "log":
            raise ZeroDivisionError

    cluster.before_call = break_down
    with pytest.raises(ZeroDivisionError):
        Run(cluster)
    assert cluster.every(api.JOBSETS) == []
    assert cluster.every(api.SLICES) == []


def test_an_api_server_that_is_away_for_a_while_is_waited_for(cluster: FakeCluster) -> None:
    def away(verb: str, resource: object) -> None:
        calls.append(verb)
        if len(calls) % 7 == 0:
            raise ApiRefusal(0, "no answer: connection refused")

    calls: list[str] = []
    cluster.before_call = away
    run = Run(cluster, make_plan(cubes=1))
    assert "the API server does not answer" in run.progress.getvalue()


def test_what_it_waits_for_is_said_while_it_waits(cluster: FakeCluster) -> None:
    run = Run(cluster)
    assert f"{SUB}: 0 of 12 pods Running, Slices: 6 ACTIVATING" in run.progress.getvalue()


def test_a_webhook_that_refuses_the_jobset_is_a_miss_in_its_own_words(cluster: FakeCluster) -> None:
    def refuse(verb: str, resource: object) -> None:
        if verb == "create":
            raise ApiRefusal(400, 'admission webhook "mjobset.kb.io" denied the request: no')

    cluster.before_call = refuse
    run = Run(cluster)
    assert f"{SUB}: submitted" in run.missed
    assert "mjobset.kb.io" in run.reasons
