"""The slice controller's loop against an API server of a few lines: what it writes, in which order, and what not."""

import copy
import json
from datetime import UTC, datetime, timedelta

import pytest

from simulator.kube_api import Api, ApiException, Informer
from simulator.slice_controller import slices, workload_controller
from simulator.slice_controller.states import Policy
from simulator.slice_controller.timing import Timing
from simulator.slice_controller.workload_controller import CreationError, WorkloadController

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
WORKLOAD = "/apis/kueue.x-k8s.io/v1beta2/namespaces/ns/workloads/wl"
SLICES = "/apis/accelerator.gke.io/v1beta1/slices"
PODS = "/api/v1/namespaces/ns/pods"
OWNER = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/js"
FINALIZER = "accelerator.gke.io/slice"


def refusal(status, message=""):
    error = ApiException(status=status, reason="no")
    error.body = json.dumps({"message": message})
    return error


class FakeApi(Api):
    """Objects by path. Status is applied as the server does for one manager: what it no longer names goes."""

    def __init__(self):
        self.objects = {}
        self.calls = []
        self.refusals = {}
        self._version = 100

    def put(self, path, obj):
        self._version += 1
        obj["metadata"] |= {"resourceVersion": str(self._version)}
        self.objects[path] = obj
        return obj

    def _called(self, verb, path, body=None):
        self.calls.append((verb, path, copy.deepcopy(body)))
        if (verb, path) in self.refusals:
            raise self.refusals[verb, path]
        if verb not in {"create", "list"} and path not in self.objects:
            raise refusal(404)

    def get(self, path, **query):
        if path.endswith("/pods"):
            self._called("list", path, query)
            return {"items": self.objects.get(path, [])}
        self._called("get", path)
        return self.objects[path]

    def create(self, path, obj, **query):
        self._called("create", path, obj)
        made = copy.deepcopy(obj)
        made["metadata"].setdefault("creationTimestamp", NOW.strftime("%Y-%m-%dT%H:%M:%SZ"))
        made["metadata"].setdefault("uid", "u")
        return self.put(f"{path}/{obj['metadata']['name']}", made)

    def replace(self, path, obj, **query):
        self._called("replace", path, obj)
        return self.put(path, copy.deepcopy(obj))

    def apply(self, path, obj, *, field_manager):
        self._called("apply", path.removesuffix("/status"), obj)
        found = copy.deepcopy(self.objects[path.removesuffix("/status")])
        ours = {item["name"] for item in obj["status"]["admissionChecks"]}
        others = [item for item in found["status"]["admissionChecks"] if item["name"] not in ours]
        found["status"]["admissionChecks"] = [*others, *obj["status"]["admissionChecks"]]
        kept = [item for item in found["status"]["conditions"] if item["type"] != "TPUSliceFailure"]
        found["status"]["conditions"] = [*kept, *obj["status"].get("conditions", [])]
        return self.put(path.removesuffix("/status"), found)

    def delete(self, path, body=None, **query):
        self._called("delete", path)
        found = copy.deepcopy(self.objects[path])
        found["metadata"]["deletionTimestamp"] = "now"
        return self.put(path, found) | {"kind": "Slice"}

    def verbs(self, *interesting):
        return [(verb, path) for verb, path, _ in self.calls if verb in (interesting or WRITES)]

    def body(self, verb, path):
        return next(body for found, at, body in reversed(self.calls) if (found, at) == (verb, path))

    def events(self):
        bodies = [body for verb, path, body in self.calls if verb == "create" and path.endswith("/events")]
        return [(body["type"], body["reason"], body["message"]) for body in bodies]


WRITES = ("create", "replace", "apply", "delete")


def a_workload(replicas=1, check="Pending", finalizers=(FINALIZER,), hosts=2, **metadata):
    host_level = {"individual": {"prefix": "host-", "roots": [str(index) for index in range(hosts)]}}
    part = {"domainCount": hosts, "valuesPerLevel": [host_level], "podCounts": {"universal": 1}}
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js", "controller": True}
    template = {
        "metadata": {"annotations": {"cloud.google.com/gke-tpu-slice-topology": "2x2x2"}},
        "spec": {"nodeSelector": {"cloud.google.com/gke-tpu-accelerator": "tpu7x"}},
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "namespace": "ns",
            "name": "wl",
            "uid": "wl-uid",
            "labels": {"keep": "me"},
            "finalizers": list(finalizers),
            "ownerReferences": [owner],
        }
        | metadata,
        "spec": {
            "podSets": [{"name": "ps", "topologyRequest": {"subGroupCount": replicas}, "template": template}]
        },
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "admission": {
                "podSetAssignments": [
                    {
                        "name": "ps",
                        "topologyAssignment": {"levels": ["kubernetes.io/hostname"], "slices": [part]},
                    }
                ]
            },
            "admissionChecks": [
                {"name": "theirs", "state": "Ready", "message": "", "lastTransitionTime": "t0"},
                {"name": "ac", "state": check, "message": "", "lastTransitionTime": "t0", "retryCount": 2},
            ],
        },
    }


class World:
    """A controller whose informers hold what the test put there, and nothing else."""

    def __init__(self, policy=None, workload=None):
        self.api = FakeApi()
        checks = Informer(self.api, "/apis/kueue.x-k8s.io/v1beta2/admissionchecks")
        policy = policy or Policy(activation_timeout_seconds=180, retry_delay_seconds=10)
        timing = Timing.of(activation_timeout=180, retry_delay=10)
        self.controller = WorkloadController(
            self.api, checks=checks, policy=policy, timing=timing, now=lambda: self.now
        )
        self.now = NOW
        self._version = 0
        self._tell(
            checks, {"metadata": {"name": "ac"}, "spec": {"controllerName": "accelerator.gke.io/slice"}}
        )
        self._tell(checks, {"metadata": {"name": "theirs"}, "spec": {"controllerName": "somebody/else"}})
        for index in range(8):
            label = {"cloud.google.com/gke-tpu-partition-2x2x2-id": f"p{index // 2}"}
            self._tell(self.controller._nodes, {"metadata": {"name": f"host-{index}", "labels": label}})
        self.put_workload(workload or a_workload())
        self.api.put(OWNER, {"metadata": {"name": "js"}})

    def _tell(self, informer, obj):
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        informer.wrote(obj)

    def put_workload(self, workload):
        self.controller._workloads.wrote(self.api.put(WORKLOAD, workload))

    def put_slice(self, name, reason=None, status="False", ids=("p0",), since=0, owner="ns/wl", **metadata):
        namespace, workload = owner.split("/")
        annotations = {
            "accelerator.gke.io/owner-workload-namespace": namespace,
            "accelerator.gke.io/owner-workload-name": workload,
            "accelerator.gke.io/owner-podset-name": "ps",
        }
        when = (NOW - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": "said",
            "lastTransitionTime": when,
        }
        found = {
            "metadata": {"name": name, "annotations": annotations, "creationTimestamp": when} | metadata,
            "spec": {"type": "tpu7x", "topology": "2x2x2", "partitionIds": list(ids)},
            "status": {"conditions": [condition] if reason else []},
        }
        self.controller._slices.wrote(self.api.put(f"{SLICES}/{name}", found))

    def reconcile(self):
        self.api.calls.clear()
        try:
            return self.controller.reconcile("ns/wl")
        finally:
            self.controller._recorder.write_waiting()

    def check(self):
        return self.api.objects[WORKLOAD]["status"]["admissionChecks"][-1]

    def failure(self):
        conditions = self.api.objects[WORKLOAD]["status"]["conditions"]
        return next((item for item in conditions if item["type"] == "TPUSliceFailure"), None)


def test_the_finalizer_comes_first_and_slices_with_the_next_look():
    world = World(workload=a_workload(replicas=2, hosts=4, finalizers=["kueue.x-k8s.io/resource-in-use"]))
    assert world.reconcile() is None
    assert world.api.verbs() == [("replace", WORKLOAD)]
    after = world.reconcile()
    assert world.api.verbs() == [
        ("create", SLICES),
        ("create", SLICES),
        ("apply", WORKLOAD),
        ("create", "/api/v1/namespaces/ns/events"),
    ]
    assert world.check()["message"] == "Slices are in states: 2 CREATED"
    assert world.api.events() == [
        ("Normal", "SlicesCreated", 'The Slices "ns-wl-ps-0", "ns-wl-ps-1" have been created')
    ]
    assert after == 5.0


def test_on_a_workload_it_writes_its_finalizer_its_check_and_its_condition_and_nothing_else():
    world = World(workload=a_workload(finalizers=[]))
    before = copy.deepcopy(world.api.objects[WORKLOAD])
    world.reconcile()
    replaced = world.api.body("replace", WORKLOAD)
    assert replaced == before | {"metadata": before["metadata"] | {"finalizers": [FINALIZER]}}
    world.put_slice("ns-wl-ps-0", "FAILED")
    world.reconcile()
    applied = world.api.body("apply", WORKLOAD)
    assert set(applied) == {"apiVersion", "kind", "metadata", "status"}
    assert set(applied["metadata"]) == {"namespace", "name", "uid", "resourceVersion"}
    assert set(applied["status"]) == {"admissionChecks", "conditions"}
    assert [item["name"] for item in applied["status"]["admissionChecks"]] == ["ac"]
    assert [item["type"] for item in applied["status"]["conditions"]] == ["TPUSliceFailure"]
    changed = {
        key: value
        for key, value in applied["status"]["admissionChecks"][0].items()
        if before["status"]["admissionChecks"][1].get(key) != value
    }
    assert set(changed) == {"state", "message", "requeueAfterSeconds"}


def test_active_slices_make_the_check_ready_with_an_event_and_then_nothing_is_written():
    world = World()
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    assert world.reconcile() is None
    assert world.check()["state"] == "Ready"
    assert world.check()["podSetUpdates"] == [
        {"name": "ps", "nodeSelector": {"cloud.google.com/gke-tpu-topology": "2x2x2"}}
    ]
    assert world.api.events() == [
        ("Normal", "AdmissionCheckUpdated", 'Admission check "ac" updated state from "Pending" to "Ready"')
    ]
    world.reconcile()
    assert world.api.verbs() == []


def test_a_slice_that_vanishes_evicts_the_workload_and_takes_its_fellows_along():
    world = World(workload=a_workload(replicas=2, hosts=4, check="Ready"))
    world.put_slice("ns-wl-ps-1", "ACTIVE", "True", ids=("p1",))
    world.reconcile()
    assert world.api.verbs() == [("apply", WORKLOAD), ("delete", f"{SLICES}/ns-wl-ps-1")]
    assert world.check() | {"lastTransitionTime": ""} == {
        "name": "ac",
        "state": "Retry",
        "message": "Slice has been deleted",
        "requeueAfterSeconds": 10,
        "retryCount": 2,
        "lastTransitionTime": "",
    }
    assert (world.failure()["status"], world.failure()["reason"]) == ("True", "Deletion")


def test_a_partition_in_use_evicts_before_anything_is_made():
    world = World()
    world.put_slice("theirs", "ACTIVE", "True", owner="ns/other")
    assert world.reconcile() == 5.0
    assert world.api.verbs() == [("apply", WORKLOAD)]
    assert (
        world.check()["message"]
        == 'partition IDs ["p0 (used by theirs)"] are already used by existing Slices'
    )
    assert world.failure()["reason"] == "ConfigurationFailure"


def test_with_the_retry_gate_a_partition_in_use_is_left_to_gke():
    policy = Policy(activation_timeout_seconds=180, retry_delay_seconds=10, retry_on_failure=True)
    world = World(policy)
    world.put_slice("theirs", "ACTIVE", "True", owner="ns/other")
    world.reconcile()
    made = world.api.body("create", SLICES)
    assert made["metadata"]["annotations"]["slice.gke.io/retry-on-failure"] == "true"


def test_a_refused_slice_is_told_on_the_check_and_tried_again():
    world = World()
    world.api.refusals["create", SLICES] = refusal(403, "denied the request: no")
    with pytest.raises(CreationError):
        world.reconcile()
    text = 'Error creating Slice "ns-wl-ps-0": denied the request: no'
    assert (world.check()["state"], world.check()["message"]) == ("Pending", text)
    assert world.api.events() == [("Warning", "FailedCreateSlice", text)]


def test_a_failed_slice_asks_for_a_retry_and_all_slices_go():
    world = World(workload=a_workload(replicas=2, hosts=4))
    world.put_slice("ns-wl-ps-0", "FAILED")
    world.put_slice("ns-wl-ps-1", "ACTIVE", "True", ids=("p1",))
    world.reconcile()
    assert (world.check()["state"], world.failure()["reason"]) == ("Retry", "RuntimeFailure")
    assert sorted(world.api.verbs("delete")) == [
        ("delete", f"{SLICES}/ns-wl-ps-0"),
        ("delete", f"{SLICES}/ns-wl-ps-1"),
    ]


def test_without_the_retry_gate_a_stale_slice_is_made_anew_while_the_check_stays_pending():
    world = World()
    world.put_slice("ns-wl-ps-0", "ACTIVATING", since=180)
    world.reconcile()
    assert world.api.verbs() == [("apply", WORKLOAD), ("delete", f"{SLICES}/ns-wl-ps-0")]
    assert (world.check()["state"], world.check()["message"]) == ("Pending", "Slices are in states: 1 STALE")
    world.reconcile()
    assert world.api.verbs() == []  # it waits for the deleted one
    gone = world.api.objects.pop(f"{SLICES}/ns-wl-ps-0")
    world.controller._slices._gone(gone)
    world.reconcile()
    assert ("create", SLICES) in world.api.verbs()


def test_a_slice_of_an_earlier_place_is_removed_before_the_right_one_is_made():
    world = World()
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True", ids=("p3",))
    world.reconcile()
    assert world.api.verbs("create", "delete") == [("delete", f"{SLICES}/ns-wl-ps-0")]
    assert world.check()["message"] == "Waiting for Slices to be created"


def test_the_failure_is_kept_as_history_once_the_check_moves_on():
    workload = a_workload()
    workload["status"]["conditions"].append(
        {"type": "TPUSliceFailure", "status": "True", "reason": "RuntimeFailure", "message": "boom"}
    )
    world = World(workload=workload)
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    world.reconcile()
    assert world.failure() == {
        "type": "TPUSliceFailure",
        "status": "False",
        "reason": "RuntimeFailure",
        "message": "Previously: boom",
        "lastTransitionTime": "2026-12-01T12:00:00Z",
    }


@pytest.mark.parametrize("check", ["Retry", "Rejected"])
def test_no_slice_is_made_while_kueue_has_not_reset_the_check(check):
    world = World(workload=a_workload(check=check))
    world.reconcile()
    assert ("create", SLICES) not in world.api.verbs()


def test_a_workload_without_a_check_of_ours_is_none_of_our_business():
    workload = a_workload(finalizers=[])
    workload["status"]["admissionChecks"].pop()
    world = World(workload=workload)
    world.reconcile()
    assert world.api.calls == []


def evicted(**given):
    workload = a_workload(**given)
    workload["status"]["conditions"].append({"type": "Evicted", "status": "True"})
    return workload


def test_slices_of_an_evicted_workload_stay_until_the_last_pod_has_ended():
    world = World(workload=evicted())
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    world.api.objects[PODS] = [{"status": {"phase": "Succeeded"}}, {"status": {"phase": "Running"}}]
    assert world.reconcile() == 5.0
    assert world.api.verbs() == []
    assert world.api.body("list", PODS)["labelSelector"] == "jobset.sigs.k8s.io/jobset-name=js"
    world.api.objects[PODS] = [{"status": {"phase": "Succeeded"}}, {"status": {"phase": "Failed"}}]
    assert world.reconcile() is None
    assert world.api.verbs() == [("delete", f"{SLICES}/ns-wl-ps-0"), ("replace", WORKLOAD)]
    assert world.api.objects[WORKLOAD]["metadata"]["finalizers"] == []


def test_slices_go_at_once_when_the_owner_has_gone():
    world = World(workload=evicted())
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    world.api.objects[PODS] = [{"status": {"phase": "Running"}}]
    world.api.objects.pop(OWNER)
    world.reconcile()
    assert world.api.verbs() == [("delete", f"{SLICES}/ns-wl-ps-0"), ("replace", WORKLOAD)]


def test_other_finalizers_stay():
    world = World(workload=evicted(finalizers=["a", FINALIZER, "b"]))
    world.reconcile()
    assert world.api.objects[WORKLOAD]["metadata"]["finalizers"] == ["a", "b"]


def test_a_finalizer_that_met_a_newer_workload_is_tried_again_after_five_milliseconds():
    world = World(workload=evicted())
    world.api.refusals["replace", WORKLOAD] = refusal(409)
    assert world.reconcile() == 0.005


def test_a_status_that_met_a_newer_workload_is_written_anew_from_it():
    world = World()
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    world.api.refusals["apply", WORKLOAD] = refusal(409)
    assert world.reconcile() == workload_controller._CONFLICT_RETRY_SECONDS
    assert world.api.events() == []


def test_a_workload_that_went_away_meanwhile_is_no_error():
    world = World()
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    world.api.objects.pop(WORKLOAD)
    assert world.reconcile() is None


def test_a_changed_slice_wakes_its_workload_and_a_new_one_does_not():
    world = World()
    queue = world.controller._controller.queue
    while queue.take(0) is not None:
        pass
    world.put_slice("fresh")
    assert "ns/wl" not in queue._due
    world.put_slice("fresh", "ACTIVATING")
    assert "ns/wl" in queue._due
    assert slices.owner_key({"metadata": {"name": "by-hand"}}) is None


def test_an_event_that_cannot_be_written_holds_up_nothing():
    world = World()
    world.api.refusals["create", "/api/v1/namespaces/ns/events"] = refusal(
        403, "the namespace is being terminated"
    )
    world.put_slice("ns-wl-ps-0", "ACTIVE", "True")
    world.reconcile()
    assert world.check()["state"] == "Ready"


def test_the_same_event_again_raises_a_count():
    counted = []
    world = World()
    world.api.merge_patch = lambda path, body, **query: counted.append((path, body["count"]))
    for _ in range(3):
        world.controller._recorder.warning(world.api.objects[WORKLOAD], "FailedCreateSlice", "no")
    world.controller._recorder.write_waiting()
    assert len(world.api.events()) == 1
    assert [count for _, count in counted] == [2, 3]
