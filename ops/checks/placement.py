"""Where the pods of a JobSet of slices ran, judged against the Slices that it was given.

Owns the proof that a workload had its own slices and nothing else: pure functions over what was read, each
answering the list of what is wrong. A host belongs to a Slice when its partition label says so
(`spec.partitionIds`) and when the add-on's labels say so: both must agree. Refuses to ask the cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from facts import labels
from ops.checks.kubernetes_api import KubernetesObject
from ops.checks.slice_jobset import SliceJobSet

USABLE = {"ACTIVE", "ACTIVE_DEGRADED"}


def name_of(thing: KubernetesObject) -> str:
    """The name of any object."""
    return str(thing["metadata"]["name"])


def labels_of(thing: KubernetesObject) -> Mapping[str, str]:
    """The labels of any object, none included."""
    found: Mapping[str, str] = thing["metadata"].get("labels") or {}
    return found


def condition(thing: KubernetesObject, kind: str) -> Mapping[str, str]:
    """The condition of that type, empty where there is none."""
    for entry in (thing.get("status") or {}).get("conditions") or []:
        if entry.get("type") == kind:
            found: Mapping[str, str] = entry
            return found
    return {}


def is_true(thing: KubernetesObject, kind: str) -> bool:
    """True where the condition of that type says so."""
    return condition(thing, kind).get("status") == "True"


def slice_state(slice_object: KubernetesObject) -> str:
    """The reason of its Ready condition, which is how GKE names a Slice's state."""
    state = condition(slice_object, "Ready").get("reason") or "CREATED"
    is_deleted = bool(slice_object["metadata"].get("deletionTimestamp"))
    return "DEACTIVATING" if is_deleted and state in USABLE else state


def is_active(slice_object: KubernetesObject) -> bool:
    """True for a Slice that pods can use now."""
    return is_true(slice_object, "Ready") and slice_state(slice_object) in USABLE


def slices_in_words(slices: Iterable[KubernetesObject]) -> str:
    """`4 ACTIVE, 2 ACTIVATING`."""
    states = Counter(slice_state(slice_object) for slice_object in slices)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"


def live_pods(pods: Iterable[KubernetesObject]) -> list[KubernetesObject]:
    """Without those that are on their way out."""
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def running_pods(pods: Iterable[KubernetesObject]) -> list[KubernetesObject]:
    """The seed counts the phase Running."""
    return [pod for pod in live_pods(pods) if (pod.get("status") or {}).get("phase") == "Running"]


def host_of(pod: KubernetesObject) -> str:
    """The host that the pod is bound to, empty before."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def hosts_of_slice(
    slice_object: KubernetesObject, jobset: SliceJobSet, nodes: Iterable[KubernetesObject]
) -> set[str]:
    """The hosts whose partition label is among the ids that the Slice lists."""
    key = labels.partition_id(jobset.topology.partition_level)
    ids = set(slice_object["spec"].get("partitionIds") or [])
    return {name_of(node) for node in nodes if labels_of(node).get(key) in ids}


def judge_slices(jobset: SliceJobSet, slices: Sequence[KubernetesObject]) -> list[str]:
    """Every slice that the JobSet asks for is there, of its shape, and ACTIVE."""
    misses = []
    if len(slices) != jobset.slice_count:
        misses.append(f"{len(slices)} Slices instead of {jobset.slice_count}")
    for slice_object in slices:
        name, spec = name_of(slice_object), slice_object["spec"]
        if not is_active(slice_object):
            message = condition(slice_object, "Ready").get("message", "")
            misses.append(
                f"Slice {name} is {slice_state(slice_object)}" + (f" ({message})" if message else "")
            )
        if spec.get("topology") != jobset.topology.shape:
            misses.append(f"Slice {name} is a {spec.get('topology')}, not a {jobset.topology.shape}")
        ids = spec.get("partitionIds") or []
        if len(ids) != jobset.topology.partition_count or len(set(ids)) != len(ids):
            misses.append(
                f"Slice {name} lists {len(ids)} partitions instead of {jobset.topology.partition_count}"
            )
    return misses


def judge_hosts(
    jobset: SliceJobSet, slices: Sequence[KubernetesObject], nodes: Sequence[KubernetesObject]
) -> list[str]:
    """Each Slice has its hosts for itself, in one block, and the add-on's labels agree with its partitions."""
    misses = []
    taken: dict[str, str] = {}
    by_name = {name_of(node): node for node in nodes}
    for slice_object in slices:
        name = name_of(slice_object)
        hosts = hosts_of_slice(slice_object, jobset, nodes)
        if len(hosts) != jobset.topology.host_count:
            misses.append(
                f"the partitions of Slice {name} have {len(hosts)} hosts, not {jobset.topology.host_count}"
            )
        blocks = {labels_of(by_name[host]).get(labels.TOPOLOGY_BLOCK, "") for host in hosts}
        if len(blocks) > 1:
            misses.append(f"Slice {name} spans the blocks {', '.join(sorted(blocks))}: it must lie in one")
        for host in sorted(hosts):
            if host in taken:
                misses.append(f"host {host} is in two Slices, {taken[host]} and {name}")
            taken[host] = name
            misses += _wrong_labels(by_name[host], name, jobset.topology.shape)
        labelled = {name_of(node) for node in nodes if labels_of(node).get(labels.TPU_SLICE) == name}
        misses += [
            f"host {host} carries {labels.TPU_SLICE}={name}, yet is in none of its partitions"
            for host in sorted(labelled - hosts)
        ]
    return misses


def _wrong_labels(node: KubernetesObject, slice_name: str, shape: str) -> list[str]:
    wanted = {labels.TPU_SLICE: slice_name, labels.TPU_TOPOLOGY: shape}
    return [
        f"host {name_of(node)} is in a partition of Slice {slice_name}, "
        f"yet its label {key} is {labels_of(node).get(key) or 'absent'} instead of {value}"
        for key, value in wanted.items()
        if labels_of(node).get(key) != value
    ]


def judge_pods(
    jobset: SliceJobSet,
    pods: Sequence[KubernetesObject],
    slices: Sequence[KubernetesObject],
    nodes: Sequence[KubernetesObject],
) -> list[str]:
    """Every pod ran on a host of its own slice: a Job has one Slice for itself, and each host one pod."""
    misses = []
    slice_by_host = {host: name_of(s) for s in slices for host in hosts_of_slice(s, jobset, nodes)}
    label_by_host = {name_of(node): labels_of(node).get(labels.TPU_SLICE, "") for node in nodes}
    slices_by_job: defaultdict[str, set[str]] = defaultdict(set)
    pods_by_job: Counter[str] = Counter()
    pod_by_host: dict[str, str] = {}
    for pod in pods:
        name, host, job = name_of(pod), host_of(pod), labels_of(pod).get(labels.JOBSET_JOB_INDEX, "?")
        pods_by_job[job] += 1
        if not host:
            misses.append(f"pod {name} has no host")
            continue
        if host not in slice_by_host:
            other = label_by_host.get(host)
            of = f"a host of Slice {other}" if other else "a host of no Slice"
            misses.append(f"pod {name} ran on {host}, {of}: none of the JobSet's own")
        else:
            slices_by_job[job].add(slice_by_host[host])
        if host in pod_by_host:
            misses.append(f"pods {pod_by_host[host]} and {name} share the host {host}")
        pod_by_host[host] = name
    jobs_by_slice: defaultdict[str, list[str]] = defaultdict(list)
    for job, used in sorted(slices_by_job.items()):
        if len(used) > 1:
            misses.append(f"the pods of Job {job} are spread over the Slices {', '.join(sorted(used))}")
        for slice_name in used:
            jobs_by_slice[slice_name].append(job)
    misses += [
        f"Slice {slice_name} holds pods of the Jobs {', '.join(jobs)}: each must have one of its own"
        for slice_name, jobs in sorted(jobs_by_slice.items())
        if len(jobs) > 1
    ]
    if len(pods_by_job) != jobset.slice_count:
        misses.append(f"pods of {len(pods_by_job)} Jobs instead of {jobset.slice_count}")
    misses += [
        f"Job {job} has {count} pods instead of {jobset.pods_per_slice}"
        for job, count in sorted(pods_by_job.items())
        if count != jobset.pods_per_slice
    ]
    return misses


def strays(
    jobset: SliceJobSet,
    pods: Sequence[KubernetesObject],
    slices: Sequence[KubernetesObject],
    nodes: Sequence[KubernetesObject],
) -> dict[str, str]:
    """While it forms: pods, by uid, that already sit on a host of no Slice of theirs."""
    inside = {host for s in slices for host in hosts_of_slice(s, jobset, nodes)}
    return {
        str(
            pod["metadata"].get("uid")
        ): f"pod {name_of(pod)} was put on {host_of(pod)}, outside of its Slices"
        for pod in live_pods(pods)
        if host_of(pod) and host_of(pod) not in inside
    }
