"""The whole of verify on one cluster: platform, workloads, removal, and the verdict.

Owns the order and what stops what: a missing controller or queue stops the workloads, a missing host does not
stop what still fits. Whatever happens, also Ctrl-C or a fault of our own, what was made is removed. Refuses to
preempt other people's workloads unless told to, and to touch a JobSet that it did not make.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from facts import labels
from ops.checks import kubernetes_api as api
from ops.checks import platform
from ops.checks.capacity import Room, read_room
from ops.checks.interruption import Abandoned, Interrupted, Interruption
from ops.checks.kubernetes_api import ApiRefusal, Cluster
from ops.checks.outcome import Finding, Status, judged
from ops.checks.plan import STEPS, Plan, run_is_dead
from ops.checks.removal import Leftover, Removal
from ops.checks.slice_jobset import RUN_ANNOTATION, SliceJobSet
from ops.checks.trial import Trial
from ops.checks.waiting import Clock, Progress, until

PLATFORM_PATIENCE_SECONDS = 60.0
"""Labels, rollouts and conditions may lag; a platform that is up needs none of it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the person decides."""

    timeout_seconds: float = 600.0
    """Of each wait; the seed's own limit for pods."""
    removal_timeout_seconds: float = 300.0
    may_preempt: bool = False


@dataclass
class Verification:
    """One run."""

    cluster: Cluster
    plan: Plan
    options: Options
    clock: Clock
    progress: Progress
    findings: list[Finding] = field(default_factory=list)
    left: list[Leftover] = field(default_factory=list)
    abandoned: bool = False

    def __post_init__(self) -> None:
        self._removal = self._removal_of(self.plan.run)

    def run(self, interruption: Interruption) -> None:
        """Fills `findings`; leaves nothing behind, or says in `left` what."""
        try:
            try:
                try:
                    self._check()
                finally:
                    interruption.removing()
            except Interrupted:
                self.progress.say("interrupted")
            except ApiRefusal as refusal:
                self.findings.append(
                    judged("", "the API server answers", seen="refused", misses=[str(refusal)])
                )
            finally:
                self._remove_everything()
        except Abandoned:
            self.abandoned = True
            self.left = self._look_for_leftovers()

    def exit_code(self, interruption: Interruption) -> int:
        """0 proven, 1 a miss, 3 nothing missed but something not tried, 128 + n for signal n."""
        if interruption.exit_code is not None:
            return interruption.exit_code
        if any(finding.status is Status.MISS for finding in self.findings):
            return 1
        return 0 if all(finding.proven for finding in self.findings) else 3

    def _check(self) -> None:
        prerequisites_hold = self._check_platform()
        self.findings += self.plan.not_applicable
        trials = [self._trial(jobset) for jobset in self.plan.jobsets]
        ran: list[Trial] = []
        for trial in trials:
            if not prerequisites_hold:
                self.findings.append(trial.not_run("the platform is not ready for it, see steps 6 and 7"))
                continue
            why_not = self._why_not_to_try(trial.jobset)
            if why_not:
                self.findings.append(trial.not_run(why_not))
                continue
            refused = trial.submit(self._removal)
            self.findings += refused
            if not refused:
                self.findings += trial.judge()
                ran.append(trial)
        self._check_return(ran)

    def _check_platform(self) -> bool:
        plan = self.plan
        checks = platform.host_checks(self.cluster, plan.host_count_by_accelerator)
        checks += [platform.controller_check(self.cluster, controller) for controller in plan.controllers]
        if plan.has_queues:
            checks += platform.queue_checks(
                self.cluster,
                cluster_queue=plan.cluster_queue,
                local_queue=plan.local_queue,
                namespace=plan.namespace,
                priority_classes=list(plan.priorities),
            )
        first_of_platform = len(self.findings)
        for check in checks:
            waited = until(
                check.look,
                about=check.name,
                timeout_seconds=min(PLATFORM_PATIENCE_SECONDS, self.options.timeout_seconds),
                clock=self.clock,
                progress=self.progress,
            )
            look = waited.look
            self.findings.append(
                judged(check.step, check.name, seen=look.seen, misses=look.misses, seconds=waited.seconds)
            )
        return all(f.proven or f.step == "5" for f in self.findings[first_of_platform:])

    def _check_return(self, ran: list[Trial]) -> None:
        """What the last one pushed out comes back when it goes: nothing is lost."""
        if len(ran) < 2:
            return
        *earlier, last = ran
        evicted = [trial for trial in earlier if trial.was_evicted()]
        if not evicted:
            return
        waited = self._removal.remove(last.jobset)
        if not waited.done:
            self.findings.append(
                judged(
                    last.step,
                    f"{last.jobset.name}: removed",
                    seen=waited.look.seen,
                    misses=waited.look.misses,
                )
            )
            return
        for trial in evicted:
            self.findings += trial.judge(" again, after it gave way")

    def _why_not_to_try(self, jobset: SliceJobSet) -> str | None:
        """None when the JobSet may be submitted; else what stands in its way."""
        priority = self.plan.priorities.get(jobset.priority_class)
        if priority is None:
            return f"`queues.priorityClasses` of the stack has no {jobset.priority_class}, which the seed's JobSet names"
        try:
            return self._why_name_is_taken(jobset) or self._why_there_is_no_room(jobset, priority)
        except ApiRefusal as refusal:
            return f"what holds the hosts could not be read: {refusal}"

    def _why_name_is_taken(self, jobset: SliceJobSet) -> str | None:
        existing = self.cluster.get(api.JOBSETS, jobset.name, jobset.namespace)
        if existing is None:
            return None
        made_by = (existing["metadata"].get("annotations") or {}).get(RUN_ANNOTATION)
        if made_by and run_is_dead(made_by):
            self.progress.say(
                f"{jobset.name} was left by a verify that is gone ({made_by}): it is removed first"
            )
            removal = self._removal_of(made_by)
            waited = removal.remove(jobset)
            return (
                None
                if waited.done
                else "what a killed verify left does not go: " + "; ".join(waited.look.misses)
            )
        who = f"the verify {made_by}" if made_by else "somebody"
        return (
            f"a JobSet of this name is there already, made by {who}. If nobody needs it: "
            f"kubectl delete jobset -n {jobset.namespace} {jobset.name}"
        )

    def _why_there_is_no_room(self, jobset: SliceJobSet, priority: int) -> str | None:
        room = read_room(
            self.cluster,
            jobset,
            priority=priority,
            cluster_queue=self.plan.cluster_queue,
            own=self._removal.made,
        )
        return why_no_room(jobset, room, may_preempt=self.options.may_preempt)

    def _remove_everything(self) -> None:
        if not self._removal.made:
            return
        started = self.clock.now()
        misses: list[str] = []
        for jobset in reversed(self._removal.made):
            waited = self._removal.remove(jobset)
            misses += waited.look.misses
        self.left = self._look_for_leftovers() if misses else []
        self.findings.append(
            judged(
                "",
                "nothing left behind",
                seen="JobSets, pods, Workloads, Slices and host labels are gone"
                if not misses
                else "not everything",
                misses=misses,
                seconds=self.clock.now() - started,
            )
        )

    def _look_for_leftovers(self) -> list[Leftover]:
        left: list[Leftover] = []
        for jobset in self._removal.made:
            try:
                left += self._removal.leftovers(jobset)
            except ApiRefusal as refusal:
                command = f"kubectl delete jobset -n {jobset.namespace} {jobset.name} --ignore-not-found"
                left.append(
                    Leftover(f"JobSet {jobset.namespace}/{jobset.name} (perhaps: {refusal})", command)
                )
        return left

    def _removal_of(self, run: str) -> Removal:
        return Removal(
            cluster=self.cluster,
            clock=self.clock,
            progress=self.progress,
            run=run,
            timeout_seconds=self.options.removal_timeout_seconds,
        )

    def _trial(self, jobset: SliceJobSet) -> Trial:
        return Trial(
            cluster=self.cluster,
            clock=self.clock,
            progress=self.progress,
            jobset=jobset,
            step=STEPS[jobset.name],
            timeout_seconds=self.options.timeout_seconds,
        )


def why_no_room(jobset: SliceJobSet, room: Room, *, may_preempt: bool) -> str | None:
    """None when there is room, or may be made; else who has it."""
    shape = jobset.topology.shape
    if room.on_healthy_hosts < room.wanted:
        level = labels.partition_state(jobset.topology.partition_level)
        return (
            f"{room.wanted} x {shape} need whole, healthy partitions, and the hosts form only "
            f"{room.on_healthy_hosts}: see `kubectl get nodes -L {level}`"
        )
    if room.is_free:
        return None
    if room.after_preemption < room.wanted:
        return f"no room for {room.wanted} x {shape}, held by " + ", ".join(h.in_words() for h in room.others)
    if may_preempt:
        return None
    return (
        f"it would preempt {', '.join(h.in_words() for h in room.victims)}: verify does not do that to others "
        "unless told so with --preempt"
    )
