"""The slice controller at work with the real Kueue: what it writes, refuses, retries and cleans up.

Runs the stand-in as the region deploys it: from our own manifest, as its own service account.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from facts import labels
from simulator.kube_api import Api, ApiException
from tests.region.conftest import Checkout
from tests.region.slices_at_work import JOBSETS, NAMESPACE, SLICES, Region, jobset, template, until

DEPLOYMENT = (
    "/apis/apps/v1/namespaces/slice-controller-system/deployments/slice-controller-controller-manager"
)
ACCOUNT = "system:serviceaccount:slice-controller-system:slice-controller-controller-manager"


@pytest.fixture(scope="module")
def cluster(running: Checkout) -> Region:
    return Region(running)


@pytest.fixture
def region(cluster: Region) -> Iterator[Region]:
    try:
        yield cluster
    finally:
        cluster.clean()


def leaves(fields: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of a managedFields entry."""
    inner = {key: value for key, value in fields.items() if key != "."}
    if not inner:
        yield path
    for key, value in inner.items():
        yield from leaves(value, f"{path}/{key.removeprefix('f:')}")


def test_it_writes_to_workloads_only_its_finalizer_its_check_and_its_condition(region: Region) -> None:
    region.knobs(match="*-j-0", outcome="failed")
    name = region.submit()
    until(lambda: region.condition(name, "TPUSliceFailure"), "the failure")
    region.knobs()
    region.until_running(name, 2)
    workload = region.workload(name)
    assert workload is not None
    written: dict[str, set[str]] = {}
    for entry in workload["metadata"]["managedFields"]:
        if entry["manager"] in {"manager", "accelerator.gke.io/slice"}:
            written.setdefault(entry["manager"], set()).update(leaves(entry["fieldsV1"]))
    assert written["manager"] == {'/metadata/finalizers/v:"accelerator.gke.io/slice"'}
    check = f'/status/admissionChecks/k:{{"name":"{region.check(name)["name"]}"}}'
    failure = '/status/conditions/k:{"type":"TPUSliceFailure"}'
    strange = {
        path
        for path in written["accelerator.gke.io/slice"]
        if not path.startswith((f"{check}/", f"{failure}/"))
    }
    assert strange == set()
    assert f"{check}/state" in written["accelerator.gke.io/slice"]  # the comparison sees what is there


def test_a_jobset_gets_a_slice_a_replica_and_every_pod_runs_on_its_own(region: Region) -> None:
    name = region.submit(replicas=3)
    region.until_running(name, 6)
    slices = region.slices(name)
    assert len(slices) == 3
    assert {len(item["spec"]["partitionIds"]) for item in slices} == {1}
    assert len({item["spec"]["partitionIds"][0] for item in slices}) == 3
    check = region.check(name)
    assert (check["state"], check["message"]) == ("Ready", "Slices are in states: 3 ACTIVE")
    hosts = {
        node["metadata"]["name"]: node["metadata"]["labels"]
        for node in region.api.get("/api/v1/nodes")["items"]
    }
    places: dict[str, set[str]] = {}
    for pod in region.pods(labels.JOBSET_NAME, name):
        slice_name = hosts[pod["spec"]["nodeName"]][labels.TPU_SLICE]
        places.setdefault(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], set()).add(slice_name)
    assert {len(found) for found in places.values()} == {1}
    assert set.union(*places.values()) == {item["metadata"]["name"] for item in slices}


def test_events_tell_what_became_of_the_slices(region: Region) -> None:
    name = region.submit()
    region.until_running(name, 2)
    workload = region.workload(name)
    assert workload is not None

    def events() -> dict[str, str]:
        items = region.api.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
        found = [item for item in items if item["involvedObject"].get("uid") == workload["metadata"]["uid"]]
        return {item["reason"]: item["message"] for item in found}

    found = until(
        lambda: {"SlicesCreated", "AdmissionCheckUpdated"} <= events().keys() and events(), "events"
    )
    (a_slice,) = region.slices(name)
    assert found["SlicesCreated"] == f'The Slices "{a_slice["metadata"]["name"]}" have been created'
    check = region.check(name)["name"]
    assert (
        found["AdmissionCheckUpdated"] == f'Admission check "{check}" updated state from "Pending" to "Ready"'
    )


def test_a_group_lands_on_one_slice_and_its_leader_has_none_of_its_own(region: Region) -> None:
    name = region.submit_groups(size=4, shape="2x2x4")

    def placed() -> dict[str, set[str]] | None:
        hosts = {
            node["metadata"]["name"]: node["metadata"]["labels"]
            for node in region.api.get("/api/v1/nodes")["items"]
        }
        pods = region.pods(labels.LWS_NAME, name)
        if len(pods) != 8 or any(pod["status"].get("phase") != "Running" for pod in pods):
            return None
        found: dict[str, set[str]] = {}
        for pod in pods:
            group = pod["metadata"]["labels"][labels.LWS_GROUP_INDEX]
            found.setdefault(group, set()).add(hosts[pod["spec"]["nodeName"]][labels.TPU_SLICE])
        return found

    groups = until(placed, "8 pods of two groups running")
    assert {len(found) for found in groups.values()} == {1}
    assert set.union(*groups.values()) == {item["metadata"]["name"] for item in region.slices(name)}


@pytest.mark.parametrize(
    ("shape", "hosts", "text"),
    [
        (
            "2x2x2",
            3,
            "configuration results in 12 TPUs requested, but must be exactly 8 TPUs (full utilization)",
        ),
        ("4x4x6", 16, "topology dimensions must be divisible by 4: 4x4x6"),
        ("8x4x4", 32, "topology dimensions must be in non-decreasing order: 8x4x4"),
    ],
)
def test_what_cannot_be_a_slice_is_refused_at_submission(
    region: Region, shape: str, hosts: int, text: str
) -> None:
    with pytest.raises(ApiException) as refused:
        region.api.create(JOBSETS, jobset("refused", shape, 1, hosts))
    said = json.loads(refused.value.body or "{}")["message"]
    assert refused.value.status == 403
    assert said.startswith('admission webhook "mjobset.kb.io" denied the request: ')
    assert said.endswith(text)


def test_a_slice_that_fails_sends_its_workload_back_and_it_returns_when_the_fault_is_over(
    region: Region,
) -> None:
    region.knobs(match="*-j-1", outcome="failed")
    name = region.submit(replicas=2)
    failure = until(lambda: region.condition(name, "TPUSliceFailure"), "the failure")
    assert failure["reason"] == "RuntimeFailure"
    assert ". Errors: " in failure["message"]
    evicted = until(lambda: region.condition(name, "Evicted"), "the eviction")
    assert "in Retry state" in evicted["message"]
    region.knobs()
    region.until_running(name, 4)
    assert int(region.check(name)["retryCount"]) >= 1


def test_a_slice_that_never_forms_times_out(region: Region) -> None:
    region.knobs(match="*-j-0", outcome="stalled")
    name = region.submit()
    failure = until(lambda: region.condition(name, "TPUSliceFailure"), "the time-out")
    assert failure["reason"] == "FormationTimeout"
    assert failure["message"].endswith(": stale")
    region.knobs()
    region.until_running(name, 2)


def test_a_degraded_slice_is_good_enough_by_default(region: Region) -> None:
    region.knobs(match="*", outcome="degraded")
    name = region.submit(shape="4x4x4", hosts=16)
    region.until_running(name, 16)
    assert region.check(name)["message"] == "Slices are in states: 1 ACTIVE_DEGRADED"


def test_a_slice_that_is_deleted_by_hand_is_made_anew(region: Region) -> None:
    name = region.submit(replicas=2)
    region.until_running(name, 4)
    before = {item["metadata"]["uid"] for item in region.slices(name)}
    region.api.delete(f"{SLICES}/{region.slices(name)[0]['metadata']['name']}")
    until(
        lambda: "Slice has been deleted" in region.condition(name, "Evicted").get("message", ""),
        "the eviction",
    )

    def is_new() -> bool:
        uids = {item["metadata"]["uid"] for item in region.slices(name)}
        return len(uids) == 2 and not uids & before and region.running(name, 4)

    until(is_new, "two new Slices and 4 pods running on them")


def test_a_killed_controller_comes_back_and_goes_on(region: Region) -> None:
    name = region.submit()
    region.until_running(name, 2)
    before = {item["metadata"]["uid"] for item in region.slices(name)}
    scale(region.api, 0)
    other = jobset("waiting", "2x2x2", 1, 2)
    with pytest.raises(ApiException, match="failed calling webhook"):
        region.api.create(JOBSETS, other)
    # Others are no hostages: a Job without a queue is made, whatever it asks for.
    plain = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"plain{secrets.token_hex(3)}", "namespace": "default"},
        "spec": {"suspend": True, "template": template("2x2x2")},
    }
    plain["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    region.api.create(jobs, plain)
    region.api.delete(f"{jobs}/{plain['metadata']['name']}", {"propagationPolicy": "Background"})
    scale(region.api, 1)
    again = region.submit()
    region.until_running(again, 2)
    assert {item["metadata"]["uid"] for item in region.slices(name)} == before
    assert region.running(name, 2)


def scale(api: Api, replicas: int) -> None:
    """Set the controller's replicas and wait until it is so: no pod, or one that is ready."""
    api.merge_patch(f"{DEPLOYMENT}/scale", {"spec": {"replicas": replicas}})
    pods = "/api/v1/namespaces/slice-controller-system/pods"
    if replicas == 0:
        until(lambda: not api.get(pods)["items"], "no slice controller")
    else:
        until(
            lambda: api.get(DEPLOYMENT)["status"].get("readyReplicas") == replicas,
            "the slice controller ready",
        )


def test_lost_certificates_are_made_anew_and_announced(region: Region) -> None:
    path = "/api/v1/namespaces/slice-controller-system/secrets/slice-controller-webhook-server-cert"
    before = region.api.get(path)["data"]["ca.crt"]
    region.api.merge_patch(path, {"data": None})
    after = until(
        lambda: (found := (region.api.get(path).get("data") or {}).get("ca.crt")) != before and found,
        "new certificates",
    )
    configuration = (
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"
        "slice-controller-mutating-webhook-configuration"
    )
    until(
        lambda: (
            {hook["clientConfig"]["caBundle"] for hook in region.api.get(configuration)["webhooks"]}
            == {after}
        ),
        "the new authority announced",
    )

    def submitted() -> str | None:
        try:
            return region.submit()
        except ApiException:
            return None

    region.until_running(until(submitted, "a webhook that answers under the new certificate"), 2)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace", "name", "allowed"),
    [
        ("create", "accelerator.gke.io", "slices", "", "", True),
        ("update", "kueue.x-k8s.io", "workloads", NAMESPACE, "", True),
        ("update", "", "secrets", "slice-controller-system", "slice-controller-webhook-server-cert", True),
        ("get", "", "secrets", NAMESPACE, "", False),
        ("get", "", "secrets", "slice-controller-system", "another", False),
        ("create", "kueue.x-k8s.io", "workloads", NAMESPACE, "", False),
        ("update", "jobset.x-k8s.io", "jobsets", NAMESPACE, "", False),
        ("update", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "another", False),
        ("delete", "", "pods", NAMESPACE, "", False),
        ("patch", "", "nodes", "", "", False),
    ],
)
def test_its_service_account_may_do_what_it_does_and_no_more(
    region: Region, verb: str, group: str, resource: str, namespace: str, name: str, allowed: bool
) -> None:
    asked = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "groups": ["system:serviceaccounts"], "resourceAttributes": asked},
    }
    answer = region.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    assert answer["status"]["allowed"] is allowed
