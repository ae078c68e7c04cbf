"""Whether a JobSet of slices finds room, and whom it would push out.

Owns the count of slices that fit on healthy, free hosts, and the list of who holds the others (Kueue's
Workloads with their priority, Slices and pods that Kueue does not know). Refuses to guess which victims Kueue
would pick: it names everybody who could be one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from facts import labels, tpu
from ops.checks import kubernetes_api as api
from ops.checks.kubernetes_api import Cluster, KubernetesObject
from ops.checks.observation import read_nodes
from ops.checks.placement import host_of, is_true, labels_of, name_of
from ops.checks.slice_jobset import SliceJobSet

FINISHED_PHASES = {"Succeeded", "Failed"}


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Somebody whose hosts are taken."""

    what: str
    hosts: frozenset[str]
    priority: int | None = None
    """None for what Kueue cannot preempt."""

    def in_words(self) -> str:
        rank = f"priority {self.priority}" if self.priority is not None else "not Kueue's to preempt"
        return f"{self.what} ({len(self.hosts)} hosts, {rank})"


@dataclass(frozen=True, kw_only=True)
class Room:
    """What there is for one JobSet."""

    wanted: int
    on_healthy_hosts: int
    on_free_hosts: int
    after_preemption: int
    victims: tuple[Holder, ...]
    """Of lower priority."""
    others: tuple[Holder, ...]

    @property
    def is_free(self) -> bool:
        return self.on_free_hosts >= self.wanted


def slices_that_fit(topology: tpu.Topology, nodes: Iterable[KubernetesObject]) -> int:
    """How many slices of that shape whole, healthy partitions of these hosts can form."""
    key = labels.partition_id(topology.partition_level)
    hosts = Counter(
        (labels_of(n).get(labels.TOPOLOGY_BLOCK, ""), labels_of(n).get(key, ""))
        for n in nodes
        if _is_usable(n, topology)
    )
    hosts_per_partition = topology.host_count // topology.partition_count
    whole_by_block: defaultdict[str, int] = defaultdict(int)
    for (block, partition), count in hosts.items():
        whole_by_block[block] += int(bool(partition) and count >= hosts_per_partition)
    return sum(whole // topology.partition_count for whole in whole_by_block.values())


def _is_usable(node: KubernetesObject, topology: tpu.Topology) -> bool:
    healthy = {labels.PARTITION_HEALTHY}
    if topology.partition_level == tpu.CUBE:
        healthy.add(labels.PARTITION_DEGRADED)
    state = labels_of(node).get(labels.partition_state(topology.partition_level))
    return state in healthy and is_true(node, "Ready") and not (node.get("spec") or {}).get("unschedulable")


def read_room(
    cluster: Cluster, wanted: SliceJobSet, *, priority: int, cluster_queue: str, own: Sequence[SliceJobSet]
) -> Room:
    """Reads who holds what; what `own` holds counts as free."""
    nodes = read_nodes(cluster)
    holders = read_holders(cluster, nodes, cluster_queue=cluster_queue, own=own)
    victims = tuple(h for h in holders if h.priority is not None and h.priority < priority)
    others = tuple(h for h in holders if h not in victims)

    def fits(without: Iterable[Holder]) -> int:
        taken = {host for holder in without for host in holder.hosts}
        return slices_that_fit(wanted.topology, [n for n in nodes if name_of(n) not in taken])

    return Room(
        wanted=wanted.slice_count,
        on_healthy_hosts=fits(()),
        on_free_hosts=fits(holders),
        after_preemption=fits(others),
        victims=victims,
        others=others,
    )


def read_holders(
    cluster: Cluster, nodes: Sequence[KubernetesObject], *, cluster_queue: str, own: Sequence[SliceJobSet]
) -> list[Holder]:
    """Everybody but `own` who has a host: Workloads first, then Slices and pods that belong to none of them."""
    names = {name_of(node) for node in nodes}
    holders, explained = [], set[str]()
    for workload in cluster.list(api.WORKLOADS):
        hosts = assigned_hosts(workload) & names
        if not hosts or is_true(workload, "Finished"):
            continue
        namespace, name = workload["metadata"]["namespace"], name_of(workload)
        explained |= hosts
        if any(jobset.owns_workload(namespace, name) for jobset in own):
            continue
        is_ours_to_preempt = workload["status"]["admission"].get("clusterQueue") == cluster_queue
        priority = int(workload["spec"].get("priority") or 0) if is_ours_to_preempt else None
        holders.append(Holder(what=f"Workload {namespace}/{name}", hosts=frozenset(hosts), priority=priority))
    for slice_object in cluster.list(api.SLICES):
        if any(jobset.owns_slice(slice_object) for jobset in own):
            continue
        hosts = _partition_hosts(slice_object, nodes) - explained
        if hosts:
            explained |= hosts
            holders.append(Holder(what=f"Slice {name_of(slice_object)}", hosts=frozenset(hosts)))
    for pod in cluster.list(api.PODS):
        host, namespace = host_of(pod), pod["metadata"]["namespace"]
        is_own = any(
            labels_of(pod).get(labels.JOBSET_NAME) == j.name and namespace == j.namespace for j in own
        )
        if host in names - explained and not is_own and _holds_chips(pod):
            explained.add(host)
            holders.append(Holder(what=f"Pod {namespace}/{name_of(pod)}", hosts=frozenset({host})))
    return holders


def assigned_hosts(workload: KubernetesObject) -> set[str]:
    """The hosts that Kueue reserved for a Workload, from its topology assignment (v1beta2's compressed form)."""
    hosts: set[str] = set()
    admission = (workload.get("status") or {}).get("admission") or {}
    for assignment in admission.get("podSetAssignments") or []:
        topology = assignment.get("topologyAssignment") or {}
        if not topology or topology["levels"][-1] != labels.HOSTNAME:
            continue
        for part in topology.get("slices") or []:
            values = part["valuesPerLevel"][-1]
            if "universal" in values:
                hosts.add(values["universal"])
            else:
                individual = values["individual"]
                prefix, suffix = individual.get("prefix") or "", individual.get("suffix") or ""
                hosts |= {f"{prefix}{root}{suffix}" for root in individual["roots"]}
    return hosts


def _partition_hosts(slice_object: KubernetesObject, nodes: Iterable[KubernetesObject]) -> set[str]:
    shape = str(slice_object["spec"].get("topology"))
    key = labels.partition_id(shape if shape in tpu.SUB_SLICE_SHAPES else tpu.CUBE)
    ids = set(slice_object["spec"].get("partitionIds") or [])
    return {name_of(node) for node in nodes if labels_of(node).get(key) in ids}


def _holds_chips(pod: KubernetesObject) -> bool:
    if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
        return False
    containers = (pod.get("spec") or {}).get("containers") or []
    return any(labels.TPU_RESOURCE in ((c.get("resources") or {}).get("limits") or {}) for c in containers)
