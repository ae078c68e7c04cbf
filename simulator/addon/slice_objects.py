"""Between Slice objects and the state machine: reading them, and the Ready condition that a move writes. Pure.

`Memory` knows the exact moment of each move that this process made, because a condition's time has whole seconds
and stands still while Ready stays False. After a restart the objects alone must do: then a delay counts from the
condition's or the deletion's time, and a Slice past its checks is taken to have started to form.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from facts import labels
from simulator.addon.hosts import seconds_of
from simulator.addon.lifecycle import USABLE, Move, Reason, Slice

Object = dict[str, Any]

READY = "Ready"
_UNFORMED = frozenset({None, Reason.NOT_CREATED, Reason.CREATION_FAILED})


@dataclass(frozen=True, kw_only=True)
class _Stay:
    reason: Reason | None
    since: float
    formed: bool


class Memory:
    """Since when each Slice object is in its state, and whether it ever started to form."""

    def __init__(self) -> None:
        self._stays: dict[str, _Stay] = {}

    def moved(self, uid: str, reason: Reason, now: float) -> None:
        """Remember a move of ours."""
        before = self._stays.get(uid)
        if before is not None and before.reason is reason:
            return
        formed = (before is not None and before.formed) or reason is Reason.ACTIVATING
        self._stays[uid] = _Stay(reason=reason, since=now, formed=formed)

    def keep_only(self, uids: set[str]) -> None:
        for uid in self._stays.keys() - uids:
            del self._stays[uid]

    def stay(self, obj: Object, reason: Reason | None) -> _Stay:
        uid = obj["metadata"]["uid"]
        known = self._stays.get(uid)
        if known is None or known.reason is not reason:
            ready = _ready(obj)
            since = seconds_of(ready.get("lastTransitionTime") if ready else None)
            if reason is Reason.DEACTIVATING:
                since = max(since, seconds_of(obj["metadata"].get("deletionTimestamp")))
            known = self._stays[uid] = _Stay(reason=reason, since=since, formed=reason not in _UNFORMED)
        return known


def _ready(obj: Object) -> Object | None:
    conditions: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == READY), None)


def read(obj: Object, memory: Memory) -> Slice:
    """The Slice that the object is. A reason that is not ours (someone edited the status) counts as none."""
    metadata, spec = obj["metadata"], obj["spec"]
    ready = _ready(obj) or {}
    reason = Reason(ready["reason"]) if ready.get("reason") in set(Reason) else None
    stay = memory.stay(obj, reason)
    return Slice(
        name=metadata["name"],
        topology=spec["topology"],
        partition_ids=tuple(spec["partitionIds"]),
        created_at=seconds_of(metadata.get("creationTimestamp")),
        is_deleting="deletionTimestamp" in metadata,
        has_finalizer=labels.SLICE_FINALIZER in metadata.get("finalizers", ()),
        retries=metadata.get("annotations", {}).get(labels.SLICE_RETRY_ON_FAILURE) == "true",
        reason=reason,
        message=ready.get("message", ""),
        since=stay.since,
        formed=stay.formed,
    )


def conditions_after(obj: Object, move: Move, now: float) -> list[Object]:
    """The object's conditions with the move made: the transition time moves only when Ready flips."""
    before = _ready(obj)
    status = "True" if move.reason in USABLE else "False"
    if before is not None and before["status"] == status:
        since = before["lastTransitionTime"]
    else:
        since = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": READY,
        "status": status,
        "reason": str(move.reason),
        "message": move.message,
        "lastTransitionTime": since,
    }
    conditions: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return [*(each for each in conditions if each["type"] != READY), ready]


def finalizers_with(obj: Object) -> list[str]:
    """The object's finalizers and ours."""
    return [*obj["metadata"].get("finalizers", ()), labels.SLICE_FINALIZER]


def finalizers_without(obj: Object) -> list[str]:
    """The object's finalizers but ours."""
    return [each for each in obj["metadata"].get("finalizers", ()) if each != labels.SLICE_FINALIZER]
