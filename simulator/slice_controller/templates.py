"""What the slice controller reads in a pod template: topology, accelerator, health, chips.

Pure functions over plain JSON. A template is "relevant" when it asks for a tpu7x slice; all else passes untouched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from kubernetes.utils import parse_quantity

from facts import labels
from facts.tpu import TPU7X

JsonObject = dict[str, Any]

_LOOKS_LIKE_A_TOPOLOGY = re.compile(r"[0-9]+x[0-9]+x[0-9]+")
_PARTITION_LABEL = re.compile(r"cloud\.google\.com/gke-tpu-partition-(?P<shape>.*)-(?:state|id)")


def annotated_topology(template: JsonObject) -> str:
    """The annotation `gke-tpu-slice-topology`; the webhooks for Job, JobSet and LeaderWorkerSet parse only this."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(labels.TPU_SLICE_TOPOLOGY) or "")


def topology(template: JsonObject, *, from_selectors: bool) -> str:
    """The topology asked for: the annotation, else (a gate) the shape in the key of a partition selector."""
    if annotated := annotated_topology(template):
        return annotated
    if from_selectors:
        for key in _selector_keys(template):
            found = _PARTITION_LABEL.fullmatch(key)
            if found and found["shape"]:
                return found["shape"]
    return ""


def accelerator(template: JsonObject) -> str:
    """From the node selector, else from a required node affinity that names exactly one value."""
    selector = (template.get("spec") or {}).get("nodeSelector") or {}
    if labels.TPU_ACCELERATOR in selector:
        return str(selector[labels.TPU_ACCELERATOR])
    for term in affinity_terms(template):
        for requirement in term.get("matchExpressions") or []:
            values = requirement.get("values") or []
            if (
                requirement.get("key") == labels.TPU_ACCELERATOR
                and requirement.get("operator") == "In"
                and len(values) == 1
            ):
                return str(values[0])
    return ""


def is_relevant(template: JsonObject, *, from_selectors: bool) -> bool:
    """Whether the template asks for a tpu7x slice. The search is unanchored: `2x2x2x2` is relevant, then refused."""
    looks_right = _LOOKS_LIKE_A_TOPOLOGY.search(topology(template, from_selectors=from_selectors)) is not None
    return looks_right and accelerator(template) == TPU7X


def chips_per_pod(template: JsonObject) -> int:
    """The sum of the containers' TPU limits; init containers and requests do not count."""
    total = 0
    for container in (template.get("spec") or {}).get("containers") or []:
        limit = ((container.get("resources") or {}).get("limits") or {}).get(labels.TPU_RESOURCE)
        if limit is not None:
            total += math.ceil(parse_quantity(str(limit)))  # type: ignore[no-untyped-call]
    return total


def affinity_terms(template: JsonObject) -> list[JsonObject]:
    """The terms of the required node affinity; none when any part of the path is missing."""
    affinity = ((template.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[JsonObject] = required.get("nodeSelectorTerms") or []
    return terms


def has_health_rule(template: JsonObject, health_label: str) -> bool:
    """Whether the person already said which health they want."""
    if health_label in ((template.get("spec") or {}).get("nodeSelector") or {}):
        return True
    return any(
        requirement.get("key") == health_label
        for term in affinity_terms(template)
        for requirement in term.get("matchExpressions") or []
    )


def accepts_only_healthy(template: JsonObject) -> bool:
    """Whether a degraded cube would not do. The controller looks at the key of whole cubes only."""
    key = labels.partition_state("4x4x4")
    selector = (template.get("spec") or {}).get("nodeSelector") or {}
    if key in selector:
        return bool(selector[key] == labels.PARTITION_HEALTHY)
    affinity = ((template.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    if not affinity.get("requiredDuringSchedulingIgnoredDuringExecution"):
        return False
    return not any(_allows(term, key, labels.PARTITION_DEGRADED) for term in affinity_terms(template))


def _allows(term: JsonObject, key: str, value: str) -> bool:
    for requirement in term.get("matchExpressions") or []:
        if requirement.get("key") != key:
            continue
        values = requirement.get("values") or []
        refused = {
            "In": value not in values,
            "NotIn": value in values,
            "DoesNotExist": True,
        }
        if refused.get(str(requirement.get("operator")), False):
            return False
    return True


def _selector_keys(template: JsonObject) -> Iterator[str]:
    yield from (template.get("spec") or {}).get("nodeSelector") or {}
    for term in affinity_terms(template):
        for requirement in term.get("matchExpressions") or []:
            yield str(requirement.get("key") or "")
