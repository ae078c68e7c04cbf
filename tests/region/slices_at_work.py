"""Workloads as a person submits them, and the cluster as a test asks it: shared by the tests of slices at work."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from facts import labels
from simulator.addon import knobs
from simulator.addon.knobs import Knobs, PartitionKnobs, SliceKnobs
from simulator.kube_api import Api, ApiException
from tests.region import conftest
from tests.region.conftest import Checkout

NAMESPACE = "llm-d-pd-disaggregation"
QUEUE = "lq"
SLICES = "/apis/accelerator.gke.io/v1beta1/slices"
WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets"
GROUPS = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{NAMESPACE}/leaderworkersets"
NODES = "/api/v1/nodes"

PATIENCE_SECONDS = 180.0
"""For what takes seconds on an idle machine: tests run on busy ones too."""

LOW, MEDIUM = "low-priority-1000", "medium-priority-2000"


def until(find: Callable[[], Any], what: str, deadline_seconds: float = PATIENCE_SECONDS) -> Any:
    """As the region's `until`, with more patience."""
    return conftest.until(find, what, deadline_seconds)


def template(shape: str) -> dict[str, Any]:
    chips = {"google.com/tpu": 4}
    return {
        "metadata": {"annotations": {labels.TPU_SLICE_TOPOLOGY: shape}},
        "spec": {
            "nodeSelector": {labels.TPU_ACCELERATOR: "tpu7x"},
            "tolerations": [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {"name": "main", "image": "python:3.12", "resources": {"limits": chips, "requests": chips}}
            ],
        },
    }


def jobset(name: str, shape: str, replicas: int, hosts: int, priority: str = LOW) -> dict[str, Any]:
    """Names are short, so that a Slice's name ends in its index and a knob can tell replicas apart."""
    pod = template(shape)
    pod["spec"]["restartPolicy"] = "Never"
    job = {"parallelism": hosts, "completions": hosts, "backoffLimit": 0, "template": pod}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {labels.QUEUE_NAME: QUEUE, labels.PRIORITY_CLASS: priority},
        },
        "spec": {"replicatedJobs": [{"name": "j", "replicas": replicas, "template": {"spec": job}}]},
    }


class Region:
    """What a test asks of the cluster."""

    def __init__(self, checkout: Checkout) -> None:
        self.api = Api.from_kubeconfig(checkout.region / "kubeconfig")
        self.folder = next(path for path in (checkout.region / "clusters").iterdir() if path.is_dir())
        self._mine: list[str] = []

    def submit(self, shape: str = "2x2x2", replicas: int = 1, hosts: int = 2, priority: str = LOW) -> str:
        """A JobSet; its name."""
        name = f"t{secrets.token_hex(3)}"
        self.api.create(JOBSETS, jobset(name, shape, replicas, hosts, priority))
        self._mine.append(f"{JOBSETS}/{name}")
        return name

    def submit_groups(self, size: int, shape: str) -> str:
        """A LeaderWorkerSet of two groups; its name."""
        name = f"g{secrets.token_hex(3)}"
        body = {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {labels.QUEUE_NAME: QUEUE}},
            "spec": {
                "replicas": 2,
                "leaderWorkerTemplate": {
                    "size": size,
                    "leaderTemplate": template(shape),
                    "workerTemplate": template(shape),
                },
            },
        }
        self.api.create(GROUPS, body)
        self._mine.append(f"{GROUPS}/{name}")
        return name

    def knobs(self, *, partitions: tuple[PartitionKnobs, ...] = (), **slice_knobs: Any) -> None:
        """What happens to Slices and partitions from now on; without arguments nothing out of the ordinary."""
        slices = (SliceKnobs(**slice_knobs),) if slice_knobs else ()
        knobs.write(self.folder, Knobs(slices=slices, partitions=partitions))

    def workload(self, name: str) -> dict[str, Any] | None:
        items = self.api.get(WORKLOADS)["items"]
        return next((item for item in items if item["metadata"]["name"].startswith(f"jobset-{name}-")), None)

    def slices(self, name: str) -> list[dict[str, Any]]:
        """The Slices of everything that the named object made."""
        return [
            item
            for item in self.api.get(SLICES)["items"]
            if name in item["metadata"].get("annotations", {}).get(labels.SLICE_OWNER_NAME, "")
        ]

    def check(self, name: str) -> dict[str, Any]:
        found = (self.workload(name) or {}).get("status", {}).get("admissionChecks") or [{}]
        return dict(found[0])

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """A condition of its Workload; empty where there is none yet."""
        found = ((self.workload(name) or {}).get("status") or {}).get("conditions") or []
        return dict(next((item for item in found if item["type"] == kind), {}))

    def pods(self, label: str, name: str) -> list[dict[str, Any]]:
        return list(
            self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=f"{label}={name}")["items"]
        )

    def running(self, name: str, count: int) -> bool:
        phases = [pod["status"].get("phase") for pod in self.pods(labels.JOBSET_NAME, name)]
        return phases == ["Running"] * count

    def until_running(self, name: str, count: int) -> None:
        until(lambda: self.running(name, count), f"{count} pods of {name} running")

    def hosts(self) -> dict[str, dict[str, str]]:
        """Labels of every node."""
        return {node["metadata"]["name"]: node["metadata"]["labels"] for node in self.api.get(NODES)["items"]}

    def tpu_hosts(self) -> dict[str, dict[str, str]]:
        return {name: found for name, found in self.hosts().items() if labels.TPU_ACCELERATOR in found}

    def outside_their_slice(self, names: list[str]) -> list[str]:
        """Pods of those JobSets that run on a host whose Slice is not their own Job's."""
        hosts = self.hosts()
        strangers = []
        for name in names:
            owners = {item["metadata"]["name"] for item in self.slices(name)}
            places: dict[str, set[str]] = {}
            for pod in self.pods(labels.JOBSET_NAME, name):
                at = hosts[pod["spec"]["nodeName"]].get(labels.TPU_SLICE, "no slice")
                places.setdefault(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], set()).add(at)
                if at not in owners:
                    strangers.append(f"{pod['metadata']['name']} on {at}")
            strangers += [f"{job} over {found}" for job, found in places.items() if len(found) > 1]
        return strangers

    def delete(self, name: str) -> None:
        """Delete a JobSet of ours."""
        self.api.delete(f"{JOBSETS}/{name}", {"propagationPolicy": "Background"})
        self._mine.remove(f"{JOBSETS}/{name}")

    def clean(self) -> None:
        """Leave nothing behind."""
        self.knobs()
        for path in self._mine:
            try:
                self.api.delete(path, {"propagationPolicy": "Background"})
            except ApiException as error:
                if error.status != 404:
                    raise
        until(lambda: not self.api.get(SLICES)["items"], "all Slices gone")
        until(lambda: not self.api.get(WORKLOADS)["items"], "all Workloads gone")
        self._mine.clear()
