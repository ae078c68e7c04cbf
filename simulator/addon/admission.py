"""What GKE refuses at admission: Slices that can never be, and TPU pods that name no TPU. Pure.

`refuse_slice` and `refuse_pod` return the text of the refusal, or None. The rules for Slices are those of GKE's
Slice reference and its guide to dynamic slicing; the webhook's own texts are not published, so ours are assumed.
The check of TPU pods is Warden's constraint `tpu-accelerator-topology-constraints`: the sentence about the missing
label is quoted from a runbook, the frame around it from what other Warden constraints print (seen 2026-12-01).
"""

from __future__ import annotations

import json
import re
from typing import Any

from facts import labels, tpu

Object = dict[str, Any]

SLICE_NAME_MAX = 49
"""GKE appends a hyphen and eight characters; Compute Engine names end at 63. (A later copy of the page says 54.)"""
_SLICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

WARDEN_CONSTRAINT = "tpu-accelerator-topology-constraints"
_REQUIRED_LABELS = (labels.TPU_ACCELERATOR, labels.TPU_TOPOLOGY)


def refuse_slice(operation: str, new: Object, old: Object | None) -> str | None:
    """Why the Slice may not be created or updated so."""
    if operation == "UPDATE":
        if old is not None and new.get("spec") != old.get("spec"):
            changed = sorted(
                key for key in {*new["spec"], *old["spec"]} if new["spec"].get(key) != old["spec"].get(key)
            )
            return f"spec is immutable: {', '.join(f'spec.{key}' for key in changed)} changed; delete the Slice and create another"
        return None
    name, spec = new["metadata"].get("name", ""), new["spec"]
    problems = []
    if len(name) > SLICE_NAME_MAX:
        problems.append(
            f"metadata.name must have {SLICE_NAME_MAX} characters or fewer (got {len(name)}: {name!r})"
        )
    if not _SLICE_NAME.fullmatch(name):
        problems.append(f"metadata.name must match ^{_SLICE_NAME.pattern}$ (got {name!r})")
    if spec.get("type") != tpu.TPU7X:
        problems.append(f"spec.type must be {tpu.TPU7X!r} (got {spec.get('type')!r})")
    try:
        tpu.Topology.parse(spec.get("topology", ""))
    except ValueError as error:
        problems.append(f"spec.topology {error}")
    if not spec.get("partitionIds"):
        problems.append("spec.partitionIds must name at least one partition")
    elif not all(spec["partitionIds"]):
        problems.append("spec.partitionIds must not hold an empty id")
    return "; ".join(problems) or None


def refuse_pod(pod: Object) -> str | None:
    """Why Warden refuses the pod; None for pods without TPUs and those that skip the check."""
    spec = pod.get("spec") or {}
    annotations = pod.get("metadata", {}).get("annotations") or {}
    if annotations.get(labels.SKIP_TPU_WEBHOOK_CHECK) == "true" or not _requests_tpus(spec):
        return None
    selected = set(spec.get("nodeSelector") or {}) | _required_affinity_keys(spec)
    missing = [
        f"Missing nodeSelector/nodeAffinity label {label}"
        for label in _REQUIRED_LABELS
        if label not in selected
    ]
    if not missing:
        return None
    details = json.dumps({f"[denied by {WARDEN_CONSTRAINT}]": missing}, separators=(",", ":"))
    return (
        "GKE Warden rejected the request because it violates one or more constraints.\n"
        f"Violations details: {details}"
    )


def _requests_tpus(spec: Object) -> bool:
    return any(
        labels.TPU_RESOURCE in (container.get("resources", {}).get(kind) or {})
        for containers in ("containers", "initContainers")
        for container in spec.get(containers) or ()
        for kind in ("requests", "limits")
    )


def _required_affinity_keys(spec: Object) -> set[str]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return {
        expression["key"]
        for term in required.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
    }


def review(document: Object) -> Object:
    """The answer to an AdmissionReview on a Slice or a Pod."""
    request = document["request"]
    kind = request["kind"]["kind"]
    if kind == "Slice":
        refusal = refuse_slice(request["operation"], request["object"], request.get("oldObject"))
    elif kind == "Pod":
        refusal = refuse_pod(request["object"])
    else:
        raise ValueError(f"no admission check of ours is about {kind}: only Slice and Pod are")
    response: Object = {"uid": request["uid"], "allowed": refusal is None}
    if refusal is not None:
        code, reason = (403, "GKE Warden constraints violations") if kind == "Pod" else (422, "Invalid")
        response["status"] = {"code": code, "reason": reason, "message": refusal}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
