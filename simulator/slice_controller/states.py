"""How the controller sees a Slice, and what it therefore says on the Workload's admission check. Pure.

The order of the tests and every text are the contract. It never writes Rejected, which would switch a Workload off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from facts import labels
from simulator.slice_controller import templates, workloads

JsonObject = dict[str, Any]

LONGEST_MESSAGE = 32 * 1024
LONGEST_EVENT = 1024

FAILURE_CONDITION = "TPUSliceFailure"


class SliceState(StrEnum):
    """In the order in which messages count them."""

    CREATED = "CREATED"
    ACTIVATING = "ACTIVATING"
    ACTIVE = "ACTIVE"
    ACTIVE_DEGRADED = "ACTIVE_DEGRADED"
    FAILED = "FAILED"
    DELETED = "DELETED"
    STALE = "STALE"


class Failure(StrEnum):
    """Reasons of the condition TPUSliceFailure."""

    DELETION = "Deletion"
    CONFIGURATION = "ConfigurationFailure"
    RUNTIME = "RuntimeFailure"
    FORMATION_TIMEOUT = "FormationTimeout"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Gates and flags that decide over states."""

    activation_timeout_seconds: float
    retry_delay_seconds: int
    retry_on_failure: bool = False
    fail_on_untolerated_degraded: bool = False
    topology_from_selectors: bool = True


def parse_time(text: str) -> datetime:
    """A time as the API server writes it."""
    return datetime.fromisoformat(text)


def state_of(a_slice: JsonObject, now: datetime, policy: Policy) -> SliceState:
    """The first state that applies. A change of reason alone does not move lastTransitionTime: the clock runs on."""
    metadata = a_slice["metadata"]
    ready = workloads.condition(a_slice, "Ready") or {}
    status, reason = ready.get("status"), ready.get("reason")
    failures = {"FAILED"} if policy.retry_on_failure else {"FAILED", "SliceCreationFailed"}
    if metadata.get("deletionTimestamp"):
        return SliceState.DELETED
    if ready and status != "True" and reason in failures:
        return SliceState.FAILED
    since = ready.get("lastTransitionTime") if status == "False" else None
    if not ready:
        since = metadata.get("creationTimestamp")
    if since and (now - parse_time(since)).total_seconds() >= policy.activation_timeout_seconds:
        return SliceState.STALE
    if status == "True" and reason == "ACTIVE":
        return SliceState.ACTIVE
    if status == "True" and reason == "ACTIVE_DEGRADED":
        return SliceState.ACTIVE_DEGRADED
    return SliceState.ACTIVATING if ready else SliceState.CREATED


@dataclass
class Grouped:
    """A Workload's Slices by state."""

    by_state: dict[SliceState, list[JsonObject]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, found: Iterable[JsonObject], now: datetime, policy: Policy) -> Grouped:
        grouped = cls()
        for item in found:
            grouped.by_state[state_of(item, now, policy)].append(item)
        return grouped

    def _join(self, *states: SliceState) -> list[JsonObject]:
        return [item for state in states for item in self.by_state.get(state, ())]

    @property
    def all(self) -> list[JsonObject]:
        return self._join(*SliceState)

    @property
    def deleted(self) -> list[JsonObject]:
        return self._join(SliceState.DELETED)

    @property
    def broken(self) -> list[JsonObject]:
        return self._join(SliceState.FAILED, SliceState.STALE)

    @property
    def initializing(self) -> list[JsonObject]:
        return self._join(SliceState.CREATED, SliceState.ACTIVATING)

    @property
    def active(self) -> list[JsonObject]:
        return self._join(SliceState.ACTIVE, SliceState.ACTIVE_DEGRADED)

    @property
    def alive(self) -> list[JsonObject]:
        """Those that nobody has deleted yet."""
        return [*self.active, *self.initializing, *self.broken]


@dataclass(frozen=True)
class Verdict:
    """The admission check as it shall be, and why it failed if it did."""

    check: JsonObject
    failure: Failure | None = None


def judge(
    workload: JsonObject, check: JsonObject, grouped: Grouped, desired_count: int, policy: Policy
) -> Verdict:
    """The check's next state. Once it is Retry, only Kueue's reset to Pending brings it back."""
    if check.get("state") == "Retry":
        return Verdict(check)
    untolerated = _untolerated(workload, grouped, policy)
    failed_count = len(grouped.by_state[SliceState.FAILED]) + len(untolerated)
    stale = grouped.by_state[SliceState.STALE]
    changed = dict(check)
    failure = None
    if desired_count == len(grouped.active) - len(untolerated):
        changed["state"] = "Ready"
        changed["podSetUpdates"] = podset_updates(workload, policy)
    elif failed_count > 0:
        changed |= {"state": "Retry", "requeueAfterSeconds": policy.retry_delay_seconds}
        failure = Failure.RUNTIME
    elif policy.retry_on_failure and stale:
        changed |= {"state": "Retry", "requeueAfterSeconds": policy.retry_delay_seconds}
        failure = Failure.FORMATION_TIMEOUT
    else:
        changed["state"] = "Pending"
    changed["message"] = message(grouped, untolerated, policy)
    return Verdict(changed, failure)


def evicted(check: JsonObject, failure: Failure, text: str, policy: Policy) -> Verdict:
    """Ask Kueue to take the Workload off its hosts and to try again later."""
    changed = check | {
        "state": "Retry",
        "requeueAfterSeconds": policy.retry_delay_seconds,
        "message": truncated(text, LONGEST_MESSAGE),
    }
    return Verdict(changed, failure)


def podset_updates(workload: JsonObject, policy: Policy) -> list[JsonObject]:
    """Kueue merges these into the pods, which then land only on hosts that GKE has labelled for a slice."""
    updates = []
    for podset in workloads.podsets(workload):
        topology = templates.topology(
            podset.get("template") or {}, from_selectors=policy.topology_from_selectors
        )
        if topology:
            updates.append({"name": podset["name"], "nodeSelector": {labels.TPU_TOPOLOGY: topology}})
    return updates


def message(grouped: Grouped, untolerated: list[JsonObject], policy: Policy) -> str:
    """Counts by state and, once something failed, what the Slices say themselves."""
    counts = [f"{len(found)} {state}" for state in SliceState if (found := grouped.by_state.get(state))]
    text = f"Slices are in states: {', '.join(counts)}" if counts else "Waiting for Slices to be created"
    failed = grouped.by_state[SliceState.FAILED]
    stale = grouped.by_state[SliceState.STALE] if policy.retry_on_failure else []
    errors = [f"{_name(item)}: {_ready_message(item)}" for item in failed]
    errors += [f"{_name(item)}: {_ready_message(item)} (degraded)" for item in untolerated]
    errors += [
        f"{_name(item)}: {said} (stale)" if (said := _ready_message(item)) else f"{_name(item)}: stale"
        for item in stale
    ]
    if errors:
        text += f". Errors: {'; '.join(errors)}"
    return truncated(text, LONGEST_MESSAGE)


def truncated(text: str, limit: int) -> str:
    """The text within so many bytes, as the controller cuts it."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - len(" ...")].decode(errors="ignore") + " ..."


def _untolerated(workload: JsonObject, grouped: Grouped, policy: Policy) -> list[JsonObject]:
    if not policy.fail_on_untolerated_degraded:
        return []
    strict = {
        str(podset.get("name"))
        for podset in workloads.podsets(workload)
        if templates.accepts_only_healthy(podset.get("template") or {})
    }

    def refuses(a_slice: JsonObject) -> bool:
        podset = (a_slice["metadata"].get("annotations") or {}).get(labels.SLICE_OWNER_PODSET)
        return podset in strict if podset else bool(strict)

    return [item for item in grouped.by_state[SliceState.ACTIVE_DEGRADED] if refuses(item)]


def _name(a_slice: JsonObject) -> str:
    return str(a_slice["metadata"]["name"])


def _ready_message(a_slice: JsonObject) -> str:
    return str((workloads.condition(a_slice, "Ready") or {}).get("message") or "")
