"""What GKE refuses at admission: Slices that can never be, and TPU pods that name no TPU."""

from __future__ import annotations

import json

import pytest

from facts import labels
from simulator.addon.admission import refuse_pod, refuse_slice, review
from simulator.addon.registration import slice_crd

GOOD_SPEC = {"type": "tpu7x", "topology": "2x2x2", "partitionIds": ["a"]}
BOTH = {labels.TPU_ACCELERATOR: "tpu7x", labels.TPU_TOPOLOGY: "2x2x2"}


def slice_object(name: str = "ns-job-main-0", **spec) -> dict:
    return {"metadata": {"name": name}, "spec": {**GOOD_SPEC, **spec}}


def pod(*, tpus: str = "limits", annotations: dict | None = None, **spec) -> dict:
    container = {"name": "main", "resources": {tpus: {labels.TPU_RESOURCE: "4"}} if tpus else {}}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container], **spec}}


def affinity(*keys: str) -> dict:
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    "topology", ["2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x16x16"]
)
def test_every_shape_that_gke_forms_is_admitted(topology):
    assert refuse_slice("CREATE", slice_object(topology=topology), None) is None


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (slice_object("a" * 50), "metadata.name must have 49 characters or fewer (got 50"),
        (slice_object("1st"), "metadata.name must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ (got '1st')"),
        (slice_object("a.b"), "metadata.name must match"),
        (slice_object("a-"), "metadata.name must match"),
        (slice_object(type="v6e"), "spec.type must be 'tpu7x' (got 'v6e')"),
        (slice_object(topology="4x4"), "spec.topology must have three dimensions"),
        (slice_object(topology="4x8x4"), "spec.topology must list its dimensions in non-decreasing order"),
        (slice_object(topology="2x2x8"), "every dimension divisible by 4"),
        (slice_object(topology="0x4x4"), "spec.topology must be numbers joined by x"),
        (slice_object(topology="16x32x32"), "spec.topology must not exceed 9216 chips"),
        (slice_object(partitionIds=[]), "spec.partitionIds must name at least one partition"),
        (slice_object(partitionIds=["a", ""]), "spec.partitionIds must not hold an empty id"),
    ],
)
def test_a_slice_that_can_never_form_is_refused_with_its_path_and_value(obj, text):
    assert text in (refuse_slice("CREATE", obj, None) or "")


def test_all_that_is_wrong_with_a_slice_is_said_at_once():
    refusal = refuse_slice("CREATE", slice_object("X", type="v6e", partitionIds=[]), None) or ""
    assert all(text in refusal for text in ("metadata.name", "spec.type", "spec.partitionIds"))


def test_a_name_of_49_characters_is_admitted():
    assert refuse_slice("CREATE", slice_object("a" * 49), None) is None


def test_a_spec_never_changes_but_metadata_may():
    old = slice_object()
    assert refuse_slice("UPDATE", {**old, "metadata": {"name": "x", "finalizers": []}}, old) is None
    assert "spec is immutable: spec.partitionIds changed" in (
        refuse_slice("UPDATE", slice_object(partitionIds=["b"]), old) or ""
    )


def test_a_tpu_pod_without_both_selectors_is_refused_in_wardens_words():
    refusal = refuse_pod(pod(nodeSelector={labels.TPU_ACCELERATOR: "tpu7x"}))
    assert refusal is not None
    assert refusal.startswith("GKE Warden rejected the request because it violates one or more constraints.")
    details = json.loads(refusal.split("Violations details: ")[1])
    assert details == {
        "[denied by tpu-accelerator-topology-constraints]": [
            "Missing nodeSelector/nodeAffinity label cloud.google.com/gke-tpu-topology"
        ]
    }


@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_tpus_count_whether_requested_or_limited(kind):
    assert refuse_pod(pod(tpus=kind)) is not None


def test_tpus_of_an_init_container_count():
    spec = pod(tpus="")
    spec["spec"]["initContainers"] = [{"name": "i", "resources": {"limits": {labels.TPU_RESOURCE: "4"}}}]
    assert refuse_pod(spec) is not None


@pytest.mark.parametrize(
    "admitted",
    [
        pod(tpus=""),
        pod(nodeSelector=BOTH),
        pod(affinity=affinity(*BOTH)),
        pod(
            nodeSelector={labels.TPU_ACCELERATOR: "tpu7x"},
            affinity=affinity(labels.TPU_TOPOLOGY, "other"),
        ),
        pod(annotations={labels.SKIP_TPU_WEBHOOK_CHECK: "true"}),
    ],
    ids=["no TPUs", "selectors", "affinity", "one of each", "check skipped"],
)
def test_a_pod_that_names_its_tpu_or_skips_the_check_is_admitted(admitted):
    assert refuse_pod(admitted) is None


def test_only_the_word_true_skips_the_check():
    assert refuse_pod(pod(annotations={labels.SKIP_TPU_WEBHOOK_CHECK: "yes"})) is not None


def test_a_review_answers_with_the_requests_uid():
    request = {"uid": "u1", "kind": {"kind": "Pod"}, "operation": "CREATE", "object": pod()}
    answer = review({"request": request})["response"]
    assert (answer["uid"], answer["allowed"], answer["status"]["code"]) == ("u1", False, 403)


def test_a_review_of_anything_else_is_an_error_not_a_yes():
    with pytest.raises(ValueError, match="only Slice and Pod"):
        review({"request": {"uid": "u1", "kind": {"kind": "Node"}, "operation": "CREATE", "object": {}}})


def test_both_served_versions_of_the_crd_have_one_schema_and_v1beta1_is_stored():
    versions = {version["name"]: version for version in slice_crd()["spec"]["versions"]}
    assert versions["v1beta1"]["schema"] == versions["v1alpha1"]["schema"]
    assert {name for name, version in versions.items() if version["storage"]} == {"v1beta1"}
    assert all(version["served"] for version in versions.values())
    assert versions["v1alpha1"]["deprecated"]
