"""The add-on against a real API server: what is installed, refused, written, and what survives restarts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from facts import labels, tpu
from simulator.addon import Addon, knobs
from simulator.addon.knobs import HostKnobs, Knobs, PartitionKnobs, SliceKnobs
from simulator.child_process import die_with_parent
from simulator.kube_api import Api, ApiException
from simulator.region_folder import CHECKOUT
from tests.region.bare_control_plane import BareControlPlane, programs_folder

SLICES = "/apis/accelerator.gke.io/v1beta1/slices"
NODES = "/api/v1/nodes"
CUBES = ("c0-4x4x4-0", "c1-4x4x4-0")


def until(find: Callable[[], Any], deadline_seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + deadline_seconds
    while not (found := find()):
        assert time.monotonic() < deadline, "not true in time"
        time.sleep(0.03)
    return found


def node_labels_of(cube: int, number: int) -> dict[str, str]:
    found = {
        labels.TPU_ACCELERATOR: "tpu7x",
        labels.TOPOLOGY_MODE: "PROVISION_ONLY",
        labels.NODE_POOL: f"tpu7-pool-{cube + 1}",
        labels.TOPOLOGY_BLOCK: "block-0",
        labels.HOSTNAME: f"host-{cube}-{number:02d}",
    }
    for level in tpu.PARTITION_LEVELS:
        index = number // tpu.Topology.parse(level).host_count
        found[labels.partition_id(level)] = f"c{cube}-{level}-{index}"
    return found


def create_node(api: Api, name: str, node_labels: dict[str, str]) -> None:
    api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": node_labels}})
    set_ready(api, name, "True")


def set_ready(api: Api, name: str, status: str) -> None:
    condition = {"type": "Ready", "status": status, "reason": "Test", "message": ""}
    api.merge_patch(f"{NODES}/{name}/status", {"status": {"conditions": [condition]}})


class Region:
    """The add-on in a cluster of two cubes, and short words for what tests do to it."""

    def __init__(self, plane: BareControlPlane, folder: Path) -> None:
        self.plane, self.folder, self.api = plane, folder, plane.api()
        self.addon = self._new()

    def _new(self) -> Addon:
        addon = Addon(self.plane.kubeconfig, self.folder, time_scale=float("inf"))
        addon.start()
        assert addon.wait_ready(30)
        return addon

    def restart_addon(self) -> None:
        self.addon.stop()
        self.addon = self._new()

    def knobs(self, **options: Any) -> None:
        knobs.write(self.folder, Knobs(**options))

    def create(self, name: str, topology: str, *partition_ids: str, **annotations: str) -> None:
        self.api.create(
            SLICES,
            {
                "apiVersion": "accelerator.gke.io/v1beta1",
                "kind": "Slice",
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"type": "tpu7x", "topology": topology, "partitionIds": list(partition_ids)},
            },
        )

    def delete(self, name: str) -> None:
        self.api.delete(f"{SLICES}/{name}")

    def slices(self) -> dict[str, dict]:
        return {obj["metadata"]["name"]: obj for obj in self.api.get(SLICES)["items"]}

    def reason(self, name: str) -> str | None:
        conditions = self.slices()[name].get("status", {}).get("conditions") or [{"reason": None}]
        return conditions[0]["reason"]

    def wait(self, name: str, reason: str) -> None:
        until(lambda: self.reason(name) == reason)

    def nodes(self) -> dict[str, dict[str, str]]:
        items = self.api.get(NODES)["items"]
        return {item["metadata"]["name"]: item["metadata"]["labels"] for item in items}

    def labelled(self, name: str) -> set[str]:
        return {node for node, found in self.nodes().items() if found.get(labels.TPU_SLICE) == name}

    def clean(self) -> None:
        self.knobs()
        for name in self.slices():
            self.delete(name)
        until(lambda: not self.slices())
        for name in self.nodes():
            set_ready(self.api, name, "True")
        until(lambda: set(self.states("2x2x1")) == {"HEALTHY"})
        assert not any(labels.TPU_SLICE in found for found in self.nodes().values())

    def states(self, level: str) -> list[str | None]:
        return [found.get(labels.partition_state(level)) for found in self.nodes().values()]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareControlPlane]:
    programs = programs_folder()
    if programs is None:
        pytest.skip("no built control plane: run `make up` once, or set TPU_SLICES_PROGRAMS")
    control_plane = BareControlPlane(tmp_path_factory.mktemp("plane"), programs)
    control_plane.start()
    yield control_plane
    control_plane.stop()


@pytest.fixture(scope="module")
def running(plane: BareControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    region = Region(plane, tmp_path_factory.mktemp("cluster"))
    for cube in range(2):
        for number in range(16):
            create_node(region.api, f"host-{cube}-{number:02d}", node_labels_of(cube, number))
    yield region
    region.addon.stop()


@pytest.fixture
def region(running: Region) -> Iterator[Region]:
    running.clean()
    yield running
    running.clean()


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(ApiException) as error:
        call()
    return json.loads(error.value.body)["message"]


def test_a_slice_becomes_active_and_goes_with_its_labels(region: Region):
    region.create("s", "4x4x8", *CUBES)
    region.wait("s", "ACTIVE")
    until(lambda: len(region.labelled("s")) == 32)
    assert region.slices()["s"]["metadata"]["finalizers"] == [labels.SLICE_FINALIZER]
    region.delete("s")
    until(lambda: not region.slices())
    assert region.labelled("s") == set()


def test_a_watcher_sees_every_state_in_its_order(region: Region):
    version = region.api.get(SLICES)["metadata"]["resourceVersion"]
    region.create("s", "2x2x2", "c0-2x2x2-0")
    region.wait("s", "ACTIVE")
    region.delete("s")
    until(lambda: not region.slices())
    stream = region.api.open(SLICES, {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"})
    events = [json.loads(line) for line in stream.data.splitlines()]
    seen = [
        (event["object"].get("status") or {}).get("conditions", [{}])[0].get("reason") for event in events
    ]
    assert list(dict.fromkeys(seen)) == [
        None,
        "SliceNotCreated",
        "ACTIVATING",
        "ACTIVE",
        "DEACTIVATING",
        "INCOMPLETE",
    ]


def test_the_webhook_refuses_what_can_never_form_and_any_change_of_the_spec(region: Region):
    message = refusal(lambda: region.create("a" * 50, "2x2x2", "p"))
    assert 'admission webhook "slice-validating.accelerator.gke.io" denied the request' in message
    assert "49 characters or fewer" in message
    assert "non-decreasing" in refusal(lambda: region.create("s", "4x8x4", *CUBES))
    region.create("s", "2x2x2", "c0-2x2x2-0")
    change = {"spec": {"partitionIds": ["c0-2x2x2-1"]}}
    assert "spec is immutable" in refusal(lambda: region.api.merge_patch(f"{SLICES}/s", change))
    region.api.merge_patch(f"{SLICES}/s", {"metadata": {"annotations": {"a": "b"}}})


def test_the_deprecated_version_is_served_and_checked_too(region: Region):
    spec = {"type": "v6e", "topology": "2x2x2", "partitionIds": ["p"]}
    old = {
        "apiVersion": "accelerator.gke.io/v1alpha1",
        "kind": "Slice",
        "metadata": {"name": "s"},
        "spec": spec,
    }
    path = SLICES.replace("v1beta1", "v1alpha1")
    assert "spec.type must be 'tpu7x'" in refusal(lambda: region.api.create(path, old))


def test_the_schema_itself_refuses_an_empty_list_of_partitions(region: Region):
    assert "spec.partitionIds" in refusal(lambda: region.create("s", "2x2x2"))


def test_warden_refuses_tpu_pods_without_selectors_and_never_sees_other_pods(region: Region):
    path = "/api/v1/namespaces/default/pods"
    region.api.apply(
        "/api/v1/namespaces/default",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        field_manager="test",
    )
    until(lambda: exists(region.api, "/api/v1/namespaces/default"))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    region.api.apply("/api/v1/namespaces/default/serviceaccounts/default", account, field_manager="test")

    def pod(name: str, tpus: bool, **spec: Any) -> dict:
        resources = {"limits": {labels.TPU_RESOURCE: "4"}} if tpus else {}
        containers = [{"name": "c", "image": "x", "resources": resources}]
        metadata = {"name": name}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": containers, **spec},
        }

    message = refusal(lambda: region.api.create(path, pod("bare", True)))
    assert (
        'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the request'
        in message
    )
    assert "[denied by tpu-accelerator-topology-constraints]" in message
    for label in (labels.TPU_ACCELERATOR, labels.TPU_TOPOLOGY):
        assert f"Missing nodeSelector/nodeAffinity label {label}" in message
    selector = {labels.TPU_ACCELERATOR: "tpu7x", labels.TPU_TOPOLOGY: "2x2x2"}
    region.api.create(path, pod("selects", True, nodeSelector=selector))
    skipping = pod("skips", True)
    skipping["metadata"]["annotations"] = {labels.SKIP_TPU_WEBHOOK_CHECK: "true"}
    region.api.create(path, skipping)
    region.addon._webhooks._server.shutdown()
    try:
        region.api.create(path, pod("plain", False))
    finally:
        region.restart_addon()
        for name in ("selects", "skips", "plain"):
            region.api.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})


def exists(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiException as error:
        if error.status != 404:
            raise
        return False
    return True


def test_knobs_are_read_again_while_it_runs(region: Region):
    region.knobs(slices=(SliceKnobs(match="stuck-*", outcome="stalled"),))
    time.sleep(0.3)
    region.create("stuck-1", "2x2x2", "c0-2x2x2-0")
    region.create("free", "2x2x2", "c0-2x2x2-1")
    region.wait("free", "ACTIVE")
    assert region.reason("stuck-1") == "ACTIVATING"
    region.knobs(slices=(SliceKnobs(match="free", outcome="degraded"),))
    region.wait("stuck-1", "ACTIVE")
    region.wait("free", "ACTIVE_DEGRADED")
    region.knobs(slices=(SliceKnobs(match="free", outcome="failed"),))
    region.wait("free", "FAILED")
    until(lambda: not region.labelled("free"))


def test_a_wrong_knob_file_is_told_in_the_status_file(region: Region):
    status = region.folder / "addon" / "status.json"
    (region.folder / knobs.FILE_NAME).write_text("slices: [{outcom: failed}]")
    until(lambda: "outcom" in (json.loads(status.read_text())["knobsError"] or ""))
    region.knobs()
    until(lambda: json.loads(status.read_text())["knobsError"] is None)


def test_a_hanging_deletion_is_ended_by_taking_the_finalizer_away(region: Region):
    region.knobs(slices=(SliceKnobs(deletion_hangs=True),))
    region.create("s", "2x2x2", "c0-2x2x2-0")
    until(lambda: len(region.labelled("s")) == 2)
    region.delete("s")
    region.wait("s", "DEACTIVATING")
    until(lambda: not region.labelled("s"))
    region.api.json_patch(f"{SLICES}/s", [{"op": "remove", "path": "/metadata/finalizers"}])
    until(lambda: not region.slices())


def test_partition_states_follow_nodes_and_knobs(region: Region):
    until(lambda: set(region.states("4x4x4")) == {"HEALTHY"})
    set_ready(region.api, "host-0-03", "Unknown")
    until(lambda: region.states("4x4x4").count("UNHEALTHY") == 16)
    assert until(lambda: region.states("2x2x2").count("UNHEALTHY")) == 2
    set_ready(region.api, "host-0-03", "True")
    region.knobs(
        partitions=(PartitionKnobs(id=CUBES[1], state="DEGRADED"),),
        hosts=(HostKnobs(match="host-0-07", faulty=True),),
    )
    until(
        lambda: (
            (region.states("4x4x4").count("UNHEALTHY"), region.states("4x4x4").count("DEGRADED")) == (16, 16)
        )
    )
    assert until(lambda: region.states("2x2x1").count("UNHEALTHY")) == 1


def test_ids_arrive_late_and_the_pool_is_complete_only_then(region: Region):
    names = [f"late-{number:02d}" for number in range(16)]
    full = {name: node_labels_of(7, number) for number, name in enumerate(names)}
    hosts = [{"name": name, "labels": full[name]} for name in names]
    (region.folder / "pools").mkdir(exist_ok=True)
    pool = region.folder / "pools" / "late.json"
    pool.write_text(json.dumps({"name": "late", "labelDelaySeconds": 3, "hosts": hosts}))
    try:
        for name in names:
            bare = {key: value for key, value in full[name].items() if "partition" not in key}
            create_node(region.api, name, bare)
        id_key, state_key = labels.partition_id("4x4x4"), labels.partition_state("4x4x4")
        until(lambda: all(region.nodes()[name].get(state_key) == "UNSET" for name in names))
        region.create("s", "4x4x4", "c7-4x4x4-0", **{labels.SLICE_RETRY_ON_FAILURE: "true"})
        region.wait("s", "SliceCreationFailed")
        assert not any(id_key in region.nodes()[name] for name in names)
        until(lambda: all(region.nodes()[name].get(id_key) == "c7-4x4x4-0" for name in names))
        until(lambda: all(region.nodes()[name].get(state_key) == "HEALTHY" for name in names))
        region.wait("s", "ACTIVE")
        region.delete("s")
        until(lambda: not region.slices())
    finally:
        pool.unlink()
        for name in names:
            region.api.delete(f"{NODES}/{name}")


def test_fifty_slices_at_once_form_quickly_and_never_share_a_host(region: Region):
    for number in range(18):
        create_node(region.api, f"more-{number:02d}", {**node_labels_of(9, number), "extra": "yes"})
    try:
        names = {f"host-{cube}-{number:02d}" for cube in range(2) for number in range(16)}
        assert names <= set(region.nodes())
        wanted = [f"c{cube}-2x2x1-{number}" for cube in range(2) for number in range(16)]
        wanted += [f"c9-2x2x1-{number}" for number in range(18)]
        started = time.monotonic()
        for number, partition_id in enumerate(wanted):
            region.create(f"s{number}", "2x2x1", partition_id)
        until(lambda: all(region.reason(f"s{number}") == "ACTIVE" for number in (0, 25, 49)))
        until(
            lambda: (
                [obj["status"]["conditions"][0]["reason"] for obj in region.slices().values()]
                == ["ACTIVE"] * 50
            )
        )
        until(lambda: sum(labels.TPU_SLICE in found for found in region.nodes().values()) == 50)
        assert time.monotonic() - started < 15
        assert all(len(region.labelled(f"s{number}")) == 1 for number in range(0, 50, 7))
        for name in region.slices():
            region.delete(name)
        until(lambda: not region.slices())
    finally:
        for number in range(18):
            region.api.delete(f"{NODES}/more-{number:02d}")


def test_nothing_is_lost_when_the_api_server_is_killed(region: Region):
    region.create("before", "2x2x2", "c0-2x2x2-0")
    region.wait("before", "ACTIVE")
    region.knobs(slices=(SliceKnobs(match="during", formation_seconds=1),))
    time.sleep(0.3)
    region.create("during", "2x2x2", "c0-2x2x2-1")
    region.wait("during", "ACTIVATING")
    region.plane.kill_api_server()
    time.sleep(1.5)
    region.plane.start_api_server()
    region.wait("during", "ACTIVE")
    region.create("after", "2x2x2", "c0-2x2x2-2")
    region.wait("after", "ACTIVE")
    region.delete("before")
    until(lambda: "before" not in region.slices())
    until(lambda: {len(region.labelled(name)) for name in ("during", "after")} == {2})


def test_a_restarted_addon_goes_on_where_the_objects_stand(region: Region):
    region.create("stays", "2x2x2", "c0-2x2x2-0")
    region.create("goes", "2x2x2", "c0-2x2x2-1")
    region.wait("stays", "ACTIVE")
    region.wait("goes", "ACTIVE")
    region.addon.stop()
    url = json.loads((region.folder / "addon" / "status.json").read_text())["webhooks"]
    region.delete("goes")
    region.api.merge_patch(f"{NODES}/host-0-00", {"metadata": {"labels": {labels.TPU_SLICE: None}}})
    region.addon = region._new()
    assert json.loads((region.folder / "addon" / "status.json").read_text())["webhooks"] == url
    until(lambda: set(region.slices()) == {"stays"})
    until(lambda: region.labelled("stays") == {"host-0-00", "host-0-01"})
    assert region.labelled("goes") == set()


def test_the_slice_controller_can_be_switched_off_and_on_again(region: Region):
    cluster = region.folder / "cluster.json"
    try:
        cluster.write_text('{"sliceController": false}')
        until(lambda: not region.addon._slices.is_on)
        region.create("s", "2x2x2", "c0-2x2x2-0")
        time.sleep(0.5)
        assert region.reason("s") is None
        cluster.write_text('{"sliceController": true}')
        region.wait("s", "ACTIVE")
    finally:
        cluster.unlink()


def test_what_someone_deleted_is_installed_again(region: Region):
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    region.api.delete(f"{path}/slice-validating.accelerator.gke.io")
    until(lambda: exists(region.api, f"{path}/slice-validating.accelerator.gke.io"))


def test_a_cluster_without_the_slice_controller_has_warden_and_late_ids_but_no_slices(
    tmp_path_factory: pytest.TempPathFactory,
):
    folder = tmp_path_factory.mktemp("static")
    plane = BareControlPlane(folder, programs_folder() or pytest.skip("no built control plane"))
    (folder / "cluster.json").write_text('{"sliceController": false}')
    plane.start()
    addon = Addon(plane.kubeconfig, folder, time_scale=float("inf"))
    addon.start()
    try:
        assert addon.wait_ready(30)
        webhooks = plane.api().get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
        names = [obj["metadata"]["name"] for obj in webhooks["items"]]
        assert names == ["warden-validating.common-webhooks.networking.gke.io"]
        assert not exists(plane.api(), "/apis/accelerator.gke.io/v1beta1")
    finally:
        addon.stop()
        plane.stop()


def test_as_a_process_of_its_own_it_serves_and_ends_on_sigterm(
    plane: BareControlPlane, running: Region, tmp_path: Path
):
    running.addon.stop()
    (tmp_path / "cluster.json").write_text('{"sliceController": true}')
    log = tmp_path / "log"
    arguments = [
        "--kubeconfig",
        str(plane.kubeconfig),
        "--cluster-folder",
        str(tmp_path),
        "--time-scale",
        "inf",
    ]
    try:
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "simulator.addon", *arguments],
                cwd=CHECKOUT,
                stderr=stream,
                preexec_fn=die_with_parent,  # noqa: PLW1509 (one system call, no lock)
            )
        status = tmp_path / "addon" / "status.json"
        until(lambda: status.exists() and json.loads(status.read_text())["ready"])
        running.create("s", "2x2x2", "c0-2x2x2-0")
        running.wait("s", "ACTIVE")
        running.delete("s")
        until(lambda: not running.slices())
        process.terminate()
        assert process.wait(10) == 0, log.read_text()
        assert json.loads(status.read_text())["ready"] is False
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        running.addon = running._new()
