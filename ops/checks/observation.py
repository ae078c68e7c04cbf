"""One look at everything that belongs to a JobSet of slices, and why it is not further.

Owns the order of reading (pods before Slices before hosts, so that a pod is never judged by an older Slice) and
the translation of what Kueue, the slice controller, the add-on and the scheduler say into reasons. Refuses to
interpret messages: they are quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facts import labels
from ops.checks import kubernetes_api as api
from ops.checks.kubernetes_api import Cluster, KubernetesObject
from ops.checks.placement import (
    condition,
    is_active,
    live_pods,
    name_of,
    running_pods,
    slice_state,
    slices_in_words,
)
from ops.checks.slice_jobset import MACHINE, SliceJobSet


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What there was of a JobSet at one moment."""

    jobset: KubernetesObject | None
    workloads: Sequence[KubernetesObject]
    pods: Sequence[KubernetesObject]
    slices: Sequence[KubernetesObject]
    nodes: Sequence[KubernetesObject]

    def in_words(self, wanted: SliceJobSet) -> str:
        return (
            f"{len(running_pods(self.pods))} of {wanted.pod_count} pods Running, "
            f"Slices: {slices_in_words(self.slices)}"
        )


def read_nodes(cluster: Cluster) -> list[KubernetesObject]:
    """The hosts that dynamic slices are made of."""
    return cluster.list(api.NODES, labels=f"{labels.TPU_ACCELERATOR}={MACHINE.accelerator}")


def read_workloads(cluster: Cluster, wanted: SliceJobSet) -> list[KubernetesObject]:
    """Kueue's Workload of the JobSet (none before Kueue has seen it)."""
    return [
        workload
        for workload in cluster.list(api.WORKLOADS, wanted.namespace)
        if wanted.owns_workload(wanted.namespace, name_of(workload))
    ]


def observe(cluster: Cluster, wanted: SliceJobSet) -> Observation:
    """Reads it all."""
    pods = cluster.list(api.PODS, wanted.namespace, labels=wanted.pod_selector)
    slices = [s for s in cluster.list(api.SLICES) if wanted.owns_slice(s)]
    return Observation(
        jobset=cluster.get(api.JOBSETS, wanted.name, wanted.namespace),
        workloads=read_workloads(cluster, wanted),
        pods=pods,
        slices=slices,
        nodes=read_nodes(cluster),
    )


def reasons(observation: Observation) -> list[str]:
    """Why it is not running yet, in the words of whoever holds it."""
    return list(dict.fromkeys(_reasons(observation)))


def _reasons(observation: Observation) -> Iterator[str]:
    if observation.jobset is None:
        yield "the JobSet is not there any more"
        return
    failed = condition(observation.jobset, "Failed")
    if failed.get("status") == "True":
        yield f"JobSet failed: {failed.get('message', '')}"
    if not observation.workloads:
        yield (
            "Kueue made no Workload for the JobSet: it does not run, does not manage this namespace, "
            "or its JobSet integration is off"
        )
    for workload in observation.workloads:
        yield from _why_not_admitted(workload)
    for slice_object in observation.slices:
        if not is_active(slice_object):
            message = condition(slice_object, "Ready").get("message", "")
            yield f"Slice {name_of(slice_object)}: {slice_state(slice_object)}" + (
                f": {message}" if message else ""
            )
    for pod in live_pods(observation.pods):
        yield from _why_not_running(pod)


def _why_not_admitted(workload: KubernetesObject) -> Iterator[str]:
    if not workload.get("spec", {}).get("active", True):
        yield "Kueue deactivated the Workload"
    quota = condition(workload, "QuotaReserved")
    if quota.get("status") != "True" and quota.get("message"):
        yield f"Kueue: {quota['message']}"
    for check in (workload.get("status") or {}).get("admissionChecks") or []:
        if check.get("state") != "Ready":
            yield f"admission check {check.get('name')} is {check.get('state')}: {check.get('message', '')}".rstrip(
                ": "
            )
    evicted = condition(workload, "Evicted")
    if evicted.get("status") == "True":
        yield f"Kueue evicted it ({evicted.get('reason', '')}): {evicted.get('message', '')}"


def _why_not_running(pod: KubernetesObject) -> Iterator[str]:
    status = pod.get("status") or {}
    if status.get("phase") == "Running":
        return
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        yield f"pods wait for a host: {scheduled.get('message') or scheduled.get('reason', '')}"
    for container in status.get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") != "ContainerCreating":
            yield f"container {container.get('name')}: {waiting.get('reason')} {waiting.get('message', '')}".rstrip()
    if status.get("phase") == "Failed":
        yield f"pod {name_of(pod)} failed: {status.get('message') or status.get('reason') or 'see its log'}"


def warnings(cluster: Cluster, wanted: SliceJobSet, *, most: int = 3) -> list[str]:
    """The latest warning events about the JobSet and its Workload; none when they cannot be read."""
    try:
        events = cluster.list(api.EVENTS, wanted.namespace, fields="type=Warning")
    except api.ApiRefusal:
        return []
    own = [e for e in events if _is_about(e.get("involvedObject") or {}, wanted)]
    own.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    texts = [
        f"event {e.get('reason')} on {e['involvedObject'].get('kind')}: {e.get('message', '')}" for e in own
    ]
    return list(dict.fromkeys(texts))[-most:]


def _is_about(involved: KubernetesObject, wanted: SliceJobSet) -> bool:
    name = str(involved.get("name", ""))
    return name.startswith(wanted.name) or wanted.owns_workload(wanted.namespace, name)
