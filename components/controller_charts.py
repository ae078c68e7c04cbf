"""The charts of Kueue, JobSet and LWS: where each comes from, and its values.

Owns pure data: name, namespace, version and values of a chart. Refuses floating images: charts taken from a source
tree carry a staging image with a branch's tag, and always pull it; published ones carry the released image. We
write the ledger's image into both, so that the two sources deploy the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from components.queue_objects import namespace_selector
from facts import versions

PUBLISHED = "oci"


@dataclass(frozen=True, kw_only=True)
class ControllerChart:
    """A chart and what it is told."""

    release: str
    """Release name; begins the name of every object of the chart."""
    namespace: str
    published: str
    """Its address in the registry of its project."""
    version: str
    """Read where it is published; a folder is the version that it is."""
    values: Mapping[str, Any]

    def chart_reference(self, source: str) -> str:
        """The address, or the folder below a local source."""
        return self.published if source == PUBLISHED else str(PurePosixPath(source) / self.release)


def jobset() -> ControllerChart:
    """JobSet: what the slice jobs are."""
    return ControllerChart(
        release="jobset",
        namespace="jobset-system",
        published=versions.JOBSET_CHART,
        version=versions.JOBSET,
        values={"image": _image(versions.JOBSET_IMAGE, versions.JOBSET)},
    )


def leader_worker_set() -> ControllerChart:
    """LWS: what the serving groups are."""
    return ControllerChart(
        release="lws",
        namespace="lws-system",
        published=versions.LWS_CHART,
        version=versions.LWS,
        values={"image": {"manager": _image(versions.LWS_IMAGE, versions.LWS)}},
    )


def kueue(managed_namespaces: Sequence[str]) -> ControllerChart:
    """Kueue, over the named namespaces and no other."""
    return ControllerChart(
        release="kueue",
        namespace="kueue-system",
        published=versions.KUEUE_CHART,
        version=versions.KUEUE,
        values={
            "controllerManager": {"manager": {"image": _image(versions.KUEUE_IMAGE, versions.KUEUE)}},
            "managerConfig": {
                "controllerManagerConfigYaml": yaml.safe_dump(
                    _kueue_configuration(managed_namespaces), sort_keys=False
                )
            },
        },
    )


def _kueue_configuration(managed_namespaces: Sequence[str]) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        # The chart's own numbers.
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Pod": 5,
                "Workload.kueue.x-k8s.io": 5,
                "LocalQueue.kueue.x-k8s.io": 1,
                "ClusterQueue.kueue.x-k8s.io": 1,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "clientConnection": {"qps": 50, "burst": 100},
        # The chart gives its webhooks this selector too: elsewhere a pod starts even while Kueue is down.
        "managedJobsNamespaceSelector": dict(namespace_selector(managed_namespaces)),
        # Only what slices run as. `pod` is listed although LeaderWorkerSet implies it: only then do its pods wait
        # for Kueue (failurePolicy Fail) rather than start ungated while Kueue restarts.
        "integrations": {
            "frameworks": [
                "batch/job",
                "jobset.x-k8s.io/jobset",
                "leaderworkerset.x-k8s.io/leaderworkerset",
                "pod",
            ]
        },
    }


def _image(repository: str, version: str) -> dict[str, str]:
    return {"repository": repository, "tag": f"v{version}", "pullPolicy": "IfNotPresent"}
