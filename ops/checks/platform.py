"""The seed's steps 5 to 7: hosts, controllers, queue objects.

Owns what must be there before a workload is tried. Each check is a look that can be repeated until its short
patience is over, since labels, rollouts and conditions may lag. Refuses to check what the stack does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from facts import labels, tpu
from ops.checks import kubernetes_api as api
from ops.checks.kubernetes_api import Cluster, KubernetesObject, Resource
from ops.checks.placement import condition, is_true, labels_of, name_of
from ops.checks.waiting import Look

TOPOLOGY = "slice-topology"
RESOURCE_FLAVOR = "slice-rf"
ADMISSION_CHECK = "ac"
TOPOLOGY_LEVELS = (
    labels.TOPOLOGY_BLOCK,
    *(labels.partition_id(shape) for shape in tpu.PARTITION_LEVELS),
    labels.HOSTNAME,
)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of the platform."""

    step: str
    name: str
    look: Callable[[], Look]


@dataclass(frozen=True)
class Controller:
    """A Deployment that the stack's workloads need."""

    title: str
    namespace: str
    deployment: str


# The names that the charts give; JobSet's release manifest, which the seed does not use, says …-controller-manager.
JOBSET = Controller("JobSet", "jobset-system", "jobset-controller")
KUEUE = Controller("Kueue", "kueue-system", "kueue-controller-manager")
LWS = Controller("LWS", "lws-system", "lws-controller-manager")
SLICE_CONTROLLER = Controller(
    "slice controller", "slice-controller-system", "slice-controller-controller-manager"
)


def host_checks(cluster: Cluster, host_count_by_accelerator: dict[str, int]) -> list[Check]:
    """Step 5: by the seed's selector, then each accelerator by the label that GKE documents."""
    total = sum(host_count_by_accelerator.values())
    seeds_selector = f"{labels.TPU_PRESENT}={labels.TPU_TAINT_VALUE}"

    def by_seeds_selector() -> Look:
        found = cluster.list(api.NODES, labels=seeds_selector)
        misses = () if len(found) == total else (f"{len(found)} nodes carry {seeds_selector}, not {total}",)
        return Look(seen=f"{len(found)} of {total} nodes", done=not misses, misses=misses)

    checks = [Check(step="5", name=f"hosts labelled {seeds_selector}", look=by_seeds_selector)]
    for accelerator, host_count in host_count_by_accelerator.items():

        def by_accelerator(accelerator: str = accelerator, host_count: int = host_count) -> Look:
            nodes = cluster.list(api.NODES, labels=f"{labels.TPU_ACCELERATOR}={accelerator}")
            return judge_hosts(nodes, accelerator=accelerator, host_count=host_count)

        checks.append(Check(step="5", name=f"{accelerator} hosts", look=by_accelerator))
    return checks


def judge_hosts(nodes: Sequence[KubernetesObject], *, accelerator: str, host_count: int) -> Look:
    """As many as the stack says, each Ready, tainted, with its chips; tpu7x hosts also with their partitions."""
    misses = []
    if len(nodes) != host_count:
        misses.append(f"{len(nodes)} hosts carry {labels.TPU_ACCELERATOR}={accelerator}, not {host_count}")
    ready = 0
    for node in nodes:
        name, wrong = name_of(node), []
        if is_true(node, "Ready"):
            ready += 1
        else:
            wrong.append(
                f"is not Ready ({condition(node, 'Ready').get('message') or 'no word from its kubelet'})"
            )
        chips = ((node.get("status") or {}).get("allocatable") or {}).get(labels.TPU_RESOURCE, "0")
        if str(chips) != str(tpu.CHIPS_PER_HOST):
            wrong.append(
                f"offers {chips} chips, not {tpu.CHIPS_PER_HOST}: its device plugin has not registered them"
            )
        taints = (node.get("spec") or {}).get("taints") or []
        if not any(
            t.get("key") == labels.TPU_TAINT and t.get("effect") == labels.TPU_TAINT_EFFECT for t in taints
        ):
            wrong.append(f"lacks the taint {labels.TPU_TAINT}:{labels.TPU_TAINT_EFFECT}")
        if accelerator == tpu.TPU7X:
            wrong += _partition_misses(node)
        misses += [f"{name} {problem}" for problem in wrong]
    seen = f"{ready} of {host_count} Ready, {ready * tpu.CHIPS_PER_HOST} chips"
    return Look(seen=seen, done=not misses, misses=tuple(misses))


def _partition_misses(node: KubernetesObject) -> list[str]:
    found = labels_of(node)
    absent = [key for key in TOPOLOGY_LEVELS if not found.get(key)]
    if absent:
        return [f"lacks {', '.join(absent)}: Kueue does not see such a host (labels can come late)"]
    return []


def controller_check(cluster: Cluster, controller: Controller) -> Check:
    """Step 6: what `kubectl rollout status` waits for."""

    def look() -> Look:
        deployment = cluster.get(api.DEPLOYMENTS, controller.deployment, controller.namespace)
        return judge_rollout(deployment, controller)

    return Check(step="6", name=f"{controller.title} rolled out", look=look)


def judge_rollout(deployment: KubernetesObject | None, controller: Controller) -> Look:
    """Every replica is of the newest kind and available."""
    where = f"Deployment {controller.namespace}/{controller.deployment}"
    if deployment is None:
        return Look(seen="absent", misses=(f"there is no {where}",))
    wanted = int(deployment["spec"].get("replicas", 1))
    status = deployment.get("status") or {}
    updated, available = int(status.get("updatedReplicas") or 0), int(status.get("availableReplicas") or 0)
    observed = int(status.get("observedGeneration") or 0) >= int(
        deployment["metadata"].get("generation") or 0
    )
    image = deployment["spec"]["template"]["spec"]["containers"][0].get("image", "")
    seen = f"{available} of {wanted} available, {image.rsplit('/', 1)[-1]}"
    if wanted > 0 and observed and updated == wanted == available == int(status.get("replicas") or 0):
        return Look(seen=seen, done=True)
    if wanted == 0:
        return Look(seen=seen, misses=(f"{where} is scaled to zero",))
    progressing = condition(deployment, "Progressing")
    why = progressing.get("message") or condition(deployment, "Available").get("message") or "it rolls out"
    return Look(
        seen=seen,
        misses=(f"{where}: {available} of {wanted} replicas available ({why})",),
        hopeless=progressing.get("reason") == "ProgressDeadlineExceeded",
    )


def queue_checks(
    cluster: Cluster, *, cluster_queue: str, local_queue: str, namespace: str, priority_classes: Sequence[str]
) -> list[Check]:
    """Step 7: the seed's five reads, each also asked whether it works; and the priorities."""

    def one(
        resource: Resource,
        name: str,
        judge: Callable[[KubernetesObject], list[str]],
        where: str | None = None,
    ) -> Check:
        def look() -> Look:
            found = cluster.get(resource, name, where)
            if found is None:
                place = f" in namespace {where}" if where else ""
                return Look(seen="absent", misses=(f"there is no {resource.kind} {name}{place}",))
            misses = judge(found)
            return Look(seen=_state(found), done=not misses, misses=tuple(misses))

        return Check(step="7", name=f"{resource.kind} {name}", look=look)

    def priorities() -> Look:
        absent = [name for name in priority_classes if cluster.get(api.PRIORITY_CLASSES, name) is None]
        misses = tuple(f"there is no WorkloadPriorityClass {name}" for name in absent)
        present = ", ".join(name for name in priority_classes if name not in absent)
        return Look(seen=present or "none", done=not misses, misses=misses)

    return [
        one(api.TOPOLOGIES, TOPOLOGY, _topology_misses),
        one(api.RESOURCE_FLAVORS, RESOURCE_FLAVOR, _flavor_misses),
        one(api.ADMISSION_CHECKS, ADMISSION_CHECK, _admission_check_misses),
        one(api.CLUSTER_QUEUES, cluster_queue, _cluster_queue_misses),
        one(
            api.LOCAL_QUEUES, local_queue, lambda found: _local_queue_misses(found, cluster_queue), namespace
        ),
        Check(step="7", name="WorkloadPriorityClasses", look=priorities),
    ]


def _state(found: KubernetesObject) -> str:
    active = condition(found, "Active")
    return "there" if not active else "Active" if active.get("status") == "True" else "not Active"


def _inactive(found: KubernetesObject, kind: str) -> list[str]:
    if is_true(found, "Active"):
        return []
    why = condition(found, "Active").get("message") or "its controller has not said anything about it yet"
    return [f"{kind} {name_of(found)} is not Active: {why}"]


def _topology_misses(found: KubernetesObject) -> list[str]:
    levels = tuple(level.get("nodeLabel") for level in found["spec"].get("levels") or [])
    if levels == TOPOLOGY_LEVELS:
        return []
    return [f"its levels are {', '.join(map(str, levels))} instead of {', '.join(TOPOLOGY_LEVELS)}"]


def _flavor_misses(found: KubernetesObject) -> list[str]:
    spec = found["spec"]
    misses = []
    if spec.get("topologyName") != TOPOLOGY:
        misses.append(f"its topologyName is {spec.get('topologyName') or 'absent'} instead of {TOPOLOGY}")
    accelerator = (spec.get("nodeLabels") or {}).get(labels.TPU_ACCELERATOR)
    if accelerator != tpu.TPU7X:
        misses.append(f"it takes hosts with {labels.TPU_ACCELERATOR}={accelerator} instead of {tpu.TPU7X}")
    return misses


def _admission_check_misses(found: KubernetesObject) -> list[str]:
    controller = found["spec"].get("controllerName")
    if controller != labels.ADMISSION_CHECK_CONTROLLER:
        return [f"its controller is {controller} instead of {labels.ADMISSION_CHECK_CONTROLLER}"]
    return _inactive(found, "AdmissionCheck")


def _cluster_queue_misses(found: KubernetesObject) -> list[str]:
    strategy = found["spec"].get("admissionChecksStrategy") or {}
    checks = [check.get("name") for check in strategy.get("admissionChecks") or []]
    misses = [] if ADMISSION_CHECK in checks else [f"it does not ask the AdmissionCheck {ADMISSION_CHECK}"]
    return misses + _inactive(found, "ClusterQueue")


def _local_queue_misses(found: KubernetesObject, cluster_queue: str) -> list[str]:
    target = found["spec"].get("clusterQueue")
    misses = [] if target == cluster_queue else [f"it leads to {target} instead of {cluster_queue}"]
    return misses + _inactive(found, "LocalQueue")
