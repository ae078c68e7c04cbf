"""What a workload's manifest must say to get a slice, and what the controllers pass over in silence.

Owns the rules, pure over parsed YAML: each problem has its path, the rule, the value, the reason and the way out.
Sources: the slice controller's webhooks (AI-Hypercomputer/xpk, slice/), Kueue 0.18.2, LWS 0.8.0, GKE's guides,
all seen 2026-12-01. Refuses to judge objects that want no dynamic slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from facts import labels, names, tpu
from facts.refusal import NOT_GIVEN, Refusal
from ops.checks.manifest_templates import SLICE_KINDS, PodTemplate, mapping_at, pod_templates

SHAPES: Final = f"{', '.join(tpu.SUB_SLICE_SHAPES)}, {tpu.CUBE} or a super-slice such as 4x4x8"
SILENCE: Final = "the slice controller passes over anything else in silence, and no Slice is made"


@dataclass(frozen=True)
class Problem:
    """One thing to change."""

    path: str
    refusal: Refusal

    def __str__(self) -> str:
        return f"`{self.path}` {self.refusal}"


def _problem(path: str, rule: str, *, got: Any = NOT_GIVEN, reason: str, way_out: str) -> Problem:
    return Problem(path, Refusal(rule, got=got, reason=reason, way_out=way_out))


def problems_of(workload: Mapping[str, Any]) -> list[Problem] | None:
    """What is wrong with one object; None when it wants no dynamic slice."""
    templates = [template for template in pod_templates(workload) if _wants_slice(template, workload)]
    if not templates:
        return None
    if workload.get("kind") not in SLICE_KINDS:
        return [
            _problem(
                "kind",
                f"must be {', '.join(SLICE_KINDS[:-1])} or {SLICE_KINDS[-1]}",
                got=workload.get("kind"),
                reason=SILENCE,
                way_out="A server that stays up is a LeaderWorkerSet, also with one pod a group.",
            )
        ]
    found = [*_object_problems(workload)]
    for template in templates:
        found += _template_problems(template, workload)
    if workload.get("kind") == "LeaderWorkerSet":
        found += _lws_problems(workload)
    return found


def _wants_slice(template: PodTemplate, workload: Mapping[str, Any]) -> bool:
    annotated_object = labels.TPU_SLICE_TOPOLOGY in mapping_at(workload, "metadata", "annotations")
    return (
        template.topology is not None
        or template.accelerator == tpu.TPU7X
        or bool(template.partition_keys)
        or (template.asks_chips and (annotated_object or template.accelerator is None))
    )


def _object_problems(workload: Mapping[str, Any]) -> Iterator[Problem]:
    metadata = mapping_at(workload, "metadata")
    if not mapping_at(metadata, "labels").get(labels.QUEUE_NAME):
        yield _problem(
            f"metadata.labels[{labels.QUEUE_NAME}]",
            "must name a LocalQueue of the namespace",
            got=None,
            reason="without it Kueue and the slice controller pass over the object in silence: its pods start "
            "at once and wait for hosts that no Slice has made usable",
            way_out="Add the label to the object itself (not to its pods), such as lq.",
        )
    for key in (
        labels.JOBSET_EXCLUSIVE_TOPOLOGY,
        labels.LWS_EXCLUSIVE_TOPOLOGY,
        labels.LWS_SUB_GROUP_EXCLUSIVE_TOPOLOGY,
    ):
        if key in mapping_at(metadata, "annotations"):
            yield _problem(
                f"metadata.annotations[{key}]",
                "must be absent",
                got=mapping_at(metadata, "annotations")[key],
                reason="Kueue places each group on its slice already, and both together put leaders into other "
                "groups' slices (seen with Kueue 0.18.2)",
                way_out="Remove it.",
            )
    namespace = str(metadata.get("namespace") or "a")
    if not namespace[0].isalpha():
        yield _problem(
            "metadata.namespace",
            "must begin with a letter",
            got=namespace,
            reason="Slice names begin with the namespace, and GKE takes only names that begin with a letter",
            way_out="Use another namespace.",
        )


def _template_problems(template: PodTemplate, workload: Mapping[str, Any]) -> Iterator[Problem]:
    if template.accelerator != tpu.TPU7X:
        yield _problem(
            f"{template.path}.spec.nodeSelector[{labels.TPU_ACCELERATOR}]",
            f"must be {tpu.TPU7X}",
            got=template.accelerator,
            reason=f"dynamic slices are made of {tpu.TPU7X} hosts only; {SILENCE}",
            way_out=f"Set it to {tpu.TPU7X}; for other TPUs leave the slice annotation out.",
        )
    for key in (labels.TPU_TOPOLOGY, labels.TPU_SLICE):
        if key in template.node_selector:
            yield _problem(
                f"{template.path}.spec.nodeSelector[{key}]",
                "must be absent",
                got=template.node_selector[key],
                reason="the slice controller selects the hosts of the slice itself, once it is active; a second "
                "selector fails the merge or never matches",
                way_out="Remove it.",
            )
    for key, value in template.annotations.items():
        if str(key).startswith("kueue.x-k8s.io/podset-"):
            yield _problem(
                f"{template.path}.metadata.annotations[{key}]",
                "must be absent",
                got=value,
                reason="the slice controller writes Kueue's topology request from the shape, and Kueue refuses two",
                way_out="Remove it.",
            )
    topology = _topology(template, workload)
    if isinstance(topology, Problem):
        yield topology
        return
    if template.chip_count != tpu.CHIPS_PER_HOST:
        yield _problem(
            f"{template.path}.spec.containers[*].resources.limits[{labels.TPU_RESOURCE}]",
            f"must add up to {tpu.CHIPS_PER_HOST}",
            got=template.chip_count,
            reason="a slice is made of whole hosts, and only the limits of containers count (not of init containers)",
            way_out=f"Ask {tpu.CHIPS_PER_HOST} chips in each pod, as request and as limit.",
        )
    if template.job_path:
        yield from _job_problems(template, topology)


def _topology(template: PodTemplate, workload: Mapping[str, Any]) -> tpu.Topology | Problem:
    path = f"{template.path}.metadata.annotations[{labels.TPU_SLICE_TOPOLOGY}]"
    shape = template.topology
    if shape is None:
        elsewhere = labels.TPU_SLICE_TOPOLOGY in mapping_at(workload, "metadata", "annotations")
        if elsewhere:
            reason = "only the annotation of the pod template is read, not the object's own; " + SILENCE
        elif template.partition_keys:
            reason = f"a selector on {template.partition_keys[0]} alone is refused: the shape is read from the annotation"
        else:
            reason = SILENCE
        return _problem(
            path, "must be the shape of the slice", got=None, reason=reason, way_out=f"Use {SHAPES}."
        )
    if not isinstance(shape, str) or not re.fullmatch(r"\d+x\d+x\d+", shape):
        return _problem(
            path,
            "must be three numbers joined by x",
            got=shape,
            reason=f"tpu7x chips form a 3-D torus; {SILENCE}",
            way_out=f"Use {SHAPES}.",
        )
    try:
        return tpu.Topology.parse(shape)
    except Refusal as refusal:
        return Problem(path, refusal)


def _job_problems(template: PodTemplate, topology: tpu.Topology) -> Iterator[Problem]:
    wanted = topology.host_count
    parallelism, completions = template.job.get("parallelism"), template.job.get("completions")
    if parallelism != wanted:
        yield _problem(
            f"{template.job_path}.parallelism",
            f"must be {wanted}",
            got=parallelism,
            reason=f"{topology.shape} is {topology.chip_count} chips on {wanted} hosts, one pod each, and the pods "
            "must fill it",
            way_out=f"Set parallelism and completions to {wanted}, or choose another shape.",
        )
    elif completions != parallelism:
        yield _problem(
            f"{template.job_path}.completions",
            f"must be {wanted}, as parallelism is",
            got=completions,
            reason="Kueue counts the smaller of the two, and the pods must fill the slice for as long as it runs",
            way_out=f"Set it to {wanted}.",
        )


def _lws_problems(workload: Mapping[str, Any]) -> Iterator[Problem]:
    name = str(mapping_at(workload, "metadata").get("name") or "")
    if len(name) > names.LWS_NAME_LENGTH:
        yield _problem(
            "metadata.name",
            f"must have at most {names.LWS_NAME_LENGTH} characters",
            got=name,
            reason="Kueue puts more behind it, and the pods' names become too long for their labels",
            way_out="Shorten it.",
        )
    templates = pod_templates(workload)
    both = mapping_at(workload, "spec", "leaderWorkerTemplate")
    if len({str(template.topology) for template in templates}) > 1:
        yield _problem(
            f"spec.leaderWorkerTemplate.leaderTemplate.metadata.annotations[{labels.TPU_SLICE_TOPOLOGY}]",
            "must be the same on leaderTemplate and workerTemplate",
            got=" and ".join(str(template.topology) for template in templates),
            reason="leader and workers share one slice; where one of them lacks the shape, the slice controller "
            "passes over the whole LeaderWorkerSet in silence",
            way_out="Give both the same annotation and accelerator.",
        )
        return
    shape = next((template.topology for template in templates), None)
    try:
        topology = tpu.Topology.parse(shape) if isinstance(shape, str) else None
    except Refusal:
        topology = None  # said above
    group = both.get("size", 1)
    if topology and group != topology.host_count:
        yield _problem(
            "spec.leaderWorkerTemplate.size",
            f"must be {topology.host_count}",
            got=group,
            reason=f"{topology.shape} is {topology.chip_count} chips on {topology.host_count} hosts, one pod each; "
            "nobody refuses another number, and such a group never starts right",
            way_out=f"Set it to {topology.host_count}, leader included, or choose another shape.",
        )
