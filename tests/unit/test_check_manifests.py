import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.__main__ import main
from ops.checks.manifest_rules import problems_of

SHAPE = "cloud.google.com/gke-tpu-slice-topology"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
QUEUE = "kueue.x-k8s.io/queue-name"


def template(shape: str = "2x2x2") -> dict[str, Any]:
    chips = {"google.com/tpu": 4}
    return {
        "metadata": {"annotations": {SHAPE: shape}},
        "spec": {
            "nodeSelector": {ACCELERATOR: "tpu7x"},
            "containers": [
                {"name": "c", "image": "example", "resources": {"limits": chips, "requests": chips}}
            ],
        },
    }


def jobset() -> dict[str, Any]:
    job = {"parallelism": 2, "completions": 2, "template": template()}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "work", "labels": {QUEUE: "lq"}},
        "spec": {"replicatedJobs": [{"name": "j", "replicas": 3, "template": {"spec": job}}]},
    }


def lws() -> dict[str, Any]:
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve", "labels": {QUEUE: "lq"}},
        "spec": {
            "leaderWorkerTemplate": {"size": 2, "leaderTemplate": template(), "workerTemplate": template()}
        },
    }


def job_of(thing: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = thing["spec"]["replicatedJobs"][0]["template"]["spec"]
    return found


def texts(thing: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in problems_of(thing) or []]


@pytest.mark.parametrize("thing", [jobset(), lws()], ids=["JobSet", "LeaderWorkerSet"])
def test_a_right_workload_has_no_problems(thing: dict[str, Any]) -> None:
    assert problems_of(thing) == []


def test_a_job_is_checked_as_a_jobset_is() -> None:
    job = {"kind": "Job", "metadata": {"name": "j", "labels": {QUEUE: "lq"}}, "spec": job_of(jobset())}
    assert problems_of(job) == []
    job["spec"]["parallelism"] = 3
    assert "`spec.parallelism` must be 2 (got 3)" in texts(job)[0]


def test_pods_that_do_not_fill_the_slice_are_a_problem_with_the_right_count() -> None:
    thing = jobset()
    job_of(thing)["parallelism"] = 1
    (text,) = texts(thing)
    assert text.startswith(
        "`spec.replicatedJobs[0].template.spec.parallelism` must be 2 (got 1): 2x2x2 is 8 chips"
    )


def test_a_parallelism_that_is_not_said_is_a_problem() -> None:
    thing = jobset()
    del job_of(thing)["parallelism"]
    assert "must be 2 (got nothing)" in texts(thing)[0]


def test_fewer_completions_than_parallelism_are_a_problem() -> None:
    thing = jobset()
    job_of(thing)["completions"] = 1
    assert "completions` must be 2, as parallelism is (got 1)" in texts(thing)[0]


@pytest.mark.parametrize("shape", ["2x2", "2x2x2x2", "2*2*2", "", 222, "4x4x"])
def test_a_shape_that_is_not_three_numbers_is_passed_over_in_silence_and_so_a_problem(shape: Any) -> None:
    thing = jobset()
    job_of(thing)["template"]["metadata"]["annotations"][SHAPE] = shape
    (text,) = texts(thing)
    assert "must be three numbers joined by x" in text
    assert "in silence" in text


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("2x2x8", "divisible by 4"),
        ("4x2x2", "Write 2x2x4"),
        ("8x4x4", "Write 4x4x8"),
        ("2x2x3", "divisible by 4"),
        ("64x64x64", "must not exceed"),
        ("0x4x4", "must be"),
    ],
)
def test_an_unknown_shape_is_a_problem(shape: str, said: str) -> None:
    thing = jobset()
    job_of(thing)["template"]["metadata"]["annotations"][SHAPE] = shape
    assert said in texts(thing)[0]


@pytest.mark.parametrize("make", [jobset, lws])
def test_a_missing_queue_name_is_a_problem(make: Any) -> None:
    thing = make()
    del thing["metadata"]["labels"]
    (text,) = texts(thing)
    assert "must name a LocalQueue" in text


def test_a_queue_name_on_the_pods_only_is_a_problem() -> None:
    thing = jobset()
    thing["metadata"]["labels"] = {}
    job_of(thing)["template"]["metadata"]["labels"] = {QUEUE: "lq"}
    assert "not to its pods" in texts(thing)[0]


@pytest.mark.parametrize("group", [1, 3, 4])
def test_a_wrong_lws_size_is_a_problem_that_nobody_else_names(group: int) -> None:
    thing = lws()
    thing["spec"]["leaderWorkerTemplate"]["size"] = group
    (text,) = texts(thing)
    assert text.startswith(f"`spec.leaderWorkerTemplate.size` must be 2 (got {group})")


def test_an_lws_without_a_size_has_one_pod_a_group_and_fits_2x2x1_only() -> None:
    thing = lws()
    both = thing["spec"]["leaderWorkerTemplate"]
    del both["size"], both["leaderTemplate"]
    assert "must be 2 (got 1)" in texts(thing)[0]
    both["workerTemplate"] = template("2x2x1")
    assert texts(thing) == []


def test_a_leader_that_lacks_the_shape_makes_the_whole_lws_be_passed_over() -> None:
    thing = lws()
    thing["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = {"spec": {"containers": [{"name": "router"}]}}
    assert "must be the same on leaderTemplate and workerTemplate" in texts(thing)[0]


def test_an_lws_name_too_long_for_kueue_is_a_problem() -> None:
    thing = lws()
    thing["metadata"]["name"] = "x" * 40
    assert "at most 39 characters" in texts(thing)[0]


def test_a_shape_on_the_object_instead_of_its_pods_is_a_problem() -> None:
    thing = jobset()
    thing["metadata"]["annotations"] = job_of(thing)["template"].pop("metadata")["annotations"]
    (text,) = texts(thing)
    assert "only the annotation of the pod template is read" in text


def test_a_partition_selector_without_the_shape_is_refused_by_the_webhook_and_so_a_problem() -> None:
    thing = jobset()
    pod = job_of(thing)["template"]
    pod.pop("metadata")
    pod["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-partition-2x2x2-state"] = "HEALTHY"
    (text,) = texts(thing)
    assert "alone is refused" in text


@pytest.mark.parametrize("accelerator", [None, "tpu-v6e-slice"])
def test_another_or_no_accelerator_is_a_problem(accelerator: str | None) -> None:
    thing = jobset()
    job_of(thing)["template"]["spec"]["nodeSelector"] = {ACCELERATOR: accelerator} if accelerator else {}
    (text,) = texts(thing)
    assert "must be tpu7x" in text


def test_an_accelerator_by_required_affinity_counts() -> None:
    thing = jobset()
    pod = job_of(thing)["template"]["spec"]
    del pod["nodeSelector"]
    terms = [{"matchExpressions": [{"key": ACCELERATOR, "operator": "In", "values": ["tpu7x"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["affinity"] = {"nodeAffinity": required}
    assert texts(thing) == []
    terms[0]["matchExpressions"][0]["values"].append("tpu-v6e-slice")
    assert "must be tpu7x" in texts(thing)[0]


@pytest.mark.parametrize("chips", [None, 1, 8, "2"])
def test_a_pod_that_does_not_ask_a_whole_host_is_a_problem(chips: Any) -> None:
    thing = jobset()
    container = job_of(thing)["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"google.com/tpu": chips}} if chips else {}
    assert "must add up to 4" in texts(thing)[0]


def test_chips_of_init_containers_do_not_count() -> None:
    thing = jobset()
    pod = job_of(thing)["template"]["spec"]
    pod["initContainers"] = pod.pop("containers")
    assert "must add up to 4 (got 0)" in texts(thing)[0]


@pytest.mark.parametrize("key", ["cloud.google.com/gke-tpu-topology", "cloud.google.com/gke-tpu-slice"])
def test_a_selector_that_the_controller_sets_itself_is_a_problem(key: str) -> None:
    thing = jobset()
    job_of(thing)["template"]["spec"]["nodeSelector"][key] = "2x2x2"
    assert "must be absent" in texts(thing)[0]


def test_kueues_own_annotations_by_hand_are_a_problem() -> None:
    thing = jobset()
    job_of(thing)["template"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-slice-size"] = "2"
    assert "Kueue refuses two" in texts(thing)[0]


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (jobset, "alpha.jobset.sigs.k8s.io/exclusive-topology"),
        (lws, "leaderworkerset.sigs.k8s.io/exclusive-topology"),
    ],
)
def test_exclusive_topology_beside_kueue_is_a_problem(make: Any, key: str) -> None:
    thing = make()
    thing["metadata"]["annotations"] = {key: "cloud.google.com/gke-tpu-slice"}
    assert "other groups' slices" in texts(thing)[0]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Pod"])
def test_a_kind_that_gets_no_slices_is_a_problem(kind: str) -> None:
    pod = template()
    thing = {"kind": kind, "metadata": {"name": "x"}, "spec": {"template": pod}}
    if kind == "Pod":
        thing = {"kind": kind, **pod}
    assert "must be JobSet, Job or LeaderWorkerSet" in texts(thing)[0]


@pytest.mark.parametrize(
    "thing",
    [
        {"kind": "ConfigMap", "metadata": {"name": "x"}},
        {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "web"}]}}}},
        {"kind": "JobSet", "spec": "nonsense"},
        {"kind": "JobSet", "spec": {"replicatedJobs": [None, {"template": []}]}, "metadata": []},
    ],
)
def test_what_wants_no_slice_is_not_judged(thing: dict[str, Any]) -> None:
    assert problems_of(thing) is None


def test_a_static_v6e_workload_is_not_judged() -> None:
    thing = lws()
    pod = template()
    pod["metadata"] = {}
    pod["spec"]["nodeSelector"] = {ACCELERATOR: "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
    thing["spec"]["leaderWorkerTemplate"] = {"size": 4, "workerTemplate": pod}
    assert problems_of(thing) is None


# --- the command -----------------------------------------------------------------------------------------------


def write(path: Path, *things: Any) -> str:
    path.write_text(yaml.safe_dump_all(things))
    return str(path)


def test_the_command_says_file_object_and_problem_and_exits_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = jobset()
    job_of(wrong)["parallelism"] = 5
    files = [
        write(tmp_path / "a.yaml", jobset(), None),
        write(tmp_path / "b.yaml", {"kind": "List", "items": [wrong]}),
    ]
    assert main(["check", *files]) == 1
    first, last = capsys.readouterr().out.strip().splitlines()
    assert first.startswith(
        f"{files[1]}: JobSet work/train: `spec.replicatedJobs[0].template.spec.parallelism`"
    )
    assert last == "2 objects, 2 want slices, 1 problems"


def test_the_command_reads_stdin_and_answers_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = copy.deepcopy(lws())
    wrong["spec"]["leaderWorkerTemplate"]["size"] = 7
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump(wrong)))
    assert main(["check", "-", "--json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)
    assert one["wantsSlices"]
    assert one["problems"][0]["path"] == "spec.leaderWorkerTemplate.size"
    assert one["problems"][0]["rule"] == "must be 2"


def test_right_files_exit_zero_and_unreadable_ones_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = write(tmp_path / "right.yaml", jobset())
    assert main(["check", right]) == 0
    (tmp_path / "broken.yaml").write_text("a: [")
    assert main(["check", right, str(tmp_path / "broken.yaml"), str(tmp_path / "absent.yaml")]) == 2
    errors = capsys.readouterr().err
    assert "broken.yaml: cannot be read" in errors
    assert "absent.yaml: cannot be read" in errors
