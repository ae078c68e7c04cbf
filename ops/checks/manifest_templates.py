"""Where a workload's manifest keeps its pods, and what they ask of a slice.

Owns the reading of Job, JobSet, LeaderWorkerSet and of the kinds that cannot have slices. Refuses to judge:
`manifest_rules` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from facts import labels

PARTITION_KEY = re.compile(r"cloud\.google\.com/gke-tpu-partition-([0-9x]+)-(id|state)")
SLICE_KINDS = ("JobSet", "Job", "LeaderWorkerSet")
"""The kinds for which the slice controller makes Slices."""

OTHER_KINDS = ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "CronJob")


def mapping_at(thing: Any, *keys: str) -> Mapping[str, Any]:
    """The mapping at that path; an empty one where there is none."""
    for key in keys:
        thing = thing.get(key) if isinstance(thing, Mapping) else None
    return thing if isinstance(thing, Mapping) else {}


def list_at(thing: Any, *keys: str) -> list[Any]:
    """The list at that path; an empty one where there is none."""
    *way, last = keys
    found = mapping_at(thing, *way).get(last)
    return found if isinstance(found, list) else []


@dataclass(frozen=True)
class PodTemplate:
    """A pod template and where it stands in its object."""

    path: str
    content: Mapping[str, Any]
    job: Mapping[str, Any]
    """The Job spec around it; empty for other kinds."""
    job_path: str = ""

    @property
    def annotations(self) -> Mapping[str, Any]:
        return mapping_at(self.content, "metadata", "annotations")

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping_at(self.content, "spec")

    @property
    def node_selector(self) -> Mapping[str, Any]:
        return mapping_at(self.spec, "nodeSelector")

    @property
    def topology(self) -> Any:
        """What the slice annotation says; None without one."""
        return self.annotations.get(labels.TPU_SLICE_TOPOLOGY)

    @property
    def accelerator(self) -> str | None:
        """As the slice controller reads it: the node selector, or a required affinity to exactly one value."""
        selected = self.node_selector.get(labels.TPU_ACCELERATOR)
        if selected is not None:
            return str(selected)
        for expression in self._required_expressions():
            values = list_at(expression, "values")
            is_it = expression.get("key") == labels.TPU_ACCELERATOR and expression.get("operator") == "In"
            if is_it and len(values) == 1:
                return str(values[0])
        return None

    @property
    def partition_keys(self) -> list[str]:
        """Node label keys by which it selects partitions."""
        keys = [*map(str, self.node_selector), *(str(e.get("key")) for e in self._required_expressions())]
        return [key for key in keys if PARTITION_KEY.fullmatch(key)]

    @property
    def chip_count(self) -> int:
        """Chips of one pod, as the slice controller counts them: limits of containers, not of init containers."""
        limits = [mapping_at(c, "resources", "limits") for c in list_at(self.spec, "containers")]
        return sum(_whole(limit.get(labels.TPU_RESOURCE)) for limit in limits)

    @property
    def asks_chips(self) -> bool:
        """True when any container, init containers included, names the resource anywhere."""
        containers = [*list_at(self.spec, "containers"), *list_at(self.spec, "initContainers")]
        return any(
            labels.TPU_RESOURCE in mapping_at(container, "resources", part)
            for container in containers
            for part in ("limits", "requests")
        )

    def _required_expressions(self) -> Iterator[Mapping[str, Any]]:
        required = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        for term in list_at(self.spec, *required, "nodeSelectorTerms"):
            for expression in list_at(term, "matchExpressions"):
                if isinstance(expression, Mapping):
                    yield expression


def pod_templates(workload: Mapping[str, Any]) -> list[PodTemplate]:
    """Every pod template of an object; none for a kind that has no pods."""
    kind, spec = workload.get("kind"), mapping_at(workload, "spec")
    if kind == "JobSet":
        found = []
        for index, replicated_job in enumerate(list_at(spec, "replicatedJobs")):
            job_path = f"spec.replicatedJobs[{index}].template.spec"
            job = mapping_at(replicated_job, "template", "spec")
            found.append(PodTemplate(f"{job_path}.template", mapping_at(job, "template"), job, job_path))
        return found
    if kind == "Job":
        return [PodTemplate("spec.template", mapping_at(spec, "template"), spec, "spec")]
    if kind == "LeaderWorkerSet":
        both = mapping_at(spec, "leaderWorkerTemplate")
        return [
            PodTemplate(f"spec.leaderWorkerTemplate.{role}", mapping_at(both, role), {})
            for role in ("leaderTemplate", "workerTemplate")
            if role in both
        ]
    if kind == "Pod":
        return [PodTemplate("", workload, {})]
    if kind == "CronJob":
        job = mapping_at(spec, "jobTemplate", "spec")
        return [PodTemplate("spec.jobTemplate.spec.template", mapping_at(job, "template"), job)]
    if kind in OTHER_KINDS:
        return [PodTemplate("spec.template", mapping_at(spec, "template"), {})]
    return []


def _whole(quantity: Any) -> int:
    text = str(quantity) if quantity is not None else "0"
    return int(text) if text.isdigit() else 0
