"""The committed workloads against the seed's table (its step scripts 06 and 07, change of 2026-06-15), and the names
of the queue objects that verify reads against those that the program makes.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components import controller_charts, queue_objects
from ops.checks import platform
from ops.checks.manifest_rules import problems_of
from ops.checks.plan import MANIFESTS
from ops.checks.slice_jobset import SliceJobSet

SEED = {
    "kueue-jobset-simple-subslicing": ("low-priority-1000", 6, 2, "2x2x2"),
    "kueue-jobset-simple-superslicing": ("medium-priority-2000", 1, 32, "4x4x8"),
}


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())
    return found


@pytest.mark.parametrize("name", SEED)
def test_the_workload_is_the_seeds_field_by_field(name: str) -> None:
    priority, replicas, parallelism, topology = SEED[name]
    found = manifest(name)
    (replicated_job,) = found["spec"]["replicatedJobs"]
    job = replicated_job["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod.pop("containers")
    command = container.pop("command")
    assert found["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert found["metadata"]["name"] == name
    assert found["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "lq",
        "kueue.x-k8s.io/priority-class": priority,
    }
    assert (replicated_job["name"], replicated_job["replicas"]) == ("job-jax", replicas)
    assert (job["parallelism"], job["completions"], job["backoffLimit"]) == (parallelism, parallelism, 10)
    assert job["template"]["metadata"] == {
        "annotations": {"cloud.google.com/gke-tpu-slice-topology": topology}
    }
    assert pod == {
        "restartPolicy": "Never",
        "nodeSelector": {"cloud.google.com/gke-tpu-accelerator": "tpu7x"},
        "tolerations": [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    chips = {"google.com/tpu": 4}
    resources = {"requests": chips, "limits": chips}
    assert container == {"name": "simple-container", "image": "python:3.12", "resources": resources}
    assert command[:2] == ["bash", "-c"]


@pytest.mark.parametrize("name", SEED)
def test_the_command_installs_one_exact_jax_prints_its_counts_and_then_holds_the_slice(name: str) -> None:
    command = manifest(name)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ][0]["command"]
    first, *_, last = command[2].strip().splitlines()
    assert first == "set -ex"
    assert last == "sleep infinity"
    assert '"jax[tpu]==' in command[2]


@pytest.mark.parametrize("name", SEED)
def test_our_own_workloads_pass_our_own_check(name: str) -> None:
    assert problems_of(manifest(name)) == []


def test_namespace_queue_and_run_are_put_in_and_nothing_else() -> None:
    name = "kueue-jobset-simple-subslicing"
    changed = SliceJobSet.from_file(
        MANIFESTS / f"{name}.yaml", namespace="team", local_queue="q", run="r"
    ).manifest
    wanted = manifest(name)
    wanted["metadata"]["namespace"] = "team"
    wanted["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q"
    wanted["metadata"]["annotations"] = {"tpu-slices/verify-run": "r"}
    assert changed == wanted


def test_verify_reads_the_queue_objects_that_the_program_makes() -> None:
    made = queue_objects.topology()
    assert made["metadata"]["name"] == platform.TOPOLOGY
    assert tuple(level["nodeLabel"] for level in made["spec"]["levels"]) == platform.TOPOLOGY_LEVELS
    assert queue_objects.resource_flavor()["metadata"]["name"] == platform.RESOURCE_FLAVOR
    assert queue_objects.admission_check()["metadata"]["name"] == platform.ADMISSION_CHECK


@pytest.mark.parametrize(
    ("chart", "controller", "deployment"),
    [
        # As the templates of each chart name it (JobSet 0.12.0, Kueue 0.18.2, LWS 0.8.0).
        (controller_charts.jobset(), platform.JOBSET, "{release}-controller"),
        (controller_charts.kueue(["work"]), platform.KUEUE, "{release}-controller-manager"),
        (controller_charts.leader_worker_set(), platform.LWS, "{release}-controller-manager"),
    ],
    ids=["JobSet", "Kueue", "LWS"],
)
def test_verify_looks_for_the_controllers_where_the_charts_put_them(
    chart: controller_charts.ControllerChart, controller: platform.Controller, deployment: str
) -> None:
    assert (chart.namespace, deployment.format(release=chart.release)) == (
        controller.namespace,
        controller.deployment,
    )


def test_verify_looks_for_the_slice_controller_that_our_manifest_deploys(repository: Path) -> None:
    deployment = yaml.safe_load((repository / "manifests/slice-controller/deployment.yaml").read_text())[
        "metadata"
    ]
    controller = platform.SLICE_CONTROLLER
    assert (deployment["namespace"], deployment["name"]) == (controller.namespace, controller.deployment)
