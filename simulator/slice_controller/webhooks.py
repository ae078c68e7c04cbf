"""What the controller's four mutating webhooks do to an object, as pure functions.

Each takes the object as JSON and returns a changed copy, or the object itself when it is none of the controller's
business. `Refused` carries the exact text that the person reads. All four answer only on CREATE.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from facts import labels
from simulator.slice_controller import shapes, templates

JsonObject = dict[str, Any]

LWS_PODSET_GROUP = "lws-super-slice-group"


class Refused(Exception):
    """The object may not be created; the text is the whole reason."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What flags and gates say about webhooks."""

    healthy_values: tuple[str, ...]
    """Partition states that a workload without a wish of its own accepts."""
    topology_from_selectors: bool

    def is_relevant(self, template: JsonObject) -> bool:
        return templates.is_relevant(template, from_selectors=self.topology_from_selectors)


def mutate_job(job: JsonObject, rules: Rules) -> JsonObject:
    """Fill in the Kueue topology request of a Job."""
    if not _queue(job):
        return job
    changed = copy.deepcopy(job)
    spec = changed.get("spec") or {}
    if not rules.is_relevant(spec.get("template") or {}):
        return job
    _request_slices(spec, rules, f'invalid job "{_name(job)}"')
    return changed


def mutate_jobset(jobset: JsonObject, rules: Rules) -> JsonObject:
    """Fill in the Kueue topology request of each replicated Job that asks for a slice."""
    if not _queue(jobset):
        return jobset
    changed = copy.deepcopy(jobset)
    for replicated in (changed.get("spec") or {}).get("replicatedJobs") or []:
        spec = (replicated.get("template") or {}).get("spec") or {}
        if rules.is_relevant(spec.get("template") or {}):
            _request_slices(spec, rules, f'invalid jobset "{_name(jobset)}"')
    return changed


def mutate_leader_worker_set(lws: JsonObject, rules: Rules) -> JsonObject:
    """Ask Kueue for one partition a group. The chips are not counted; a leader without a slice skips the whole set."""
    if not _queue(lws):
        return lws
    changed = copy.deepcopy(lws)
    group = (changed.get("spec") or {}).get("leaderWorkerTemplate") or {}
    worker, leader = group.get("workerTemplate") or {}, group.get("leaderTemplate")
    if not rules.is_relevant(worker) or (leader is not None and not rules.is_relevant(leader)):
        return lws
    shape = _parse(worker)
    for template in [worker] if leader is None else [worker, leader]:
        _prefer_healthy(template, shape, rules)
        annotations = _annotations(template)
        annotations[labels.SKIP_TPU_WEBHOOK_CHECK] = "true"
        annotations[labels.PODSET_REQUIRED_TOPOLOGY] = shape.partition_id_label
        if leader is not None:
            annotations[labels.PODSET_GROUP_NAME] = LWS_PODSET_GROUP
    return changed


def mutate_stateful_set(stateful_set: JsonObject, rules: Rules) -> JsonObject:
    """Pin the pods to hosts of their topology. It asks for no queue: LeaderWorkerSet's StatefulSets carry none."""
    template = (stateful_set.get("spec") or {}).get("template") or {}
    if not rules.is_relevant(template):
        return stateful_set
    changed = copy.deepcopy(stateful_set)
    selector = _mapping(_mapping(changed["spec"]["template"], "spec"), "nodeSelector")
    selector.setdefault(
        labels.TPU_TOPOLOGY, templates.topology(template, from_selectors=rules.topology_from_selectors)
    )
    return changed


Mutation = Callable[[JsonObject, Rules], JsonObject]

MUTATIONS: dict[str, Mutation] = {
    "/mutate-batch-v1-job": mutate_job,
    "/mutate-jobset-x-k8s-io-v1alpha2-jobset": mutate_jobset,
    "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset": mutate_leader_worker_set,
    "/mutate-apps-v1-statefulset": mutate_stateful_set,
}
"""By the URL path in the webhook configuration."""


def _request_slices(job_spec: JsonObject, rules: Rules, prefix: str) -> None:
    template = job_spec["template"]
    shape = _parse(template)
    _prefer_healthy(template, shape, rules)
    parallelism = job_spec.get("parallelism")
    if parallelism is None:
        raise Refused(f"{prefix}: parallelism must be set for Sub-/SuperSlice workloads")
    pod_count = shape.pods_per_partition(int(parallelism))
    chip_count = templates.chips_per_pod(template) * pod_count
    if chip_count != shape.chips_per_partition:
        raise Refused(
            f"{prefix}: configuration results in {chip_count} TPUs requested, "
            f"but must be exactly {shape.chips_per_partition} TPUs (full utilization)"
        )
    annotations = _annotations(template)
    annotations[labels.PODSET_REQUIRED_TOPOLOGY] = labels.TOPOLOGY_BLOCK
    annotations[labels.PODSET_SLICE_REQUIRED_TOPOLOGY] = shape.partition_id_label
    annotations[labels.PODSET_SLICE_SIZE] = str(pod_count)


def _parse(template: JsonObject) -> shapes.Shape:
    try:
        return shapes.parse(templates.annotated_topology(template))
    except ValueError as error:
        raise Refused(str(error)) from None


def _prefer_healthy(template: JsonObject, shape: shapes.Shape, rules: Rules) -> None:
    if templates.has_health_rule(template, shape.health_label):
        return
    requirement = {"key": shape.health_label, "operator": "In", "values": list(rules.healthy_values)}
    affinity = _mapping(_mapping(_mapping(template, "spec"), "affinity"), "nodeAffinity")
    required = _mapping(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    terms = required.get("nodeSelectorTerms")
    if not terms:
        required["nodeSelectorTerms"] = [{"matchExpressions": [requirement]}]
        return
    for term in terms:
        if term.get("matchExpressions") is None:
            term["matchExpressions"] = []
        term["matchExpressions"].append(dict(requirement))


def _queue(obj: JsonObject) -> str:
    return str(((obj.get("metadata") or {}).get("labels") or {}).get(labels.QUEUE_NAME) or "")


def _name(obj: JsonObject) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def _annotations(template: JsonObject) -> JsonObject:
    return _mapping(_mapping(template, "metadata"), "annotations")


def _mapping(parent: JsonObject, key: str) -> JsonObject:
    """The mapping under `key`, made when absent or null."""
    if parent.get(key) is None:
        parent[key] = {}
    mapping: JsonObject = parent[key]
    return mapping
