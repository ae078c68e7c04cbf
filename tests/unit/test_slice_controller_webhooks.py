"""The slice controller's mutating webhooks: what they add, what they refuse, and what they leave alone.

Expected texts and values come from the public source's own tests and messages (AI-Hypercomputer/xpk, slice-main).
"""

import base64
import copy
import json

import pytest

from simulator.slice_controller import json_patch, server, shapes, templates
from simulator.slice_controller.webhooks import (
    Refused,
    Rules,
    mutate_job,
    mutate_jobset,
    mutate_leader_worker_set,
    mutate_stateful_set,
)

RULES = Rules(healthy_values=("HEALTHY", "DEGRADED"), topology_from_selectors=True)
BLOCK = "cloud.google.com/gce-topology-block"
ANNOTATION = "cloud.google.com/gke-tpu-slice-topology"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"


def template(topology="2x2x2", chips=4, accelerator="tpu7x", **spec):
    found = {
        "metadata": {"annotations": {ANNOTATION: topology} if topology else {}},
        "spec": {
            "nodeSelector": {ACCELERATOR: accelerator} if accelerator else {},
            "containers": [{"name": "c", "resources": {"limits": {"google.com/tpu": chips}}}],
        },
    }
    found["spec"] |= spec
    return found


def job(parallelism=2, queue="lq", **given):
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue is not None else {}
    spec = {"template": template(**given)}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    return {"metadata": {"name": "j", "labels": labels}, "spec": spec}


def jobset(*jobs, queue="lq"):
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    replicated = [
        {"name": f"r{index}", "template": {"spec": item["spec"]}} for index, item in enumerate(jobs)
    ]
    return {"metadata": {"name": "js", "labels": labels}, "spec": {"replicatedJobs": replicated}}


def lws(worker, leader=None, queue="lq"):
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    group = {"workerTemplate": worker} | ({"leaderTemplate": leader} if leader else {})
    return {"metadata": {"name": "l", "labels": labels}, "spec": {"leaderWorkerTemplate": group}}


def annotations(mutated_template):
    return mutated_template["metadata"]["annotations"]


def affinity(mutated_template):
    required = mutated_template["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    return required["nodeSelectorTerms"]


@pytest.mark.parametrize(
    ("shape", "parallelism", "level", "size"),
    [
        ("2x2x1", 1, "2x2x1", 1),
        ("2x2x2", 2, "2x2x2", 2),
        ("2x2x4", 4, "2x2x4", 4),
        ("2x4x4", 8, "2x4x4", 8),
        ("4x4x4", 16, "4x4x4", 16),
        ("4x4x8", 32, "4x4x4", 16),
        ("4x8x8", 64, "4x4x4", 16),
    ],
)
def test_a_job_asks_for_whole_partitions_of_its_shape_within_one_block(shape, parallelism, level, size):
    mutated = mutate_job(job(parallelism, topology=shape), RULES)["spec"]["template"]
    assert annotations(mutated) == {
        ANNOTATION: shape,
        "kueue.x-k8s.io/podset-required-topology": BLOCK,
        "kueue.x-k8s.io/podset-slice-required-topology": f"cloud.google.com/gke-tpu-partition-{level}-id",
        "kueue.x-k8s.io/podset-slice-size": str(size),
    }
    assert affinity(mutated) == [
        {
            "matchExpressions": [
                {
                    "key": f"cloud.google.com/gke-tpu-partition-{level}-state",
                    "operator": "In",
                    "values": ["HEALTHY", "DEGRADED"],
                }
            ]
        }
    ]


def test_each_replicated_job_of_a_jobset_is_judged_by_itself():
    mutated = mutate_jobset(jobset(job(2), job(3, topology="")), RULES)["spec"]["replicatedJobs"]
    assert annotations(mutated[0]["template"]["spec"]["template"])["kueue.x-k8s.io/podset-slice-size"] == "2"
    assert mutated[1]["template"]["spec"]["template"] == template(topology="")


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (
            job(3),
            'invalid job "j": configuration results in 12 TPUs requested, but must be exactly 8 TPUs (full utilization)',
        ),
        (
            jobset(job(16, topology="4x4x8")),
            'invalid jobset "js": configuration results in 32 TPUs requested, but must be exactly 64 TPUs (full utilization)',
        ),
        (
            job(2, chips=2),
            'invalid job "j": configuration results in 4 TPUs requested, but must be exactly 8 TPUs ',
        ),
        (jobset(job(None)), 'invalid jobset "js": parallelism must be set for Sub-/SuperSlice workloads'),
        (job(2, topology="2x2x2x2"), "invalid topology format: 2x2x2x2, expected 3 dimensions"),
        (job(2, topology="4x4x0"), "topology dimensions cannot be zero: 4x4x0"),
        (job(2, topology="2x2x8"), "topology dimensions must be divisible by 4: 2x2x8"),
        (job(2, topology="8x4x4"), "topology dimensions must be in non-decreasing order: 8x4x4"),
        (job(2, topology="2x2x2a"), 'strconv.ParseInt: parsing "2a": invalid syntax'),
        (job(2, topology="4x4x4294967296"), 'strconv.ParseInt: parsing "4294967296": value out of range'),
        (lws(template(topology="3x3x3")), "topology dimensions must be divisible by 4: 3x3x3"),
    ],
)
def test_what_does_not_fill_its_slice_or_has_no_shape_is_refused_in_the_controllers_words(obj, text):
    mutate = {"replicatedJobs": mutate_jobset, "leaderWorkerTemplate": mutate_leader_worker_set}
    chosen = next((mutate[key] for key in mutate if key in obj["spec"]), mutate_job)
    with pytest.raises(Refused) as refused:
        chosen(obj, RULES)
    assert str(refused.value).startswith(text)


@pytest.mark.parametrize("queue", [None, ""])
def test_what_has_no_queue_passes_untouched(queue):
    assert mutate_job(job(99, queue=queue), RULES) == job(99, queue=queue)
    assert mutate_jobset(jobset(job(99), queue=queue), RULES) == jobset(job(99), queue=queue)


@pytest.mark.parametrize(
    "given",
    [
        {"topology": "2x4"},
        {"topology": ""},
        {"accelerator": "tpu-v6e-slice"},
        {"accelerator": None},
    ],
)
def test_what_asks_for_no_tpu7x_slice_passes_untouched(given):
    assert mutate_job(job(99, **given), RULES) == job(99, **given)
    assert mutate_jobset(jobset(job(99, **given)), RULES) == jobset(job(99, **given))


def test_the_object_given_is_never_changed_itself():
    given = job(2)
    before = copy.deepcopy(given)
    assert mutate_job(given, RULES) != before
    assert given == before


def test_chips_are_counted_from_limits_of_containers_only():
    pod = template()
    pod["spec"]["containers"].append({"name": "side", "resources": {"requests": {"google.com/tpu": 4}}})
    pod["spec"]["initContainers"] = [{"name": "init", "resources": {"limits": {"google.com/tpu": 4}}}]
    assert templates.chips_per_pod(pod) == 4


def test_super_slices_drop_the_rest_of_the_division():
    mutated = mutate_job(job(33, topology="4x4x8"), RULES)["spec"]["template"]
    assert annotations(mutated)["kueue.x-k8s.io/podset-slice-size"] == "16"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {ACCELERATOR: "tpu7x", "cloud.google.com/gke-tpu-partition-2x2x2-state": "HEALTHY"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": "cloud.google.com/gke-tpu-partition-2x2x2-state",
                                        "operator": "In",
                                        "values": ["HEALTHY"],
                                    }
                                ]
                            }
                        ]
                    }
                }
            }
        },
    ],
)
def test_a_wish_about_health_is_left_as_it_is(spec):
    mutated = mutate_job(job(2, **spec), RULES)["spec"]["template"]
    assert mutated["spec"].get("affinity") == spec.get("affinity")
    assert mutated["spec"]["nodeSelector"] == spec.get("nodeSelector", {ACCELERATOR: "tpu7x"})


def test_health_is_added_to_every_term_of_an_affinity_that_speaks_of_other_things():
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"nodeSelectorTerms": [term, {"matchFields": []}]}
    given = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    found = affinity(mutate_job(job(2, affinity=given), RULES)["spec"]["template"])
    health = {
        "key": "cloud.google.com/gke-tpu-partition-2x2x2-state",
        "operator": "In",
        "values": ["HEALTHY", "DEGRADED"],
    }
    assert found[0]["matchExpressions"] == [*term["matchExpressions"], health]
    assert found[1]["matchExpressions"] == [health]


def test_with_the_flag_healthy_a_workload_without_a_wish_takes_only_healthy_partitions():
    rules = Rules(healthy_values=("HEALTHY",), topology_from_selectors=True)
    found = affinity(mutate_job(job(2), rules)["spec"]["template"])
    assert found[0]["matchExpressions"][0]["values"] == ["HEALTHY"]


def test_the_accelerator_may_come_from_a_required_affinity_with_one_value():
    terms = [{"matchExpressions": [{"key": ACCELERATOR, "operator": "In", "values": ["tpu7x"]}]}]
    given = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert mutate_job(job(2, accelerator=None, affinity=given), RULES) != job(
        2, accelerator=None, affinity=given
    )
    terms[0]["matchExpressions"][0]["values"] = ["tpu7x", "tpu-v6e-slice"]
    assert mutate_job(job(2, accelerator=None, affinity=given), RULES) == job(
        2, accelerator=None, affinity=given
    )


def test_a_topology_that_stands_only_in_a_selector_makes_the_job_relevant_and_then_refused():
    selector = {ACCELERATOR: "tpu7x", "cloud.google.com/gke-tpu-partition-2x2x2-state": "HEALTHY"}
    given = job(2, topology="", nodeSelector=selector)
    with pytest.raises(Refused, match=r"^invalid topology format: , expected 3 dimensions$"):
        mutate_job(given, RULES)
    without_gate = Rules(healthy_values=("HEALTHY",), topology_from_selectors=False)
    assert mutate_job(given, without_gate) == given


def test_a_group_without_leader_template_asks_for_one_partition_and_is_spared_wardens_check():
    mutated = mutate_leader_worker_set(lws(template(chips=1)), RULES)["spec"]["leaderWorkerTemplate"]
    assert annotations(mutated["workerTemplate"]) == {
        ANNOTATION: "2x2x2",
        "cloud.google.com/skip-tpu-webhook-check": "true",
        "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gke-tpu-partition-2x2x2-id",
    }
    assert "leaderTemplate" not in mutated


def test_leader_and_workers_are_placed_as_one_group():
    mutated = mutate_leader_worker_set(lws(template(), template()), RULES)["spec"]["leaderWorkerTemplate"]
    for name in ("workerTemplate", "leaderTemplate"):
        assert annotations(mutated[name])["kueue.x-k8s.io/podset-group-name"] == "lws-super-slice-group"
        assert "kueue.x-k8s.io/podset-slice-size" not in annotations(mutated[name])
        assert affinity(mutated[name])[0]["matchExpressions"][0]["values"] == ["HEALTHY", "DEGRADED"]


@pytest.mark.parametrize(
    "given",
    [
        lws(template(), template(topology="")),
        lws(template(topology=""), template()),
        lws(template(), template(), queue=""),
    ],
)
def test_a_group_with_an_irrelevant_half_or_no_queue_is_skipped_whole(given):
    assert mutate_leader_worker_set(given, RULES) == given


def test_a_stateful_set_is_pinned_to_hosts_of_its_topology_without_asking_for_a_queue():
    given = {"metadata": {"name": "s"}, "spec": {"template": template()}}
    selector = mutate_stateful_set(given, RULES)["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {ACCELERATOR: "tpu7x", "cloud.google.com/gke-tpu-topology": "2x2x2"}


def test_a_stateful_set_keeps_a_topology_that_it_already_selects():
    chosen = {ACCELERATOR: "tpu7x", "cloud.google.com/gke-tpu-topology": "other"}
    given = {"metadata": {"name": "s"}, "spec": {"template": template(nodeSelector=chosen)}}
    assert mutate_stateful_set(given, RULES) == given


def review(obj, operation="CREATE", path="/mutate-batch-v1-job"):
    request = {"uid": "u", "operation": operation, "object": obj}
    return server.review(path, {"request": request}, RULES)["response"]


def apply(document, operations):
    document = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        at = document
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if last == "-":
            at.append(operation["value"])
        else:
            at[int(last) if isinstance(at, list) else last] = operation["value"]
    return document


def test_the_patch_of_the_answer_turns_the_object_into_the_mutated_one():
    given = job(2, affinity={"nodeAffinity": None})
    answer = review(given)
    operations = json.loads(base64.b64decode(answer["patch"]))
    assert answer["allowed"]
    assert apply(given, operations) == mutate_job(given, RULES)


def test_a_refusal_is_forbidden_and_carries_the_text():
    answer = review(job(3))
    assert not answer["allowed"]
    assert answer["status"]["code"] == 403
    assert answer["status"]["message"].startswith('invalid job "j"')


def test_updates_and_strangers_get_consent_without_a_patch():
    assert review(job(3), operation="UPDATE") == {"uid": "u", "allowed": True}
    assert review(job(3, queue=None)) == {"uid": "u", "allowed": True}


def test_a_patch_that_would_remove_something_is_a_fault():
    with pytest.raises(ValueError, match="would be removed"):
        json_patch.difference({"a": 1}, {})


def test_the_shapes_that_this_controller_accepts_have_the_partitions_that_the_facts_compute():
    from facts.tpu import Topology

    for text in ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8"):
        ours, fact = shapes.parse(text), Topology.parse(text)
        assert ours.partition_count == fact.partition_count
        assert ours.chips_per_partition * ours.partition_count == fact.chip_count
        assert ours.partition_id_label == f"cloud.google.com/gke-tpu-partition-{fact.partition_level}-id"
        assert ours.pods_per_partition(fact.host_count) * ours.partition_count == fact.host_count
