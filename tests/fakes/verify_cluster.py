"""A cluster in memory that runs JobSets of slices as Kueue, the slice controller and the add-on do.

It answers the calls of `ops.checks.kubernetes_api.Cluster`. Time passes only in `FakeClock.wait`, and each wait is
one step of the cluster. A test breaks it through `after_step`, which sees the cluster once it has moved.
Simplified (assumed): one JobSet is one Workload; hosts are taken in order; a higher priority evicts all lower.
"""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from facts import labels, tpu
from ops.checks import kubernetes_api as api
from ops.checks.kubernetes_api import ApiRefusal, KubernetesObject, Resource

PRIORITIES = {"low-priority-1000": 1000, "medium-priority-2000": 2000, "high-priority-3000": 3000}


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def host(cube: int, index: int, *, block: str = "block-0") -> KubernetesObject:
    """A tpu7x host as facts.md of the platform describes it."""
    found = {
        labels.TPU_PRESENT: "present",
        labels.TPU_ACCELERATOR: tpu.TPU7X,
        labels.TOPOLOGY_BLOCK: block,
        labels.HOSTNAME: f"host-{cube}-{index:02d}",
    }
    for shape in tpu.PARTITION_LEVELS:
        hosts = tpu.Topology.parse(shape).host_count
        found[labels.partition_id(shape)] = f"{cube}-{shape}-{index // hosts}"
        found[labels.partition_state(shape)] = labels.PARTITION_HEALTHY
    return {
        "metadata": {"name": f"host-{cube}-{index:02d}", "labels": found},
        "spec": {"taints": [{"key": labels.TPU_TAINT, "value": "present", "effect": "NoSchedule"}]},
        "status": {"allocatable": {labels.TPU_RESOURCE: "4"}, "conditions": [condition("Ready", "True")]},
    }


class FakeClock:
    """Time that only waits move."""

    def __init__(self, cluster: "FakeCluster") -> None:
        self.time = 0.0
        self._cluster = cluster

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds
        self._cluster.step()


class FakeCluster:
    """Hosts, controllers, queues, and whatever is created."""

    def __init__(self, *, cubes: int = 2) -> None:
        self.objects: dict[str, dict[tuple[str | None, str], KubernetesObject]] = {}
        self.after_step: Callable[[FakeCluster], None] = lambda cluster: None
        self.before_call: Callable[[str, Resource | None], None] = lambda verb, resource: None
        self.counts: Callable[[tpu.Topology], str] = lambda topology: (
            f"Global device count: {topology.device_count} Local device count: 8"
        )
        self.never_removes_slices = False
        self._uid = 0
        for cube in range(cubes):
            for index in range(tpu.HOSTS_PER_CUBE):
                self.put(api.NODES, host(cube, index))
        for namespace, name in (
            ("slice-controller-system", "slice-controller-controller-manager"),
            ("jobset-system", "jobset-controller"),
            ("kueue-system", "kueue-controller-manager"),
            ("lws-system", "lws-controller-manager"),
        ):
            self.put(api.DEPLOYMENTS, _deployment(name), namespace)
        self._put_queues()

    def _put_queues(self) -> None:
        active = {"conditions": [condition("Active", "True", "Ready")]}
        levels = (labels.TOPOLOGY_BLOCK, *map(labels.partition_id, tpu.PARTITION_LEVELS), labels.HOSTNAME)
        self.put(
            api.TOPOLOGIES, _named("slice-topology", {"levels": [{"nodeLabel": level} for level in levels]})
        )
        flavor = {"topologyName": "slice-topology", "nodeLabels": {labels.TPU_ACCELERATOR: tpu.TPU7X}}
        self.put(api.RESOURCE_FLAVORS, _named("slice-rf", flavor))
        self.put(api.ADMISSION_CHECKS, _named("ac", {"controllerName": "accelerator.gke.io/slice"}, active))
        strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": "ac"}]}}
        self.put(api.CLUSTER_QUEUES, _named("cq", strategy, active))
        self.put(api.LOCAL_QUEUES, _named("lq", {"clusterQueue": "cq"}, active), "llm-d-pd-disaggregation")
        for name, value in PRIORITIES.items():
            self.put(api.PRIORITY_CLASSES, {**_named(name), "value": value})

    # --- the calls of the API ------------------------------------------------------------------------------
    def get(self, resource: Resource, name: str, namespace: str | None = None) -> KubernetesObject | None:
        self.before_call("get", resource)
        found = self._of(resource).get((namespace, name))
        return copy.deepcopy(found)

    def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[KubernetesObject]:
        del fields
        self.before_call("list", resource)
        key, _, value = labels.partition("=")
        return [
            copy.deepcopy(thing)
            for (where, _), thing in self._of(resource).items()
            if namespace in (None, where)
            and (not key or (thing["metadata"].get("labels") or {}).get(key) == value)
        ]

    def create(self, resource: Resource, manifest: KubernetesObject) -> KubernetesObject:
        self.before_call("create", resource)
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        if (namespace, name) in self._of(resource):
            raise ApiRefusal(409, f'jobsets "{name}" already exists')
        return self.put(resource, copy.deepcopy(manifest), namespace)

    def delete(self, resource: Resource, name: str, namespace: str | None, uid: str) -> None:
        self.before_call("delete", resource)
        found = self._of(resource).get((namespace, name))
        if found and found["metadata"]["uid"] == uid:
            found["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"

    def log(self, namespace: str, pod: str, container: str) -> str:
        self.before_call("log", None)
        found = self._of(api.PODS)[namespace, pod]
        topology = tpu.Topology.parse(found["metadata"]["annotations"][labels.TPU_SLICE_TOPOLOGY])
        assert container == found["spec"]["containers"][0]["name"]
        return (
            f"+ python -c 'print(\"Global device count:\", …)'\n{self.counts(topology)}\n+ sleep infinity\n"
        )

    # --- for tests -----------------------------------------------------------------------------------------
    def put(
        self, resource: Resource, thing: KubernetesObject, namespace: str | None = None
    ) -> KubernetesObject:
        self._uid += 1
        thing["metadata"].setdefault("uid", f"uid-{self._uid}")
        if namespace:
            thing["metadata"]["namespace"] = namespace
        self._of(resource)[namespace, thing["metadata"]["name"]] = thing
        return copy.deepcopy(thing)

    def remove(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        del self._of(resource)[namespace, name]

    def every(self, resource: Resource) -> "list[KubernetesObject]":
        """The objects themselves, to be broken."""
        return [*self._of(resource).values()]

    def _of(self, resource: Resource) -> dict[tuple[str | None, str], KubernetesObject]:
        return self.objects.setdefault(resource.plural, {})

    # --- what the controllers do ---------------------------------------------------------------------------
    def step(self) -> None:
        for jobset in self.every(api.JOBSETS):
            self._move(jobset)
        self.after_step(self)

    def _move(self, jobset: KubernetesObject) -> None:
        name, namespace = jobset["metadata"]["name"], jobset["metadata"]["namespace"]
        workload = self._of(api.WORKLOADS).get((namespace, f"jobset-{name}-abcde"))
        if jobset["metadata"].get("deletionTimestamp"):
            self._evict(jobset)
            if not any(True for _ in self._slices_of(jobset)):
                self._of(api.WORKLOADS).pop((namespace, f"jobset-{name}-abcde"), None)
                self.remove(api.JOBSETS, name, namespace)
        elif workload is None:
            priority = PRIORITIES[jobset["metadata"]["labels"][labels.PRIORITY_CLASS]]
            made = _named(f"jobset-{name}-abcde", {"priority": priority}, {"conditions": []})
            self.put(api.WORKLOADS, made, namespace)
        elif not workload["status"].get("admission"):
            self._admit(jobset, workload)
        else:
            self._form(jobset, workload)

    def _admit(self, jobset: KubernetesObject, workload: KubernetesObject) -> None:
        job = jobset["spec"]["replicatedJobs"][0]
        template = job["template"]["spec"]["template"]
        topology = tpu.Topology.parse(template["metadata"]["annotations"][labels.TPU_SLICE_TOPOLOGY])
        key = labels.partition_id(topology.partition_level)
        needed = job["replicas"] * topology.partition_count
        free = self._free_partitions(key, topology)
        if len(free) < needed:
            for other in self.every(api.JOBSETS):
                rival = self._of(api.WORKLOADS).get(
                    (other["metadata"]["namespace"], f"jobset-{other['metadata']['name']}-abcde")
                )
                if rival and rival["spec"]["priority"] < workload["spec"]["priority"]:
                    self._evict(other)
            free = self._free_partitions(key, topology)
        if len(free) < needed:
            why = f'topology "slice-topology" allows to fit only {len(free)} out of {needed} slice(s)'
            workload["status"]["conditions"] = [condition("QuotaReserved", "False", "Pending", why)]
            return
        workload["status"]["admission"] = {"clusterQueue": "cq", "podSetAssignments": []}
        workload["status"]["conditions"] = [condition("QuotaReserved", "True")]
        for index in range(job["replicas"]):
            ids = free[index * topology.partition_count : (index + 1) * topology.partition_count]
            made = _named(
                f"{jobset['metadata']['name'][-12:]}-{index}",
                {"type": "tpu7x", "topology": topology.shape, "partitionIds": ids},
                {"conditions": [condition("Ready", "False", "ACTIVATING")]},
            )
            made["metadata"]["annotations"] = {
                labels.SLICE_OWNER_NAMESPACE: jobset["metadata"]["namespace"],
                labels.SLICE_OWNER_NAME: workload["metadata"]["name"],
            }
            self.put(api.SLICES, made)

    def _form(self, jobset: KubernetesObject, workload: KubernetesObject) -> None:
        job = jobset["spec"]["replicatedJobs"][0]
        template = job["template"]["spec"]["template"]
        for index, slice_object in enumerate(self._slices_of(jobset)):
            if slice_object["status"]["conditions"][0]["reason"] != "ACTIVATING":
                continue
            slice_object["status"]["conditions"] = [condition("Ready", "True", "ACTIVE")]
            for number, node in enumerate(self._hosts_of(slice_object)):
                node["metadata"]["labels"][labels.TPU_SLICE] = slice_object["metadata"]["name"]
                node["metadata"]["labels"][labels.TPU_TOPOLOGY] = slice_object["spec"]["topology"]
                pod = copy.deepcopy({"metadata": template["metadata"], "spec": template["spec"]})
                pod["metadata"]["name"] = f"{jobset['metadata']['name']}-job-jax-{index}-{number}-vwxyz"
                pod["metadata"]["labels"] = {
                    labels.JOBSET_NAME: jobset["metadata"]["name"],
                    labels.JOBSET_JOB_INDEX: str(index),
                }
                pod["spec"]["nodeName"] = node["metadata"]["name"]
                pod["status"] = {"phase": "Running", "conditions": []}
                self.put(api.PODS, pod, jobset["metadata"]["namespace"])
        workload["status"]["conditions"] = [condition("QuotaReserved", "True"), condition("Admitted", "True")]

    def _evict(self, jobset: KubernetesObject) -> None:
        namespace, name = jobset["metadata"]["namespace"], jobset["metadata"]["name"]
        for pod in self.every(api.PODS):
            if pod["metadata"]["labels"].get(labels.JOBSET_NAME) == name:
                self.remove(api.PODS, pod["metadata"]["name"], namespace)
        for slice_object in [] if self.never_removes_slices else list(self._slices_of(jobset)):
            for node in self._hosts_of(slice_object):
                node["metadata"]["labels"].pop(labels.TPU_SLICE, None)
                node["metadata"]["labels"].pop(labels.TPU_TOPOLOGY, None)
            self.remove(api.SLICES, slice_object["metadata"]["name"])
        workload = self._of(api.WORKLOADS).get((namespace, f"jobset-{name}-abcde"))
        if workload:
            workload["status"] = {"conditions": [condition("Evicted", "True", "Preempted")]}

    def _slices_of(self, jobset: KubernetesObject) -> Iterator[KubernetesObject]:
        owner = f"jobset-{jobset['metadata']['name']}-abcde"
        for slice_object in self.every(api.SLICES):
            if (slice_object["metadata"].get("annotations") or {}).get(labels.SLICE_OWNER_NAME) == owner:
                yield slice_object

    def _hosts_of(self, slice_object: KubernetesObject) -> "list[KubernetesObject]":
        shape = slice_object["spec"]["topology"]
        key = labels.partition_id(tpu.Topology.parse(shape).partition_level)
        ids = slice_object["spec"]["partitionIds"]
        return [node for node in self.every(api.NODES) if node["metadata"]["labels"].get(key) in ids]

    def _free_partitions(self, key: str, topology: tpu.Topology) -> "list[str]":
        taken = {n["metadata"]["name"] for s in self.every(api.SLICES) for n in self._hosts_of(s)}
        hosts: dict[str, int] = {}
        for node in self.every(api.NODES):
            if node["metadata"]["name"] not in taken:
                partition = node["metadata"]["labels"][key]
                hosts[partition] = hosts.get(partition, 0) + 1
        whole = topology.host_count // topology.partition_count
        return [partition for partition, count in hosts.items() if count == whole]


def _named(
    name: str, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None
) -> KubernetesObject:
    assert re.fullmatch(r"[a-z0-9.-]+", name)
    return {"metadata": {"name": name}, "spec": spec or {}, "status": status or {}}


def _deployment(name: str) -> KubernetesObject:
    return {
        "metadata": {"name": name, "generation": 2},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "example/controller:v1"}]}}},
        "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    }
