import copy
from typing import Any

import pytest

from facts import labels, tpu
from ops.checks import kubernetes_api as api
from ops.checks.capacity import assigned_hosts, read_holders, slices_that_fit
from ops.checks.device_counts import DeviceCounts, counts_in_words, judge_counts, read_counts
from ops.checks.kubernetes_api import KubernetesObject
from ops.checks.placement import judge_hosts, judge_pods, judge_slices, strays
from ops.checks.plan import MANIFESTS
from ops.checks.platform import LWS, judge_rollout, queue_checks
from ops.checks.platform import judge_hosts as judge_platform_hosts
from ops.checks.slice_jobset import SliceJobSet
from tests.fakes.verify_cluster import FakeCluster, condition, host

SUB = SliceJobSet.from_file(
    MANIFESTS / "kueue-jobset-simple-subslicing.yaml", namespace="work", local_queue="lq", run="run"
)
SUPER = SliceJobSet.from_file(
    MANIFESTS / "kueue-jobset-simple-superslicing.yaml", namespace="work", local_queue="lq", run="run"
)


class Formed:
    """A JobSet that runs as it should, to be broken."""

    def __init__(self, jobset: SliceJobSet = SUB) -> None:
        cluster = FakeCluster()
        cluster.create(api.JOBSETS, copy.deepcopy(jobset.manifest))
        for _ in range(4):
            cluster.step()
        self.jobset = jobset
        self.pods = cluster.every(api.PODS)
        self.slices = cluster.every(api.SLICES)
        self.nodes = cluster.every(api.NODES)

    def misses(self) -> list[str]:
        return [
            *judge_slices(self.jobset, self.slices),
            *judge_hosts(self.jobset, self.slices, self.nodes),
            *judge_pods(self.jobset, self.pods, self.slices, self.nodes),
        ]

    def node(self, index: int) -> dict[str, str]:
        found: dict[str, str] = self.nodes[index]["metadata"]["labels"]
        return found


@pytest.fixture
def formed() -> Formed:
    return Formed()


@pytest.mark.parametrize("jobset", [SUB, SUPER], ids=["sub-slices", "super-slice"])
def test_what_formed_right_has_no_misses(jobset: SliceJobSet) -> None:
    formed = Formed(jobset)
    assert formed.misses() == []
    assert len(formed.pods) == jobset.pod_count


def test_the_counts_follow_from_the_manifests() -> None:
    assert (SUB.slice_count, SUB.pod_count, SUB.topology.chip_count) == (6, 12, 8)
    assert (SUPER.slice_count, SUPER.pod_count, SUPER.topology.chip_count) == (1, 32, 128)


def test_a_missing_slice_is_a_miss(formed: Formed) -> None:
    del formed.slices[0]
    assert "5 Slices instead of 6" in formed.misses()


@pytest.mark.parametrize("reason", ["FAILED", "ACTIVATING", "SliceCreationFailed", "INCOMPLETE"])
def test_a_slice_in_any_other_state_is_a_miss(formed: Formed, reason: str) -> None:
    formed.slices[0]["status"]["conditions"] = [condition("Ready", "False", reason)]
    assert any(f"is {reason}" in miss for miss in formed.misses())


def test_a_slice_on_its_way_out_is_a_miss_even_while_it_says_active(formed: Formed) -> None:
    formed.slices[0]["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    assert any("is DEACTIVATING" in miss for miss in judge_slices(SUB, formed.slices))


def test_a_degraded_slice_is_usable(formed: Formed) -> None:
    formed.slices[0]["status"]["conditions"] = [condition("Ready", "True", "ACTIVE_DEGRADED")]
    assert formed.misses() == []


def test_a_slice_of_another_shape_is_a_miss(formed: Formed) -> None:
    formed.slices[0]["spec"]["topology"] = "2x2x4"
    assert any("is a 2x2x4, not a 2x2x2" in miss for miss in formed.misses())


def test_a_super_slice_that_names_one_cube_twice_is_a_miss() -> None:
    formed = Formed(SUPER)
    ids = formed.slices[0]["spec"]["partitionIds"]
    formed.slices[0]["spec"]["partitionIds"] = [ids[0], ids[0]]
    assert any("partitions instead of 2" in miss for miss in formed.misses())


def test_a_super_slice_over_two_blocks_is_a_miss() -> None:
    formed = Formed(SUPER)
    for index in range(16):
        formed.node(index)[labels.TOPOLOGY_BLOCK] = "block-1"
    assert any("spans the blocks block-0, block-1" in miss for miss in formed.misses())


def test_two_slices_on_one_partition_are_a_miss(formed: Formed) -> None:
    formed.slices[1]["spec"]["partitionIds"] = formed.slices[0]["spec"]["partitionIds"]
    assert any("is in two Slices" in miss for miss in formed.misses())


@pytest.mark.parametrize("key", [labels.TPU_SLICE, labels.TPU_TOPOLOGY])
def test_a_host_without_the_add_ons_label_is_a_miss(formed: Formed, key: str) -> None:
    del formed.node(0)[key]
    assert any(f"its label {key} is absent" in miss for miss in formed.misses())


def test_a_host_that_carries_the_label_of_a_slice_that_it_is_not_in_is_a_miss(formed: Formed) -> None:
    formed.node(-1)[labels.TPU_SLICE] = formed.slices[0]["metadata"]["name"]
    assert any("is in none of its partitions" in miss for miss in formed.misses())


def test_a_partition_that_lost_a_host_is_a_miss(formed: Formed) -> None:
    formed.node(0)[labels.partition_id("2x2x2")] = "elsewhere"
    assert any("have 1 hosts, not 2" in miss for miss in formed.misses())


def test_a_pod_without_a_host_is_a_miss(formed: Formed) -> None:
    del formed.pods[0]["spec"]["nodeName"]
    assert any("has no host" in miss for miss in formed.misses())


def test_a_pod_on_another_jobsets_slice_is_a_miss_that_names_it(formed: Formed) -> None:
    formed.node(-1)[labels.TPU_SLICE] = "somebody-elses"
    formed.pods[0]["spec"]["nodeName"] = "host-1-15"
    assert any("ran on host-1-15, a host of Slice somebody-elses" in miss for miss in formed.misses())


def test_two_pods_on_one_host_are_a_miss(formed: Formed) -> None:
    formed.pods[1]["spec"]["nodeName"] = formed.pods[0]["spec"]["nodeName"]
    assert any("share the host" in miss for miss in formed.misses())


def test_two_jobs_on_one_slice_are_a_miss(formed: Formed) -> None:
    for pod in formed.pods[2:4]:
        pod["metadata"]["labels"][labels.JOBSET_JOB_INDEX] = "0"
    assert any("Job 0 has 4 pods instead of 2" in miss for miss in formed.misses())
    for pod, job in zip(formed.pods[:4], "0101", strict=True):
        pod["metadata"]["labels"][labels.JOBSET_JOB_INDEX] = job
    assert any("holds pods of the Jobs 0, 1" in miss for miss in formed.misses())


def test_a_missing_pod_is_a_miss(formed: Formed) -> None:
    del formed.pods[0]
    assert "Job 0 has 1 pods instead of 2" in formed.misses()


def test_a_job_without_any_pod_is_a_miss(formed: Formed) -> None:
    del formed.pods[0:2]
    assert "pods of 5 Jobs instead of 6" in formed.misses()


def test_a_pod_that_was_put_outside_of_its_slices_is_seen_while_they_form(formed: Formed) -> None:
    assert strays(SUB, formed.pods, formed.slices, formed.nodes) == {}
    formed.pods[0]["spec"]["nodeName"] = "host-1-15"
    assert len(strays(SUB, formed.pods, formed.slices, formed.nodes)) == 1
    formed.pods[0]["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    assert strays(SUB, formed.pods, formed.slices, formed.nodes) == {}, "it leaves, as it should"


# --- devices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobset", "global_count", "local_count"), [(SUB, 16, 8), (SUB, 8, 4), (SUPER, 256, 8), (SUPER, 128, 4)]
)
def test_both_readings_of_a_chip_are_right(jobset: SliceJobSet, global_count: int, local_count: int) -> None:
    assert judge_counts(jobset, {"pod": DeviceCounts(global_count, local_count)}) == []


@pytest.mark.parametrize(
    ("jobset", "global_count", "local_count"),
    [(SUB, 8, 8), (SUB, 16, 4), (SUB, 32, 8), (SUPER, 128, 8), (SUB, 16, 6)],
)
def test_any_other_count_is_a_miss(jobset: SliceJobSet, global_count: int, local_count: int) -> None:
    assert judge_counts(jobset, {"pod": DeviceCounts(global_count, local_count)})


def test_pods_that_count_differently_are_a_miss() -> None:
    assert judge_counts(SUB, {"a": DeviceCounts(16, 8), "b": DeviceCounts(8, 4)})


def test_the_counts_are_read_from_a_traced_log() -> None:
    log = """+ python -c 'import jax; print("Global device count:", jax.device_count(), "Local device count:", …)'
Global device count: 16 Local device count: 8
+ sleep infinity"""
    assert read_counts(log) == DeviceCounts(16, 8)
    assert read_counts(log.splitlines()[0]) is None


def test_chips_and_devices_are_both_said() -> None:
    assert counts_in_words(SUPER, [DeviceCounts(256, 8)] * 32).startswith("128 chips = 256 devices a slice")


def test_counts_that_differ_are_all_said() -> None:
    assert counts_in_words(SUB, [DeviceCounts(16, 8), DeviceCounts(8, 8), None]) == "counts 16/8, 8/8"
    assert counts_in_words(SUB, [DeviceCounts(16, 6)]) == "counts 16/6"


# --- hosts, controllers, room ----------------------------------------------------------------------------------


def hosts(count: int = 16) -> list[KubernetesObject]:
    return [host(0, index) for index in range(count)]


def test_hosts_as_they_should_be_have_no_misses() -> None:
    look = judge_platform_hosts(hosts(), accelerator=tpu.TPU7X, host_count=16)
    assert look.done
    assert look.seen == "16 of 16 Ready, 64 chips"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda node: node["status"]["conditions"][0].update(status="False"), "is not Ready"),
        (
            lambda node: node["status"]["allocatable"].update({labels.TPU_RESOURCE: "0"}),
            "offers 0 chips, not 4",
        ),
        (lambda node: node["spec"].update(taints=[]), "lacks the taint google.com/tpu:NoSchedule"),
        (
            lambda node: node["metadata"]["labels"].pop(labels.partition_id("2x2x4")),
            "gke-tpu-partition-2x2x4-id",
        ),
    ],
)
def test_a_host_that_is_not_ready_for_slices_is_a_miss(change: Any, said: str) -> None:
    nodes = hosts()
    change(nodes[3])
    look = judge_platform_hosts(nodes, accelerator=tpu.TPU7X, host_count=16)
    assert not look.done
    assert any("host-0-03" in miss and said in miss for miss in look.misses)


@pytest.mark.parametrize(
    "status",
    [
        {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1},
        {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1},
        {},
    ],
)
def test_a_rollout_that_is_not_over_is_a_miss(status: dict[str, int]) -> None:
    deployment = FakeCluster().get(api.DEPLOYMENTS, LWS.deployment, LWS.namespace)
    assert deployment is not None
    assert judge_rollout(deployment, LWS).done
    deployment["status"] = status
    assert not judge_rollout(deployment, LWS).done


def test_a_controller_scaled_to_zero_is_a_miss_that_says_so() -> None:
    deployment = FakeCluster().get(api.DEPLOYMENTS, LWS.deployment, LWS.namespace)
    assert deployment is not None
    deployment["spec"]["replicas"] = 0
    deployment["status"] = {"observedGeneration": 2}
    assert judge_rollout(deployment, LWS).misses == (
        f"Deployment {LWS.namespace}/{LWS.deployment} is scaled to zero",
    )


def test_a_rollout_that_missed_its_own_deadline_is_not_waited_for() -> None:
    deployment = FakeCluster().get(api.DEPLOYMENTS, LWS.deployment, LWS.namespace)
    assert deployment is not None
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", "has timed out progressing")
    deployment["status"] = {"observedGeneration": 2, "conditions": [late]}
    look = judge_rollout(deployment, LWS)
    assert look.hopeless
    assert "has timed out progressing" in look.misses[0]


@pytest.mark.parametrize(
    ("resource", "wrong", "said"),
    [
        (
            api.TOPOLOGIES,
            {"levels": [{"nodeLabel": labels.HOSTNAME}]},
            "its levels are kubernetes.io/hostname instead",
        ),
        (api.RESOURCE_FLAVORS, {"topologyName": "other"}, "its topologyName is other"),
        (api.RESOURCE_FLAVORS, {"nodeLabels": {}}, "it takes hosts with"),
        (api.ADMISSION_CHECKS, {"controllerName": "other"}, "its controller is other"),
        (api.CLUSTER_QUEUES, {"admissionChecksStrategy": {}}, "it does not ask the AdmissionCheck ac"),
        (api.LOCAL_QUEUES, {"clusterQueue": "other"}, "it leads to other instead of cq"),
    ],
)
def test_a_queue_object_that_says_something_else_is_a_miss(
    resource: api.Resource, wrong: dict[str, Any], said: str
) -> None:
    cluster = FakeCluster()
    checks = queue_checks(
        cluster,
        cluster_queue="cq",
        local_queue="lq",
        namespace="llm-d-pd-disaggregation",
        priority_classes=[],
    )
    assert all(check.look().done for check in checks)
    cluster.every(resource)[0]["spec"].update(wrong)
    assert [miss for check in checks for miss in check.look().misses if said in miss]


@pytest.mark.parametrize(
    ("shape", "count"), [("2x2x1", 32), ("2x2x2", 16), ("2x4x4", 4), ("4x4x4", 2), ("4x4x8", 1)]
)
def test_two_cubes_hold_as_many_slices_as_their_chips_say(shape: str, count: int) -> None:
    nodes = [host(cube, index) for cube in range(2) for index in range(16)]
    assert slices_that_fit(tpu.Topology.parse(shape), nodes) == count


def test_cubes_of_two_blocks_hold_no_super_slice() -> None:
    nodes = [host(cube, index, block=f"block-{cube}") for cube in range(2) for index in range(16)]
    assert slices_that_fit(tpu.Topology.parse("4x4x8"), nodes) == 0


@pytest.mark.parametrize(
    ("state", "count"), [("UNHEALTHY", 0), ("INCOMPLETE", 0), ("DEGRADED", 1), ("HEALTHY", 1)]
)
def test_a_cube_counts_when_it_is_healthy_or_degraded(state: str, count: int) -> None:
    nodes = hosts()
    for node in nodes:
        node["metadata"]["labels"][labels.partition_state("4x4x4")] = state
    assert slices_that_fit(tpu.Topology.parse("4x4x4"), nodes) == count


def test_a_cordoned_host_takes_its_partitions_away() -> None:
    nodes = hosts()
    nodes[0]["spec"]["unschedulable"] = True
    assert slices_that_fit(tpu.Topology.parse("2x2x2"), nodes) == 7


def test_kueues_compressed_assignments_are_read() -> None:
    individual = {"prefix": "gke-", "suffix": "-x", "roots": ["a", "b"]}
    parts = [
        {"domainCount": 2, "valuesPerLevel": [{"universal": "block-0"}, {"individual": individual}]},
        {"domainCount": 1, "valuesPerLevel": [{"universal": "block-0"}, {"universal": "gke-c"}]},
    ]
    assignment = {"levels": [labels.TOPOLOGY_BLOCK, labels.HOSTNAME], "slices": parts}
    workload = {"status": {"admission": {"podSetAssignments": [{"topologyAssignment": assignment}]}}}
    assert assigned_hosts(workload) == {"gke-a-x", "gke-b-x", "gke-c"}


def holders_of(cluster: FakeCluster, *own: SliceJobSet) -> list[str]:
    nodes = cluster.every(api.NODES)
    return [holder.what for holder in read_holders(cluster, nodes, cluster_queue="cq", own=own)]


def running_workload(status: dict[str, Any] | None = None) -> KubernetesObject:
    part = {"domainCount": 1, "valuesPerLevel": [{"universal": "host-0-00"}]}
    assignment = {"levels": [labels.HOSTNAME], "slices": [part]}
    admission = {"clusterQueue": "cq", "podSetAssignments": [{"topologyAssignment": assignment}]}
    name = f"jobset-{SUB.name}-abcde"
    return {
        "metadata": {"name": name},
        "spec": {"priority": 1},
        "status": {"admission": admission, "conditions": [], **(status or {})},
    }


def pod_on(node: str, **status: str) -> KubernetesObject:
    container = {"name": "c", "resources": {"limits": {labels.TPU_RESOURCE: "4"}}}
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": node, "containers": [container]},
        "status": status,
    }


def test_a_workload_holds_its_hosts_until_it_is_finished() -> None:
    cluster = FakeCluster()
    cluster.put(api.WORKLOADS, running_workload(), "work")
    assert holders_of(cluster) == [f"Workload work/jobset-{SUB.name}-abcde"]
    cluster.put(api.WORKLOADS, running_workload({"conditions": [condition("Finished", "True")]}), "work")
    assert holders_of(cluster) == []


def test_what_verify_holds_itself_counts_as_free() -> None:
    cluster = FakeCluster()
    cluster.put(api.WORKLOADS, running_workload(), "work")
    assert holders_of(cluster, SUB) == []


def test_a_pod_that_kueue_does_not_know_holds_its_host_until_it_ends() -> None:
    cluster = FakeCluster()
    cluster.put(api.PODS, pod_on("host-0-00", phase="Running"), "team")
    assert holders_of(cluster) == ["Pod team/p"]
    cluster.put(api.PODS, pod_on("host-0-00", phase="Succeeded"), "team")
    assert holders_of(cluster) == []


def test_a_pod_without_chips_holds_nothing() -> None:
    cluster = FakeCluster()
    daemon = pod_on("host-0-00", phase="Running")
    daemon["spec"]["containers"][0]["resources"] = {}
    cluster.put(api.PODS, daemon, "kube-system")
    assert holders_of(cluster) == []


def test_a_slice_made_by_hand_holds_its_hosts_and_kueue_cannot_preempt_it() -> None:
    cluster = FakeCluster()
    ids = [cluster.every(api.NODES)[0]["metadata"]["labels"][labels.partition_id("2x2x2")]]
    spec = {"type": "tpu7x", "topology": "2x2x2", "partitionIds": ids}
    cluster.put(api.SLICES, {"metadata": {"name": "by-hand"}, "spec": spec})
    (holder,) = read_holders(cluster, cluster.every(api.NODES), cluster_queue="cq", own=())
    assert holder.in_words() == "Slice by-hand (2 hosts, not Kueue's to preempt)"
