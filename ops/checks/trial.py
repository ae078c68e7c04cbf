"""One JobSet of slices, tried on the cluster: the seed's step 8 or 9.

Owns the order: submit, wait until every Slice is ACTIVE and every pod Running, judge where the pods are, read
what they counted, and look once more that nothing moved meanwhile. Refuses to call a pod that is Running a proof,
and to judge by one look what may be in motion: a miss must be seen again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ops.checks import kubernetes_api as api
from ops.checks.device_counts import DeviceCounts, counts_in_words, judge_counts, read_counts
from ops.checks.kubernetes_api import ApiRefusal, Cluster
from ops.checks.observation import Observation, observe, reasons, warnings
from ops.checks.outcome import Finding, Status, judged
from ops.checks.placement import (
    host_of,
    is_true,
    judge_hosts,
    judge_pods,
    judge_slices,
    name_of,
    running_pods,
    slices_in_words,
    strays,
)
from ops.checks.removal import Removal
from ops.checks.slice_jobset import RUN_ANNOTATION, SliceJobSet
from ops.checks.waiting import Clock, Look, Progress, Waited, until

LOOKS_BEFORE_A_MISS = 3


@dataclass
class Trial:
    """Tries one JobSet and remembers what it saw on the way."""

    cluster: Cluster
    clock: Clock
    progress: Progress
    jobset: SliceJobSet
    step: str
    timeout_seconds: float
    _last: Observation | None = None
    _suspects: dict[str, str] = field(default_factory=dict)
    _strayed: dict[str, str] = field(default_factory=dict)
    _marks: dict[str, float] = field(default_factory=dict)

    def submit(self, removal: Removal) -> list[Finding]:
        """Creates the JobSet; says nothing when that went well."""
        removal.will_make(self.jobset)

        def look() -> Look:
            current = self.cluster.get(api.JOBSETS, self.jobset.name, self.jobset.namespace)
            if current is None:
                current = self.cluster.create(api.JOBSETS, self.jobset.manifest)
            made_by = (current["metadata"].get("annotations") or {}).get(RUN_ANNOTATION, "a person")
            if made_by != removal.run:
                miss = f"JobSet {self.jobset.name} was made by {made_by} in the meantime"
                return Look(seen="taken", misses=(miss,), hopeless=True)
            return Look(seen=f"submitted, {self.jobset.wanted}", done=True)

        waited = self._until(look)
        if waited.done:
            return []
        return [self._finding("submitted", waited.look.seen, waited.look.misses, waited.seconds)]

    def judge(self, occasion: str = "") -> list[Finding]:
        """Waits for it to run, and judges slices, pods, places and devices."""
        self._suspects, self._strayed, self._marks = {}, {}, {}
        started = self.clock.now()
        waited = self._until(lambda: self._look_for_running(started))
        last = self._last
        if last is None:
            return [self._finding(f"Slices{occasion}", waited.look.seen, waited.look.misses, waited.seconds)]
        findings = self._formed(last, waited, occasion)
        if not waited.done:
            if self._strayed:
                misses = list(self._strayed.values())
                findings.append(self._finding(f"placement{occasion}", "wrong hosts", misses, waited.seconds))
            return findings
        findings.append(self._placed(occasion))
        findings.append(self._counted(self._last or last, occasion))
        return findings

    def was_evicted(self) -> bool:
        """True when the JobSet does not run any more, because Kueue gave its hosts to another."""
        last = observe(self.cluster, self.jobset)
        return any(not is_true(workload, "Admitted") for workload in last.workloads)

    def _look_for_running(self, started: float) -> Look:
        seen = observe(self.cluster, self.jobset)
        self._last = seen
        self._note_strays(seen)
        running = len(running_pods(seen.pods))
        slice_misses = judge_slices(self.jobset, seen.slices)
        passed = self.clock.now() - started
        for mark, reached in (
            ("admitted", any(is_true(workload, "Admitted") for workload in seen.workloads)),
            ("Slices ACTIVE", not slice_misses),
        ):
            if reached:
                self._marks.setdefault(mark, passed)
        ended = seen.jobset is None or is_true(seen.jobset, "Failed") or is_true(seen.jobset, "Completed")
        inactive = any(not w.get("spec", {}).get("active", True) for w in seen.workloads)
        why = reasons(seen)
        text = seen.in_words(self.jobset) + (f" ({why[0]})" if why else "")
        done = running == self.jobset.pod_count and not slice_misses
        return Look(seen=text, done=done, misses=tuple(slice_misses), hopeless=ended or inactive)

    def _note_strays(self, seen: Observation) -> None:
        """A pod outside of its Slices counts once it was there on two looks: Slices go while their pods end."""
        now = strays(self.jobset, seen.pods, seen.slices, seen.nodes)
        self._strayed |= {uid: text for uid, text in now.items() if uid in self._suspects}
        self._suspects = now

    def _formed(self, last: Observation, waited: Waited, occasion: str) -> list[Finding]:
        running = len(running_pods(last.pods))
        marks = ", ".join(f"{mark} after {seconds:.1f} s" for mark, seconds in self._marks.items())
        slice_misses = judge_slices(self.jobset, last.slices)
        pod_misses = []
        if running != self.jobset.pod_count:
            pod_misses.append(
                f"{running} of {self.jobset.pod_count} pods Running after {waited.seconds:.0f} s"
            )
        if not waited.done:
            why = [*reasons(last), *warnings(self.cluster, self.jobset)]
            (slice_misses or pod_misses).extend(w for w in why if w not in slice_misses)
            if waited.look.seen.startswith("the API server"):
                pod_misses.extend(waited.look.misses)
        seen_slices = f"{slices_in_words(last.slices)}, {self.jobset.topology.shape}"
        seen_pods = f"{running} of {self.jobset.pod_count}" + (f" ({marks})" if marks else "")
        return [
            self._finding(
                f"Slices ACTIVE{occasion}", seen_slices, slice_misses, self._marks.get("Slices ACTIVE", 0)
            ),
            self._finding(f"pods Running{occasion}", seen_pods, pod_misses, waited.seconds),
        ]

    def _placed(self, occasion: str) -> Finding:
        started = self.clock.now()
        misses: list[str] = []
        for _ in range(LOOKS_BEFORE_A_MISS):
            waited = self._until(self._look_at_places)
            misses = list(waited.look.misses)
            if not misses:
                break
            self.clock.wait(1.0)
        last = self._last
        hosts = {host_of(pod) for pod in last.pods} if last else set()
        misses = [*self._strayed.values(), *misses]
        seen = f"{len(hosts)} hosts, each in its pod's own slice" if not misses else f"{len(hosts)} hosts"
        return self._finding(f"placement{occasion}", seen, misses, self.clock.now() - started)

    def _look_at_places(self) -> Look:
        seen = observe(self.cluster, self.jobset)
        self._last = seen
        misses = [
            *judge_slices(self.jobset, seen.slices),
            *judge_hosts(self.jobset, seen.slices, seen.nodes),
            *judge_pods(self.jobset, running_pods(seen.pods), seen.slices, seen.nodes),
        ]
        return Look(seen="looks where the pods are", done=True, misses=tuple(misses))

    def _counted(self, before: Observation, occasion: str) -> Finding:
        """Reads every pod's log, then looks again: the counts prove nothing if pods or Slices changed under them."""
        counts: dict[str, DeviceCounts | None] = dict.fromkeys(map(name_of, running_pods(before.pods)))
        ends: dict[str, str] = {}

        def look() -> Look:
            for pod in [pod for pod, count in counts.items() if count is None]:
                try:
                    log = self.cluster.log(self.jobset.namespace, pod, self.jobset.container)
                    counts[pod], ends[pod] = read_counts(log), (log.strip().splitlines() or ["nothing"])[-1]
                except ApiRefusal as refusal:
                    ends[pod] = str(refusal)
            found = sum(count is not None for count in counts.values())
            return Look(
                seen=f"{found} of {len(counts)} pods printed their device counts", done=found == len(counts)
            )

        waited = self._until(look)
        after = observe(self.cluster, self.jobset)
        silent = [pod for pod, count in counts.items() if count is None]
        misses = [f"the log of {pod} ends: {ends.get(pod, 'unread')[:200]}" for pod in silent[:1]]
        misses += judge_counts(self.jobset, counts)
        misses += _changes(before, after)
        return self._finding(
            f"devices{occasion}", counts_in_words(self.jobset, list(counts.values())), misses, waited.seconds
        )

    def _until(self, look: Callable[[], Look]) -> Waited:
        return until(
            look,
            about=self.jobset.name,
            timeout_seconds=self.timeout_seconds,
            clock=self.clock,
            progress=self.progress,
        )

    def _finding(self, what: str, seen: str, misses: Sequence[str], seconds: float) -> Finding:
        return judged(self.step, f"{self.jobset.name}: {what}", seen=seen, misses=misses, seconds=seconds)

    def not_run(self, reason: str) -> Finding:
        """A row for a JobSet that was not submitted."""
        return Finding(
            step=self.step,
            check=f"{self.jobset.name}: {self.jobset.wanted}",
            status=Status.NOT_RUN,
            reasons=(reason,),
        )


def _changes(before: Observation, after: Observation) -> list[str]:
    """What moved between two looks at a JobSet that should stand still."""

    def places(seen: Observation) -> dict[str, str]:
        return {
            str(pod["metadata"].get("uid")): f"{name_of(pod)} on {host_of(pod)}"
            for pod in running_pods(seen.pods)
        }

    def slices(seen: Observation) -> dict[str, str]:
        return {str(s["metadata"].get("uid")): f"Slice {name_of(s)}" for s in seen.slices}

    misses = []
    for then, now in ((places(before), places(after)), (slices(before), slices(after))):
        misses += [f"{then[uid]} went while the counts were read" for uid in then if uid not in now]
        misses += [f"{now[uid]} came while the counts were read" for uid in now if uid not in then]
    return misses
