"""What a stack's settings say must be true of its cluster.

Owns the numbers that verify expects, all computed from settings and facts, and which of the seed's steps a stack
of this shape can hold at all. Refuses a namespace that has no queue.
"""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from facts import tpu
from ops.checks import platform
from ops.checks.outcome import Finding, Status
from ops.checks.slice_jobset import SliceJobSet
from settings import Settings

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests" / "verify"
SUB_SLICING = "kueue-jobset-simple-subslicing"
SUPER_SLICING = "kueue-jobset-simple-superslicing"
STEPS = {SUB_SLICING: "8", SUPER_SLICING: "9"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that verify will look at."""

    run: str
    namespace: str
    local_queue: str
    cluster_queue: str
    priorities: dict[str, int]
    host_count_by_accelerator: dict[str, int]
    controllers: tuple[platform.Controller, ...]
    jobsets: tuple[SliceJobSet, ...]
    """In the seed's order; the super-slice comes while the sub-slices run."""
    not_applicable: tuple[Finding, ...]

    @property
    def has_queues(self) -> bool:
        return any(controller is platform.KUEUE for controller in self.controllers)


def run_name() -> str:
    """Host, process and time: enough to tell whether the run that made something still lives."""
    return f"{socket.gethostname()}/{os.getpid()}/{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def run_is_dead(run: str) -> bool:
    """True when that run was on this machine and its process is gone."""
    host, _, rest = run.partition("/")
    process = rest.partition("/")[0]
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def plan_for(
    settings: Settings, *, namespace: str | None, run: str, steps: Collection[str] = STEPS.values()
) -> Plan:
    """The plan of a stack; `namespace` picks one of its local queues, else the first is used.

    Of the workloads only those of `steps` are in it.
    """
    queue = _local_queue(settings, namespace)
    jobsets, not_applicable = [], []
    for name, step in STEPS.items():
        if step not in steps:
            continue
        jobset = SliceJobSet.from_file(
            MANIFESTS / f"{name}.yaml", namespace=queue[0], local_queue=queue[1], run=run
        )
        reason = _why_it_cannot_fit(jobset, settings)
        if reason is None:
            jobsets.append(jobset)
        else:
            not_applicable.append(
                Finding(
                    step=step,
                    check=f"{name}: {jobset.wanted}",
                    status=Status.NOT_APPLICABLE,
                    reasons=(reason,),
                )
            )
    host_count: dict[str, int] = defaultdict(int)
    for machine_type, count in [
        *((pool.machine_type, pool.host_count) for pool in settings.slice_pools),
        *((pool.machine_type, pool.host_count) for pool in settings.multihost_pools),
    ]:
        host_count[tpu.MACHINES[machine_type].accelerator] += count
    slicing = (platform.SLICE_CONTROLLER, platform.JOBSET, platform.KUEUE)
    return Plan(
        run=run,
        namespace=queue[0],
        local_queue=queue[1],
        cluster_queue=settings.queues.cluster_queue,
        priorities=dict(settings.queues.priority_classes),
        host_count_by_accelerator=dict(host_count),
        controllers=(*(slicing if settings.slice_pools else ()), platform.LWS),
        jobsets=tuple(jobsets),
        not_applicable=tuple(not_applicable),
    )


def _local_queue(settings: Settings, namespace: str | None) -> tuple[str, str]:
    queues = settings.queues.local_queues
    for queue in queues:
        if namespace in (None, queue.namespace):
            return queue.namespace, queue.name
    known = ", ".join(queue.namespace for queue in queues)
    raise ValueError(
        f"`--namespace` must be one that has a LocalQueue (got {namespace}): Kueue manages no other. Use {known}, "
        "or add one to `queues.localQueues`."
    )


def _why_it_cannot_fit(jobset: SliceJobSet, settings: Settings) -> str | None:
    """None when the pools of some one block hold it beside the stack's own serving, all hosts healthy."""
    if not settings.slice_pools:
        return "the stack has no slicePools: static pools form no dynamic slices"
    host_count: dict[tuple[str | None, str, str | None], int] = defaultdict(int)
    for pool in settings.slice_pools:
        reservation = pool.reservation
        host_count[reservation.project, reservation.name, reservation.block] += pool.host_count
    shape, largest = jobset.topology, max(host_count.values())
    if not shape.is_sub_slice and largest < shape.host_count:
        return (
            f"{shape.shape} joins {shape.cube_count} cubes of one block, and the largest block of the stack's "
            f"slicePools has {largest // tpu.HOSTS_PER_CUBE}"
        )
    serving = _serving_host_count(
        settings, at_least=settings.queues.priority_classes.get(jobset.priority_class, 0)
    )
    free = sum(host_count.values()) - serving
    if free < jobset.pod_count:
        return (
            f"{jobset.wanted} need {jobset.pod_count} hosts, and the stack has {free + serving}, of which its own "
            f"pdServing holds {serving} at a priority that is no lower"
        )
    return None


def _serving_host_count(settings: Settings, *, at_least: int) -> int:
    """Hosts that the stack's own serving holds and that a workload of that priority cannot take."""
    if settings.pd_serving is None:
        return 0
    roles = (settings.pd_serving.prefill, settings.pd_serving.decode)
    priorities = settings.queues.priority_classes
    return sum(role.host_count for role in roles if priorities.get(role.priority, 0) >= at_least)
