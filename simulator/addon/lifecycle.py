"""The life of a Slice, as GKE's add-on leads it: a state machine over Slices, hosts, knobs and the time. Pure.

SliceNotCreated → SliceCreationFailed | FAILED | ACTIVATING → ACTIVE | ACTIVE_DEGRADED | FAILED, and on deletion or
a critical failure DEACTIVATING → INCOMPLETE → gone. Each call of `plan` moves each Slice by one state at most, so
that a watcher sees every state in its order. Two Slices never hold one host, whatever their shapes: holding is
judged by host, and of two that ask in the same moment the older one gets it.

Sources: GKE's guide to dynamic slicing with a custom scheduler, its Slice reference, its troubleshooting guide (seen
2026-12-01). Messages are illustrative there; nothing may parse them. Marked "assumed" is what no source says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from facts import labels, tpu
from simulator.addon.hosts import Host, Partition, Partitions
from simulator.addon.knobs import DELETION_SECONDS, FORMATION_SECONDS, Knobs, SliceKnobs


class Reason(StrEnum):
    """The reason of a Slice's Ready condition, which is its state."""

    NOT_CREATED = "SliceNotCreated"
    CREATION_FAILED = "SliceCreationFailed"
    ACTIVATING = "ACTIVATING"
    ACTIVE = "ACTIVE"
    ACTIVE_DEGRADED = "ACTIVE_DEGRADED"
    FAILED = "FAILED"
    DEACTIVATING = "DEACTIVATING"
    INCOMPLETE = "INCOMPLETE"


USABLE = frozenset({Reason.ACTIVE, Reason.ACTIVE_DEGRADED})
_FORMING = USABLE | {Reason.ACTIVATING}


@dataclass(frozen=True, kw_only=True)
class Slice:
    """What the add-on knows of one Slice object."""

    name: str
    topology: str
    partition_ids: tuple[str, ...]
    created_at: float = 0.0
    is_deleting: bool = False
    has_finalizer: bool = False
    retries: bool = False
    reason: Reason | None = None
    message: str = ""
    since: float = 0.0
    """When it came into its state. (The condition's own time moves only when Ready flips.)"""
    formed: bool = False
    """Whether it ever started to form, and so holds hosts and has something to dismantle."""

    @property
    def is_holding(self) -> bool:
        """Assumed: a Slice keeps its hosts from the moment it starts to form until its object is gone."""
        return self.formed or self.reason in _FORMING


@dataclass(frozen=True, kw_only=True)
class Move:
    """The Slice's next state."""

    slice: str
    reason: Reason
    message: str = ""


@dataclass(kw_only=True)
class Plan:
    """What to write now, and when to look again if nothing changes before."""

    add_finalizers: list[str] = field(default_factory=list)
    drop_finalizers: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    holders: dict[str, str] = field(default_factory=dict)
    """Host to the Slice that holds it, after the moves."""
    next_look: float | None = None

    def look_at(self, when: float) -> None:
        self.next_look = when if self.next_look is None else min(self.next_look, when)


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why a Slice cannot form."""

    reason: Reason
    message: str


def plan(
    slices: Iterable[Slice], partitions: Partitions, knobs: Knobs, now: float, time_scale: float = 1.0
) -> Plan:
    """The next step of every Slice."""
    ordered = sorted(slices, key=lambda each: (each.created_at, each.name))
    result = Plan()
    for each in ordered:
        if each.is_holding:
            for host in _hosts(each, partitions):
                result.holders.setdefault(host.name, each.name)
    for each in ordered:
        _Step(each, partitions, knobs.for_slice(each.name), now, time_scale, result).take()
    return result


def node_labels(
    slices: Iterable[Slice], holders: Mapping[str, str], partitions: Partitions, knobs: Knobs, now: float
) -> tuple[dict[str, dict[str, str | None]], float | None]:
    """Per host, the labels that must change (None removes one), and when the next late label is due.

    Only the hosts of a usable Slice carry its labels: they go when it is dismantled or has failed, or the next job
    would see the slice of the last one.
    """
    usable = {each.name: each for each in slices if each.reason in USABLE and not each.is_deleting}
    due: float | None = None
    changes: dict[str, dict[str, str | None]] = {}
    for host in partitions.hosts:
        holder = usable.get(holders.get(host.name, ""))
        if holder is not None:
            ripe = holder.since + knobs.for_slice(holder.name).label_delay_seconds
            if ripe > now:
                due = ripe if due is None else min(due, ripe)
                holder = None
        wanted: dict[str, str | None] = {
            labels.TPU_SLICE: (knobs.slice_label(host.name) or holder.name) if holder else None,
            labels.TPU_TOPOLOGY: holder.topology if holder else None,
            **{labels.partition_state(level): state for level, state in partitions.states_of(host).items()},
        }
        change = {key: value for key, value in wanted.items() if host.labels.get(key) != value}
        if change:
            changes[host.name] = change
    return changes, due


def _level(topology: str) -> str:
    return topology if topology in tpu.SUB_SLICE_SHAPES else tpu.CUBE


def _partitions(each: Slice, partitions: Partitions) -> list[Partition]:
    level = _level(each.topology)
    found = (partitions.get(level, partition_id) for partition_id in dict.fromkeys(each.partition_ids))
    return [partition for partition in found if partition is not None]


def _hosts(each: Slice, partitions: Partitions) -> list[Host]:
    return [host for partition in _partitions(each, partitions) for host in partition.hosts]


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def prerequisites(each: Slice, partitions: Partitions, holders: Mapping[str, str]) -> Trouble | None:
    """Why the Slice cannot start to form, or None."""

    def failed(text: str) -> Trouble:
        return Trouble(reason=Reason.CREATION_FAILED, message=f"Prerequisites validation failed: {text}.")

    try:
        topology = tpu.Topology.parse(each.topology)
    except ValueError as error:
        return failed(f"topology {error}".rstrip("."))
    distinct = list(dict.fromkeys(each.partition_ids))
    if len(distinct) != topology.partition_count or len(distinct) != len(each.partition_ids):
        return failed("partition count does not match topology dimensions")
    found = _partitions(each, partitions)
    absent = set(distinct) - {partition.id for partition in found}
    if absent:
        return failed(f"no node carries {labels.partition_id(topology.partition_level)} {_some(absent)}")
    for partition in found:
        if not partition.is_complete:
            return failed(f"not all nodes of partition {partition.id} are provisioned")
    unready = [host.name for partition in found for host in partition.hosts if not host.is_ready]
    if unready:
        return failed(f"nodes are not ready: {_some(unready)}")
    for partition in found:
        if not partition.is_usable:
            return failed(f"partition {partition.id} is {partition.state}")
    taken = {
        f"{host.name} (by {holders[host.name]})"
        for partition in found
        for host in partition.hosts
        if host.name in holders
    }
    if taken:
        return failed(f"nodes are used by another slice: {_some(taken)}")
    hosts = _hosts(each, partitions)
    for what, values in (
        ("reservation", {host.reservation for host in hosts}),
        ("reservation block", {host.block for host in hosts}),
    ):
        if len(values) > 1:
            return Trouble(
                reason=Reason.FAILED, message=f"Nodes are not in the same {what}: {_some(values)}."
            )
    return None


class _Step:
    """One Slice's next step, written into the plan."""

    def __init__(
        self,
        each: Slice,
        partitions: Partitions,
        knobs: SliceKnobs,
        now: float,
        time_scale: float,
        result: Plan,
    ) -> None:
        self.slice, self.partitions, self.knobs, self.now, self.plan = each, partitions, knobs, now, result
        formation, deletion = knobs.formation_seconds, knobs.deletion_seconds
        self.formation_seconds = FORMATION_SECONDS / time_scale if formation is None else formation
        self.deletion_seconds = DELETION_SECONDS / time_scale if deletion is None else deletion

    def take(self) -> None:
        each = self.slice
        if each.is_deleting:
            if each.has_finalizer:  # else ours was taken away by hand, and the object with it
                self._dismantle()
            return
        if not each.has_finalizer:
            self.plan.add_finalizers.append(each.name)
            return
        match each.reason:
            case None:
                self._move(Reason.NOT_CREATED)
            case Reason.NOT_CREATED:
                self._check()
            case Reason.CREATION_FAILED:
                if each.retries:
                    self._check()
            case Reason.ACTIVATING:
                self._form()
            case Reason.ACTIVE | Reason.ACTIVE_DEGRADED:
                self._watch()
            case Reason.FAILED:
                if each.is_holding and self._is_lost():
                    self._move(Reason.DEACTIVATING, "Nodes of the slice are gone.")
            case Reason.DEACTIVATING | Reason.INCOMPLETE:
                self._dismantle()

    def _move(self, reason: Reason, message: str = "") -> None:
        if (reason, message) != (self.slice.reason, self.slice.message):
            self.plan.moves.append(Move(slice=self.slice.name, reason=reason, message=message))

    def _is_over(self, seconds: float) -> bool:
        """Whether the state has lasted that long; if not, look again when it has."""
        end = self.slice.since + seconds
        if self.now >= end:
            return True
        self.plan.look_at(end)
        return False

    def _check(self) -> None:
        trouble = prerequisites(self.slice, self.partitions, self.plan.holders)
        if trouble is not None:
            self._move(trouble.reason, trouble.message)
            return
        for host in _hosts(self.slice, self.partitions):
            self.plan.holders[host.name] = self.slice.name
        self._move(Reason.ACTIVATING)

    def _form(self) -> None:
        if self._is_lost() or self._is_broken():
            self._move(Reason.FAILED, "Slice formation failed: nodes of the slice are gone or not healthy.")
            return
        if self.knobs.outcome == "stalled" or not self._is_over(self.formation_seconds):
            return
        if self.knobs.outcome == "failed":
            self._move(Reason.FAILED, "Slice formation timed out. Insufficient physical nodes provisioned.")
            return
        self._move(Reason.ACTIVE_DEGRADED if self._is_degraded() else Reason.ACTIVE)

    def _watch(self) -> None:
        if self.knobs.outcome == "lost" or self._is_lost():
            self._move(Reason.DEACTIVATING, "Nodes of the slice are gone.")
        elif self.knobs.outcome == "failed" or self._is_broken():
            self._move(Reason.FAILED, "Nodes of the slice are not healthy.")
        else:
            self._move(Reason.ACTIVE_DEGRADED if self._is_degraded() else Reason.ACTIVE)

    def _dismantle(self) -> None:
        each = self.slice
        if each.reason is Reason.INCOMPLETE:
            if each.is_deleting:
                self.plan.drop_finalizers.append(each.name)
            return
        if each.reason is not Reason.DEACTIVATING:
            self._move(Reason.DEACTIVATING, "Dismantling slice resources...")
            return
        # Who never formed has nothing to dismantle. Its labels are off the hosts before the object goes.
        is_over = not each.is_holding or self._is_over(self.deletion_seconds)
        is_labelled = any(
            host.slice_label == each.name and self.plan.holders.get(host.name) == each.name
            for host in self.partitions.hosts
        )
        if is_over and not is_labelled and not self.knobs.deletion_hangs:
            self._move(Reason.INCOMPLETE)

    def _is_lost(self) -> bool:
        found = _partitions(self.slice, self.partitions)
        expected = len(dict.fromkeys(self.slice.partition_ids))
        return len(found) < expected or not all(partition.is_complete for partition in found)

    def _is_broken(self) -> bool:
        found = _partitions(self.slice, self.partitions)
        return any(partition.state == labels.PARTITION_UNHEALTHY for partition in found)

    def _is_degraded(self) -> bool:
        found = _partitions(self.slice, self.partitions)
        return self.knobs.outcome == "degraded" or any(
            partition.state == labels.PARTITION_DEGRADED for partition in found
        )
