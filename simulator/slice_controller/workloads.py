"""What the controller reads in a Kueue Workload: its owner, whether it is over, where its pods shall run.

Pure functions over the v1beta2 JSON. A Workload that the controller passes over gets a reason, for the log only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from facts import labels
from simulator.slice_controller import shapes, templates

JsonObject = dict[str, Any]
Labels = Mapping[str, Mapping[str, str]]
"""Labels of every node, by node name."""

LWS_LEADER_PODSET = "leader"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"


@dataclass(frozen=True)
class Owner:
    """Who made the Workload, and how to find its pods."""

    kind: str
    name: str
    collection: str
    """API path of its kind in a namespace, with `{namespace}`."""
    pod_label: str
    """Pods carry the owner's name under it. For a LeaderWorkerSet that means the pods of every replica."""


_SUPPORTED = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): (
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets",
        labels.JOBSET_NAME,
    ),
    ("batch/v1", "Job"): ("/apis/batch/v1/namespaces/{namespace}/jobs", JOB_NAME_LABEL),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): (
        "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{namespace}/leaderworkersets",
        labels.LWS_NAME,
    ),
}


def owner_reference(workload: JsonObject) -> JsonObject | None:
    """The controlling owner, else the first JobSet, Job or LeaderWorkerSet among the others."""
    references: list[JsonObject] = workload["metadata"].get("ownerReferences") or []
    for reference in references:
        if reference.get("controller"):
            return reference
    kinds = {kind for _, kind in _SUPPORTED}
    return next((reference for reference in references if reference.get("kind") in kinds), None)


def owner(workload: JsonObject) -> Owner | None:
    """The owner if it is of a supported kind. JobSet and Job must control the Workload, LeaderWorkerSet need not."""
    reference = owner_reference(workload)
    if reference is None:
        return None
    kind = str(reference.get("kind"))
    found = _SUPPORTED.get((str(reference.get("apiVersion")), kind))
    if found is None or (kind != "LeaderWorkerSet" and not reference.get("controller")):
        return None
    return Owner(kind, str(reference["name"]), *found)


def is_owned_by_lws(workload: JsonObject) -> bool:
    """Whether a LeaderWorkerSet made it: one Workload a group, whose leader shares the workers' Slice."""
    found = owner(workload)
    return found is not None and found.kind == "LeaderWorkerSet"


def condition(obj: JsonObject, kind: str) -> JsonObject | None:
    """The status condition of that type."""
    conditions: list[JsonObject] = (obj.get("status") or {}).get("conditions") or []
    return next((found for found in conditions if found.get("type") == kind), None)


def is_true(obj: JsonObject, kind: str) -> bool:
    """Whether the status condition of that type is True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def reason_to_finalize(workload: JsonObject) -> str | None:
    """Why the Workload's Slices must go; None while it may keep them."""
    if workload["metadata"].get("deletionTimestamp"):
        return "it has been deleted"
    if is_true(workload, "Finished"):
        return "it has finished"
    if is_true(workload, "Evicted"):
        return "it was evicted"
    if (workload.get("spec") or {}).get("active") is False:
        return "it is no longer active"
    if owner_reference(workload) is None:
        return "it doesn't have owner"
    if owner(workload) is None:
        return "it has an unsupported owner"
    return None


def podsets(workload: JsonObject) -> list[JsonObject]:
    """The Workload's groups of equal pods."""
    found: list[JsonObject] = (workload.get("spec") or {}).get("podSets") or []
    return found


def podset(workload: JsonObject, name: str) -> JsonObject | None:
    """The podset of that name."""
    return next((found for found in podsets(workload) if found.get("name") == name), None)


def assignments(workload: JsonObject) -> list[JsonObject]:
    """Where Kueue has placed each podset; empty while no quota is reserved."""
    admission = (workload.get("status") or {}).get("admission") or {}
    found: list[JsonObject] = admission.get("podSetAssignments") or []
    return found


def hosts(assignment: JsonObject) -> list[str] | None:
    """Node names in the order of the assignment; None without the hostname level, which the controller needs.

    v1beta2 compresses a level's values: one for all domains, or prefix + root + suffix each.
    """
    topology = assignment.get("topologyAssignment")
    if not topology or labels.HOSTNAME not in (topology.get("levels") or []):
        return None
    level = topology["levels"].index(labels.HOSTNAME)
    return [name for part in topology.get("slices") or [] for name in _values(part, level)]


def _values(part: JsonObject, level: int) -> Iterator[str]:
    values = part["valuesPerLevel"][level]
    for index in range(int(part["domainCount"])):
        if values.get("universal") is not None:
            yield values["universal"]
        else:
            parts = values["individual"]
            yield (parts.get("prefix") or "") + parts["roots"][index] + (parts.get("suffix") or "")


def partition_label(template: JsonObject, *, from_selectors: bool) -> str:
    """The node label of its partitions; empty when its topology cannot be formed."""
    try:
        return shapes.parse(templates.topology(template, from_selectors=from_selectors)).partition_id_label
    except ValueError:
        return ""


def is_valid(assignment: JsonObject, nodes: Labels, label: str) -> bool:
    """Whether every host of the assignment exists and carries a partition id."""
    names = hosts(assignment)
    return names is not None and all((nodes.get(name) or {}).get(label) for name in names)


def reason_to_skip(workload: JsonObject, nodes: Labels, *, from_selectors: bool) -> str | None:
    """Why the controller passes the Workload over in silence; None when it acts on it."""
    if owner(workload) is None:
        return "does not have a supported owner"
    if not any(
        templates.is_relevant(podset.get("template") or {}, from_selectors=from_selectors)
        for podset in podsets(workload)
    ):
        return "does not have a relevant podset"
    if not is_true(workload, "QuotaReserved"):
        return "does not have a quota reservation"
    if not (workload.get("status") or {}).get("admission"):
        return "has no admission"
    placed = [assignment for assignment in assignments(workload) if assignment.get("topologyAssignment")]
    if not placed:
        return "has no topology assignment"
    for assignment in placed:
        if is_owned_by_lws(workload) and assignment.get("name") == LWS_LEADER_PODSET:
            continue
        found = podset(workload, str(assignment.get("name")))
        template = (found or {}).get("template") or {}
        if found is None or not templates.is_relevant(template, from_selectors=from_selectors):
            continue
        if not is_valid(assignment, nodes, partition_label(template, from_selectors=from_selectors)):
            return "has invalid topology assignments"
    return None


def check_state(workload: JsonObject, check_names: set[str]) -> JsonObject | None:
    """The state of the first of the Workload's admission checks that is ours."""
    states: list[JsonObject] = (workload.get("status") or {}).get("admissionChecks") or []
    return next((state for state in states if state.get("name") in check_names), None)
