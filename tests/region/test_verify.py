"""`python -m ops verify local` on the region: what it proves, what makes it fail, and what it leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from facts import labels
from simulator.addon import knobs
from simulator.addon.knobs import HostKnobs, Knobs, SliceKnobs
from tests.region.conftest import Checkout, until

NAMESPACE = "llm-d-pd-disaggregation"
SUB, SUPER = "kueue-jobset-simple-subslicing", "kueue-jobset-simple-superslicing"
SELECTOR = f"jobset.sigs.k8s.io/jobset-name={SUB}"


class Region:
    """The running stack and a person's shell on it."""

    def __init__(self, checkout: Checkout, shell: dict[str, str]) -> None:
        self.checkout = checkout
        self.shell = shell
        self._processes: list[subprocess.Popen[str]] = []

    def start_verify(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ops", "verify", "local", "--json", *options]
        process = subprocess.Popen(
            command,
            cwd=self.checkout.root,
            env=self.shell,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._processes.append(process)
        return process

    def verify(self, *options: str) -> dict[str, Any]:
        return self.end(self.start_verify(*options))

    def end(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        output, progress = process.communicate(timeout=400)
        assert output, progress
        told: dict[str, Any] = json.loads(output)
        assert told["exitCode"] == process.returncode, progress
        return told

    def kubectl(self, *arguments: str) -> str:
        command = ["kubectl", *arguments]
        return subprocess.run(
            command, env=self.shell, text=True, capture_output=True, check=True, timeout=60
        ).stdout

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]
        return found

    def stop(self) -> None:
        """Ends what a failed test left running."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
                process.communicate(timeout=100)

    def knobs(self, **options: Any) -> None:
        (folder,) = (self.checkout.region / "clusters").iterdir()
        knobs.write(folder, Knobs(**options))

    def remains(self) -> list[str]:
        """What a verify must not leave."""
        kinds = "jobsets.jobset.x-k8s.io,workloads.kueue.x-k8s.io,jobs.batch,pods"
        things = self.objects(kinds, "-n", NAMESPACE) + self.objects("slices.accelerator.gke.io")
        nodes = self.objects("nodes", "-l", labels.TPU_SLICE)
        return [f"{thing['kind']} {thing['metadata']['name']}" for thing in things + nodes]


@pytest.fixture(scope="module")
def shell(running: Checkout) -> dict[str, str]:
    return running.shell()


@pytest.fixture
def region(running: Checkout, shell: dict[str, str]) -> Iterator[Region]:
    found = Region(running, shell)
    yield found
    found.knobs()
    found.stop()


def statuses(told: dict[str, Any]) -> dict[str, str]:
    return {check["check"]: check["status"] for check in told["checks"]}


def reasons(told: dict[str, Any]) -> str:
    return "\n".join(reason for check in told["checks"] for reason in check["reasons"])


def test_the_stack_is_proven_while_the_seeds_own_commands_work_and_nothing_is_left(region: Region) -> None:
    process = region.start_verify()

    def running_pods() -> list[dict[str, Any]]:
        pods = region.objects("pods", "-n", NAMESPACE, "-l", SELECTOR)
        return pods if [pod["status"]["phase"] for pod in pods] == ["Running"] * 12 else []

    pods = until(running_pods, "the seed's selector finds 12 running pods", 120)
    log = region.kubectl("logs", "-n", NAMESPACE, pods[0]["metadata"]["name"])
    assert "Global device count: 16 Local device count: 8" in log
    told = region.end(process)
    assert told["passed"], reasons(told)
    seen = {check["check"]: check["seen"] for check in told["checks"]}
    assert seen[f"{SUB}: devices"] == "8 chips = 16 devices a slice, 4 chips = 8 devices a host"
    assert seen[f"{SUPER}: devices"] == "128 chips = 256 devices a slice, 4 chips = 8 devices a host"
    assert statuses(told)[f"{SUB}: placement again, after it gave way"] == "ok"
    assert region.remains() == []


def test_a_wrong_slice_label_makes_it_fail_and_the_hosts_are_named(region: Region) -> None:
    region.knobs(hosts=[HostKnobs(match="*-tpu7-pool-*", slice_label="somebody-elses")])
    told = region.verify("--step", "8", "--timeout", "60")
    assert told["exitCode"] == 1
    assert statuses(told)[f"{SUB}: placement"] == "miss"
    assert "yet its label cloud.google.com/gke-tpu-slice is somebody-elses" in reasons(told)


def test_a_pod_of_the_jobset_on_a_host_outside_of_its_slices_makes_it_fail(
    region: Region, tmp_path: Path
) -> None:
    """No controller here assigns wrongly, so the test does: a pod of the JobSet, bound to a host of no slice."""
    process = region.start_verify("--step", "8", "--timeout", "30", "--removal-timeout", "10")
    until(lambda: region.objects("pods", "-n", NAMESPACE, "-l", SELECTOR), "the JobSet has pods", 120)
    host = region.objects("nodes", "-l", f"{labels.TPU_ACCELERATOR}=tpu7x,!{labels.TPU_SLICE}")[0][
        "metadata"
    ]["name"]
    spec = {"nodeName": host, "containers": [{"name": "simple-container", "image": "python:3.12"}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stray", "namespace": NAMESPACE, "labels": {labels.JOBSET_NAME: SUB}},
        "spec": spec,
    }
    (tmp_path / "stray.json").write_text(json.dumps(pod))
    region.kubectl("create", "-f", str(tmp_path / "stray.json"))
    try:
        told = region.end(process)
    finally:
        region.kubectl("delete", "pod", "-n", NAMESPACE, "stray", "--ignore-not-found", "--wait=true")
    assert told["exitCode"] == 1
    assert f"pod stray was put on {host}, outside of its Slices" in reasons(told)
    assert f"Pod {NAMESPACE}/stray" in [item["what"] for item in told["left"]], (
        "verify removes only what it made"
    )
    until(lambda: not region.remains(), "the rest goes with the last pod", 120)


def test_a_slice_that_never_forms_is_a_miss_in_the_add_ons_and_kueues_words_and_is_removed(
    region: Region,
) -> None:
    region.knobs(slices=[SliceKnobs(outcome="stalled")])
    told = region.verify("--step", "8", "--timeout", "20")
    assert told["exitCode"] == 1
    assert statuses(told)[f"{SUB}: Slices ACTIVE"] == "miss"
    assert "is ACTIVATING" in reasons(told)
    assert "admission check ac is Pending: Slices are in states: 6 ACTIVATING" in reasons(told)
    assert region.remains() == []


def test_a_slice_that_does_not_go_is_said_to_be_left_with_the_way_to_remove_it(region: Region) -> None:
    region.knobs(slices=[SliceKnobs(deletion_hangs=True)])
    told = region.verify("--step", "8", "--timeout", "60", "--removal-timeout", "10")
    assert told["exitCode"] == 1
    left = {item["what"].split()[0] for item in told["left"]}
    assert "Slice" in left
    assert any("kubectl delete slices.accelerator.gke.io" in item["removal"] for item in told["left"])
    region.knobs()
    until(lambda: not region.remains(), "all of it goes once the add-on lets it", 60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_verify_removes_everything_before_it_ends(
    region: Region, number: signal.Signals
) -> None:
    process = region.start_verify()
    until(lambda: region.objects("slices.accelerator.gke.io"), "the first Slices are there", 120)
    process.send_signal(number)
    told = region.end(process)
    assert told["interrupted"]
    assert told["exitCode"] == 128 + number
    assert told["left"] == []
    assert region.remains() == []


def test_a_killed_verify_leaves_its_jobset_and_the_next_one_clears_it_away(region: Region) -> None:
    process = region.start_verify("--step", "8")
    until(lambda: region.objects("slices.accelerator.gke.io"), "the first Slices are there", 120)
    process.kill()
    process.communicate()
    told = region.verify("--step", "8")
    assert told["passed"], reasons(told)
    assert region.remains() == []


def test_somebody_elses_workload_is_not_preempted_and_is_named(region: Region, tmp_path: Path) -> None:
    manifest = json.loads(
        region.kubectl(
            "create",
            "--dry-run=client",
            "-o",
            "json",
            "-f",
            str(region.checkout.root / f"manifests/verify/{SUB}.yaml"),
        )
    )
    manifest["metadata"]["name"] = "training"
    (replicated_job,) = manifest["spec"]["replicatedJobs"]
    replicated_job["replicas"] = 1
    job = replicated_job["template"]["spec"]
    job["parallelism"] = job["completions"] = 16
    job["template"]["metadata"]["annotations"][labels.TPU_SLICE_TOPOLOGY] = "4x4x4"
    (tmp_path / "training.json").write_text(json.dumps(manifest))
    region.kubectl("create", "-f", str(tmp_path / "training.json"))
    try:
        until(lambda: region.objects("slices.accelerator.gke.io"), "the other workload has its slice", 120)
        told = region.verify()
        assert region.objects("slices.accelerator.gke.io"), "it still has it"
    finally:
        region.kubectl("delete", "jobset", "-n", NAMESPACE, "training", "--wait=true")
    assert told["exitCode"] == 3
    assert statuses(told)[f"{SUB}: devices"] == "ok"
    assert statuses(told)[f"{SUPER}: 4x4x8, 32 pods"] == "not_run"
    assert f"it would preempt Workload {NAMESPACE}/jobset-training-" in reasons(told)
    until(lambda: not region.remains(), "it goes when it is deleted", 60)
