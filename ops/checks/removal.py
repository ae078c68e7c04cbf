"""Leaving nothing behind.

Owns the removal of what this run made: the JobSet, then the wait until its pods, Kueue's Workload, its Slices and
the labels that these put on hosts are gone, with a deadline; and, for what stays, the commands that remove it.
Refuses to touch a JobSet that another run or a person made, and to clear a finalizer: its owner may yet work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from facts import labels
from ops.checks import kubernetes_api as api
from ops.checks.kubernetes_api import Cluster, KubernetesObject
from ops.checks.observation import read_nodes, read_workloads
from ops.checks.placement import labels_of, name_of, slice_state
from ops.checks.slice_jobset import RUN_ANNOTATION, SliceJobSet
from ops.checks.waiting import Clock, Look, Progress, Waited, until


@dataclass(frozen=True)
class Leftover:
    """Something that is still there, and how to remove it."""

    what: str
    command: str

    def in_words(self) -> str:
        return f"{self.what}: {self.command}"


@dataclass
class Removal:
    """Removes what one run made."""

    cluster: Cluster
    clock: Clock
    progress: Progress
    run: str
    timeout_seconds: float
    made: list[SliceJobSet] = field(default_factory=list)
    """Recorded before each create, so that a signal in between loses nothing."""
    _slice_names: set[str] = field(default_factory=set)

    def will_make(self, jobset: SliceJobSet) -> None:
        """To be called before the JobSet is created."""
        if jobset not in self.made:
            self.made.append(jobset)

    def remove(self, jobset: SliceJobSet) -> Waited:
        """Deletes one JobSet and waits until nothing of it is left."""

        def look() -> Look:
            self._delete(jobset)
            left = self.leftovers(jobset)
            return Look(seen=_in_words(left), done=not left, misses=tuple(item.in_words() for item in left))

        return until(
            look,
            about=f"removing {jobset.name}",
            timeout_seconds=self.timeout_seconds,
            clock=self.clock,
            progress=self.progress,
        )

    def leftovers(self, jobset: SliceJobSet) -> list[Leftover]:
        """What is still there of it; nothing for a JobSet of the same name that is not ours."""
        namespace, found = jobset.namespace, []
        current = self.cluster.get(api.JOBSETS, jobset.name, namespace)
        if current and not self._is_ours(current):
            return []
        if current:
            found.append(
                Leftover(
                    f"JobSet {namespace}/{jobset.name}", f"kubectl delete jobset -n {namespace} {jobset.name}"
                )
            )
        found += [
            Leftover(f"Pod {namespace}/{name_of(pod)}", f"kubectl delete pod -n {namespace} {name_of(pod)}")
            for pod in self.cluster.list(api.PODS, namespace, labels=jobset.pod_selector)
        ]
        for workload in read_workloads(self.cluster, jobset):
            name = name_of(workload)
            found.append(
                Leftover(
                    f"Workload {namespace}/{name}",
                    "it goes when Kueue and the slice controller clear its finalizers "
                    f"({', '.join(workload['metadata'].get('finalizers') or ['none'])}): "
                    f"kubectl delete workloads.kueue.x-k8s.io -n {namespace} {name}",
                )
            )
        own_slices = [s for s in self.cluster.list(api.SLICES) if jobset.owns_slice(s)]
        self._slice_names |= {name_of(slice_object) for slice_object in own_slices}
        for slice_object in own_slices:
            name = name_of(slice_object)
            found.append(
                Leftover(
                    f"Slice {name} ({slice_state(slice_object)})",
                    "it goes with its Workload; by hand: "
                    f"kubectl delete slices.accelerator.gke.io {name}, and only if it stays DEACTIVATING for more "
                    "than 15 minutes remove its finalizers, as Google's guide says",
                )
            )
        return found + self._labelled_hosts()

    def _labelled_hosts(self) -> list[Leftover]:
        if not self._slice_names:
            return []
        hosts = [
            name_of(node)
            for node in read_nodes(self.cluster)
            if labels_of(node).get(labels.TPU_SLICE) in self._slice_names
        ]
        if not hosts:
            return []
        named = ", ".join(hosts[:3]) + (", …" if len(hosts) > 3 else "")
        return [
            Leftover(
                f"Label {labels.TPU_SLICE} on {len(hosts)} hosts ({named})",
                "the GKE add-on takes it away with the Slice; never remove it by hand",
            )
        ]

    def _delete(self, jobset: SliceJobSet) -> None:
        current = self.cluster.get(api.JOBSETS, jobset.name, jobset.namespace)
        if not current or not self._is_ours(current):
            return
        for slice_object in self.cluster.list(api.SLICES):
            if jobset.owns_slice(slice_object):
                self._slice_names.add(name_of(slice_object))
        if not current["metadata"].get("deletionTimestamp"):
            self.cluster.delete(api.JOBSETS, jobset.name, jobset.namespace, str(current["metadata"]["uid"]))

    def _is_ours(self, jobset: KubernetesObject) -> bool:
        annotations: Mapping[str, str] = jobset["metadata"].get("annotations") or {}
        return annotations.get(RUN_ANNOTATION) == self.run


def _in_words(left: list[Leftover]) -> str:
    if not left:
        return "nothing left"
    kinds = dict.fromkeys(item.what.split()[0] for item in left)
    return "still there: " + ", ".join(
        f"{sum(item.what.split()[0] == kind for item in left)} {kind}" for kind in kinds
    )
