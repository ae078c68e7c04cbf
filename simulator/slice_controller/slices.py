"""Which Slices a Workload wants, which exist wrongly, and why some may not be made. Pure.

Slices are cluster-scoped and carry no owner reference: name and annotations tie them to their Workload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from facts import labels
from facts.tpu import TPU7X
from simulator.slice_controller import shapes, templates, workloads

JsonObject = dict[str, Any]

API_VERSION = f"{labels.SLICE_GROUP}/v1beta1"
COLLECTION = f"/apis/{API_VERSION}/slices"

LONGEST_NAME = 49
"""GKE appends `-` and eight characters of the cluster; Compute Engine allows 63."""
_HASH_LENGTH = 5


def slice_name(namespace: str, workload: str, podset: str, index: int) -> str:
    """`<namespace>-<workload>-<podset>-<index>`, cut and hashed when GKE would not take it."""
    name = f"{namespace}-{workload}-{podset}-{index}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{name[: LONGEST_NAME - _HASH_LENGTH - 1]}-{digest[:_HASH_LENGTH]}"


def owner_key(a_slice: JsonObject) -> str | None:
    """The key of the Workload that a Slice belongs to; None for Slices that somebody made by hand."""
    annotations = a_slice["metadata"].get("annotations") or {}
    namespace, name = annotations.get(labels.SLICE_OWNER_NAMESPACE), annotations.get(labels.SLICE_OWNER_NAME)
    return None if namespace is None or name is None else f"{namespace}/{name}"


@dataclass(frozen=True)
class Wanted:
    """The Slices that one podset of an admitted Workload shall have."""

    podset: str
    template: JsonObject
    count: int
    partition_ids: tuple[str, ...]

    def ids_of(self, index: int) -> list[str]:
        """The ids of one Slice: equal chunks, in the order of the assignment; what does not divide is left out."""
        chunk = len(self.partition_ids) // self.count
        return list(self.partition_ids[index * chunk : (index + 1) * chunk])


def wanted(workload: JsonObject, nodes: workloads.Labels, *, from_selectors: bool) -> list[Wanted]:
    """What to have a podset; a LeaderWorkerSet's leader shares the Slice of its workers."""
    found = []
    for assignment in workloads.assignments(workload):
        name = str(assignment.get("name"))
        podset = workloads.podset(workload, name)
        if podset is None or not podset.get("topologyRequest"):
            continue
        if workloads.is_owned_by_lws(workload) and name == workloads.LWS_LEADER_PODSET:
            continue
        template = podset.get("template") or {}
        label = workloads.partition_label(template, from_selectors=from_selectors)
        if not templates.is_relevant(template, from_selectors=from_selectors):
            continue
        if not workloads.is_valid(assignment, nodes, label):
            continue
        ids = dict.fromkeys(nodes[host][label] for host in workloads.hosts(assignment) or ())
        count = podset["topologyRequest"].get("subGroupCount")
        found.append(Wanted(name, template, 1 if count is None else int(count), tuple(ids)))
    return found


@dataclass
class Plan:
    """What to do for one podset."""

    create: list[JsonObject] = field(default_factory=list)
    delete: list[JsonObject] = field(default_factory=list)


def plan(
    workload: JsonObject,
    want: Wanted,
    existing: Mapping[str, JsonObject],
    *,
    retry_on_failure: bool,
    from_selectors: bool,
) -> Plan:
    """The Slices to make and those to remove because a re-admission put the pods elsewhere."""
    metadata = workload["metadata"]
    result = Plan()
    for index in range(want.count):
        ids = want.ids_of(index)
        name = slice_name(metadata["namespace"], metadata["name"], want.podset, index)
        present = existing.get(name)
        if present is not None:
            if present["spec"].get("partitionIds") != ids and not present["metadata"].get(
                "deletionTimestamp"
            ):
                result.delete.append(present)
            continue
        annotations = {
            labels.SLICE_OWNER_NAMESPACE: metadata["namespace"],
            labels.SLICE_OWNER_NAME: metadata["name"],
            labels.SLICE_OWNER_PODSET: want.podset,
        }
        if retry_on_failure:
            annotations[labels.SLICE_RETRY_ON_FAILURE] = "true"
        result.create.append(
            {
                "apiVersion": API_VERSION,
                "kind": "Slice",
                "metadata": {"name": name, "annotations": annotations},
                "spec": {
                    "type": templates.accelerator(want.template) or TPU7X,
                    "topology": templates.topology(want.template, from_selectors=from_selectors),
                    "partitionIds": ids,
                },
            }
        )
    return result


def refusal(
    create: list[JsonObject], everywhere: Iterable[JsonObject], *, retry_on_failure: bool
) -> str | None:
    """Why these Slices may not be made, in the controller's words; None when they may.

    Ids are compared as texts: a 2x2x2 inside a used 2x4x4 passes here and is refused by GKE. With the retry gate a
    used id is no reason, since GKE tries again until it is free.
    """
    reasons = []
    if not retry_on_failure:
        used = {
            id_: item["metadata"]["name"]
            for item in everywhere
            for id_ in item["spec"].get("partitionIds") or ()
        }
        taken = [
            f'"{id_} (used by {used[id_]})"'
            for item in create
            for id_ in item["spec"]["partitionIds"]
            if id_ in used
        ]
        if taken:
            reasons.append(f"partition IDs [{' '.join(taken)}] are already used by existing Slices")
    wrong = []
    for item in create:
        try:
            count = shapes.parse(item["spec"]["topology"]).partition_count
        except ValueError as error:
            return "\n".join([*reasons, str(error)])
        if len(item["spec"]["partitionIds"]) != count:
            wrong.append(item["metadata"]["name"])
    if wrong:
        reasons.append(f"incorrect number of partitions for slices: [{' '.join(wrong)}]")
    return "\n".join(reasons) or None


def created_message(created: Iterable[JsonObject]) -> str:
    """Text of the event SlicesCreated."""
    names = ", ".join(f'"{name}"' for name in sorted(item["metadata"]["name"] for item in created))
    return f"The Slices {names} have been created"
