"""Stack `local` on the region, as `make up` leaves it: real controllers, hosts as facts say, nothing to change."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from urllib3.exceptions import HTTPError

from facts import labels, tpu
from simulator.files import read_json
from tests.region.conftest import Checkout, until

CONTROLLERS = {
    "jobset-system": "jobset-controller",
    "kueue-system": "kueue-controller-manager",
    "lws-system": "lws-controller-manager",
    "slice-controller-system": "slice-controller-controller-manager",
}


@pytest.fixture(scope="module")
def core(running: Checkout) -> client.CoreV1Api:
    return client.CoreV1Api(running.api())


def is_true(conditions: Any, kind: str) -> bool:
    return any(each.type == kind and each.status == "True" for each in conditions or [])


def tpu_hosts(core: client.CoreV1Api) -> list[Any]:
    return core.list_node(label_selector=f"{labels.TPU_ACCELERATOR}={tpu.TPU7X}").items


def test_every_host_of_both_cubes_is_ready(core: client.CoreV1Api) -> None:
    hosts = tpu_hosts(core)
    assert len(hosts) == 2 * tpu.HOSTS_PER_CUBE
    assert all(is_true(host.status.conditions, "Ready") for host in hosts)


def test_hosts_carry_the_taint_the_chips_and_no_slice(core: client.CoreV1Api) -> None:
    for host in tpu_hosts(core):
        taints = {(taint.key, taint.value, taint.effect) for taint in host.spec.taints}
        assert ("google.com/tpu", "present", "NoSchedule") in taints
        assert host.status.allocatable["google.com/tpu"] == str(tpu.CHIPS_PER_HOST)
        assert labels.TPU_SLICE not in host.metadata.labels
        assert labels.TPU_TOPOLOGY not in host.metadata.labels


def test_partitions_of_each_shape_hold_as_many_hosts_as_the_shape_has(core: client.CoreV1Api) -> None:
    hosts = tpu_hosts(core)
    for shape in tpu.PARTITION_LEVELS:
        members: dict[str, int] = {}
        for host in hosts:
            partition = host.metadata.labels[labels.partition_id(shape)]
            members[partition] = members.get(partition, 0) + 1
            assert host.metadata.labels[labels.partition_state(shape)] == "HEALTHY"
        assert set(members.values()) == {tpu.Topology.parse(shape).host_count}, shape


def test_every_api_service_is_available(running: Checkout) -> None:
    services = client.ApiregistrationV1Api(running.api()).list_api_service().items
    remote = [each.metadata.name for each in services if each.spec.service is not None]
    assert any("visibility.kueue" in name for name in remote), "the control: one is served by a controller"
    assert [each.metadata.name for each in services if not is_true(each.status.conditions, "Available")] == []


@pytest.mark.parametrize("namespace", CONTROLLERS)
def test_each_controller_runs_under_its_own_service_account(running: Checkout, namespace: str) -> None:
    api = running.api()
    pods = client.CoreV1Api(api).list_namespaced_pod(namespace).items
    assert len(pods) == 1
    cluster = running.region / "clusters" / "tpu-serving-cluster"
    token = next(
        (cluster / "pods" / pods[0].metadata.uid / "volumes").glob("kube-api-access-*/token")
    ).read_text()
    review = client.AuthenticationV1Api(api).create_token_review(
        client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
    )
    account = pods[0].spec.service_account_name
    assert review.status.user.username == f"system:serviceaccount:{namespace}:{account}"
    assert account != "default"


def test_a_log_of_a_controller_is_read_as_usual(running: Checkout) -> None:
    said = subprocess.run(
        ["kubectl", "logs", "-n", "kueue-system", "deploy/kueue-controller-manager", "--tail=5"],
        env=running.shell(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len(said.splitlines()) == 5


def test_the_queue_is_active(running: Checkout) -> None:
    custom = client.CustomObjectsApi(running.api())
    queue = custom.get_cluster_custom_object("kueue.x-k8s.io", "v1beta2", "clusterqueues", "cq")
    assert {c["type"]: c["status"] for c in queue["status"]["conditions"]}["Active"] == "True"


def test_a_second_preview_and_one_after_a_refresh_change_nothing(running: Checkout) -> None:
    running.pulumi("preview", "--stack", "local", "--expect-no-changes")
    running.pulumi("refresh", "--stack", "local", "--yes", "--skip-preview")
    running.pulumi("preview", "--stack", "local", "--expect-no-changes")


def test_the_kubeconfig_output_is_a_secret_and_holds_no_credential(running: Checkout) -> None:
    assert "[secret]" in running.pulumi("stack", "output", "--stack", "local")
    shown = running.pulumi("stack", "output", "kubeconfig", "--show-secrets", "--stack", "local")
    assert "gke-gcloud-auth-plugin" in shown
    for word in ("token", "client-key", "PRIVATE KEY"):
        assert word not in shown


@pytest.mark.parametrize("program", ["etcd", "kube-apiserver", "kube-scheduler", "kwok"])
def test_a_part_that_is_killed_comes_back_and_is_said(
    running: Checkout, core: client.CoreV1Api, program: str
) -> None:
    killed = pid_of(running, program)
    os.kill(killed, signal.SIGKILL)
    until(lambda: pid_of(running, program) not in (None, killed), f"{program} runs again")
    until(lambda: len(ready_or_none(core)) == 2 * tpu.HOSTS_PER_CUBE, "the hosts are Ready")
    log = (running.region / "logs" / "cluster.log").read_text()
    assert f"{program} died (signal SIGKILL)" in log


def ready_or_none(core: client.CoreV1Api) -> list[Any]:
    try:
        return [host for host in tpu_hosts(core) if is_true(host.status.conditions, "Ready")]
    except (client.ApiException, HTTPError):
        return []


def pid_of(running: Checkout, program: str) -> int | None:
    """The pid of a program of this checkout's region."""
    wanted = str(running.region / "bin" / program)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                argv = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if argv[0].decode() == wanted:
                return int(folder.name)
    return None


def test_making_it_up_again_changes_nothing(running: Checkout) -> None:
    said = running.simulator("up", "local")
    assert "region: already running" in said
    count = read_json(running.region / "region.json")
    assert count["isReady"]
    assert "unchanged" in said
    assert " created" not in said.split("Resources:")[1]
