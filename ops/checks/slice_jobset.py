"""A JobSet whose Jobs each want one slice, and what follows from its manifest.

Owns the way from the static YAML to expected pods, hosts, chips and devices: nothing is counted twice.
Refuses a manifest whose pods do not fill their slices; `ops check` says more about such a one.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from facts import labels
from facts.tpu import MACHINES, Topology, TpuMachine
from ops.checks.kubernetes_api import KubernetesObject

RUN_ANNOTATION = "tpu-slices/verify-run"
"""On every object that verify makes: `<host>/<process>/<time>` of the run."""

MACHINE: TpuMachine = MACHINES["tpu7x-standard-4t"]


@dataclass(frozen=True, kw_only=True)
class SliceJobSet:
    """One JobSet of slices, as the manifest asks for it."""

    manifest: KubernetesObject
    name: str
    namespace: str
    priority_class: str
    topology: Topology
    slice_count: int
    container: str

    @classmethod
    def from_manifest(cls, manifest: KubernetesObject) -> SliceJobSet:
        """Reads the shape; refuses one that cannot fill its slices."""
        metadata = manifest["metadata"]
        (replicated_job,) = manifest["spec"]["replicatedJobs"]
        job = replicated_job["template"]["spec"]
        template = job["template"]
        topology = Topology.parse(template["metadata"]["annotations"][labels.TPU_SLICE_TOPOLOGY])
        (container,) = template["spec"]["containers"]
        asked_chips = job["parallelism"] * int(container["resources"]["limits"][labels.TPU_RESOURCE])
        if asked_chips != topology.chip_count or job["completions"] != job["parallelism"]:
            raise ValueError(
                f"{metadata['name']}: its pods ask {asked_chips} chips, not {topology.chip_count}"
            )
        return cls(
            manifest=manifest,
            name=metadata["name"],
            namespace=metadata["namespace"],
            priority_class=metadata["labels"][labels.PRIORITY_CLASS],
            topology=topology,
            slice_count=replicated_job["replicas"],
            container=container["name"],
        )

    @classmethod
    def from_file(cls, path: Path, *, namespace: str, local_queue: str, run: str) -> SliceJobSet:
        """The committed manifest, put into the stack's namespace and queue and marked with the run."""
        manifest = copy.deepcopy(yaml.safe_load(path.read_text()))
        metadata = manifest["metadata"]
        for key, mapping in (("namespace", metadata), (labels.QUEUE_NAME, metadata["labels"])):
            if key not in mapping:
                raise ValueError(f"{path}: {key} is not there to be set")
        metadata["namespace"] = namespace
        metadata["labels"][labels.QUEUE_NAME] = local_queue
        metadata.setdefault("annotations", {})[RUN_ANNOTATION] = run
        return cls.from_manifest(manifest)

    @property
    def pods_per_slice(self) -> int:
        return self.topology.host_count

    @property
    def pod_count(self) -> int:
        return self.slice_count * self.pods_per_slice

    @property
    def pod_selector(self) -> str:
        """The seed's own selector."""
        return f"{labels.JOBSET_NAME}={self.name}"

    @property
    def wanted(self) -> str:
        """In words, for a person."""
        slices = (
            f"{self.slice_count} x {self.topology.shape}" if self.slice_count > 1 else self.topology.shape
        )
        return f"{slices}, {self.pod_count} pods"

    def owns_workload(self, namespace: str, name: str) -> bool:
        """True for the name that Kueue gives to the Workload of a JobSet of this name."""
        return namespace == self.namespace and bool(re.fullmatch(f"jobset-{self.name}-[0-9a-f]{{5}}", name))

    def owns_slice(self, slice_object: KubernetesObject) -> bool:
        """True for a Slice that the slice controller made for this JobSet."""
        annotations: Mapping[str, Any] = slice_object["metadata"].get("annotations") or {}
        return self.owns_workload(
            annotations.get(labels.SLICE_OWNER_NAMESPACE, ""), annotations.get(labels.SLICE_OWNER_NAME, "")
        )
