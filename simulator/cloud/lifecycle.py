"""The flow of every create, update, delete and read, whatever the resource type.

An operation is a task of its own that nobody's going away can stop: as in Google's cloud, an accepted request runs on
when its client dies, and an interrupted one goes on when this process comes back (`resume`). Each step is in the
inventory before the next begins.

Whose name is it? A name is taken from the moment a create is accepted: a second create gets Google's 409. One case is
kinder than Google: a create whose client never got its answer (engine killed, this process killed, time-out), or got
it so lately that it may not have been written down, tried again by the same stack with the same inputs, goes on with
what it began. Google's own retry rule is that (`requestId`
in the Compute API), but the real provider sends no such id and gets the 409; so this is `assumed`, and the knob
`retriedCreates: conflict` gives the 409.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import OperationFailed, Refusal
from simulator.cloud.faults import refusal
from simulator.cloud.inventory import Record, Switch
from simulator.cloud.kinds.base import Kind, Place
from simulator.cloud.operations import OperationKind
from simulator.cloud.region_file import Fault

log = logging.getLogger(__name__)

ANSWER_MAY_BE_LOST_SECONDS = 60.0
"""An engine killed right after an answer has not saved it; Google keeps a `requestId` for sixty minutes."""


@dataclass
class HalfMade(Exception):
    """The resource exists and is not well: the engine is to keep it, with the reason."""

    record: Record
    reason: str


@dataclass
class Interrupted(Exception):
    """The engine asked to stop waiting; the operation goes on without it."""

    record: Record


class Lifecycle:
    """Runs the operations of one region."""

    def __init__(self, cloud: Cloud, kinds: Mapping[str, Kind]) -> None:
        self._cloud = cloud
        self._kinds = kinds
        self._running: dict[str, asyncio.Task[None]] = {}

    def resume(self) -> None:
        """Go on with what the last life of this process left half done."""
        for record in list(self._cloud.inventory.resources.values()):
            kind = self._kinds[record.type]
            if record.state == "CREATING":
                self._start(record, self._provision(kind, record))
            elif record.state == "UPDATING":
                self._start(record, self._apply_update(kind, record, record.inputs))
            elif record.state == "DELETING":
                self._start(record, self._release(kind, record))

    async def settle(self) -> None:
        """Wait until no operation runs."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def create(
        self, kind: Kind, place: Place, inputs: dict[str, Any], urn: str, stop: asyncio.Event
    ) -> Record:
        """Make a resource; returns when it is ready."""
        fault = self._fault("create", kind, place.id)
        record = self._cloud.inventory.get(place.id)
        if record is not None and kind.is_switch:
            await self._join(record)
            record = None
        if record is None:
            record = self._accept(kind, place, inputs, urn)
        elif not self._is_own_retry(record, kind, inputs, urn):
            raise kind.refuse_conflict(place)
        else:
            log.info("%s is tried again: going on with what was begun", place.id)
            if record.state != "READY" and record.id not in self._running:
                record.state = "CREATING"
                self._start(record, self._provision(kind, record))
        await self._wait(kind, record, fault, stop)
        record.answered_at = time.time()
        self._cloud.inventory.save()
        return record

    async def update(self, kind: Kind, record: Record, inputs: dict[str, Any], stop: asyncio.Event) -> Record:
        """Change a resource; returns when the change is done."""
        await self._join(record)
        fault = self._fault("update", kind, record.id)
        kind.refuse_update(self._cloud, record, inputs)
        old_inputs, record.inputs = record.inputs, inputs
        self._cloud.inventory.put(record)
        if record.state == "ERROR":
            # GKE keeps trying to get the machines of a pool that it could not fill.
            record.state = "CREATING"
            self._start(record, self._provision(kind, record))
        else:
            record.state = "UPDATING"
            self._start(record, self._apply_update(kind, record, old_inputs))
        self._cloud.inventory.save()
        await self._wait(kind, record, fault, stop)
        return record

    async def delete(self, kind: Kind, record: Record, stop: asyncio.Event) -> None:
        """Remove a resource; returns when it is gone."""
        fault = None
        if record.state != "DELETING":
            await self._join(record)
            if self.find(record.id, kind) is None:
                return
            fault = self._fault("delete", kind, record.id)
            kind.refuse_delete(self._cloud, record)
            record.state = "DELETING"
            self._cloud.inventory.put(record)
        if record.id not in self._running:
            self._start(record, self._release(kind, record))
        await self._wait(kind, record, fault, stop)

    async def read(self, resource_id: str, kind: Kind) -> Record | None:
        """The resource as it is, after any operation on it has ended; None when it is gone."""
        record = self.find(resource_id, kind)
        if record is not None:
            await self._join(record)
        return self.find(resource_id, kind)

    def find(self, resource_id: str, kind: Kind) -> Record | None:
        """The resource as it is at this moment."""
        record = self._cloud.inventory.get(resource_id, kind.token)
        switch = self._cloud.inventory.switches.get(resource_id)
        if record is None and switch is not None and kind.is_switch:
            return Record(switch.id, switch.type, "", switch.inputs, state="READY", answered_at=switch.since)
        return record

    def _accept(self, kind: Kind, place: Place, inputs: dict[str, Any], urn: str) -> Record:
        cloud = self._cloud
        if place.project:
            cloud.require_api(place.project, kind.api)
        computed = kind.admit(cloud, place, inputs)
        record = Record(id=place.id, type=kind.token, urn=urn, inputs=inputs, computed=computed)
        cloud.inventory.put(record)
        self._start(record, self._provision(kind, record))
        return record

    def _is_own_retry(self, record: Record, kind: Kind, inputs: Mapping[str, Any], urn: str) -> bool:
        return (
            self._cloud.region.knobs.retried_creates == "adopt"
            and not self._is_settled(record)
            and record.state in ("CREATING", "READY", "ERROR")
            and (record.type, record.urn) == (kind.token, urn)
            and record.inputs == inputs
        )

    def _is_settled(self, record: Record) -> bool:
        return (
            record.answered_at is not None and time.time() - record.answered_at > ANSWER_MAY_BE_LOST_SECONDS
        )

    def _fault(self, operation: OperationKind, kind: Kind, resource_id: str) -> Fault | None:
        """The fault that strikes; one that strikes at once is raised here."""
        fault = self._cloud.faults.take(operation, kind.token, resource_id)
        if fault is None or fault.fails_with == "timeout":
            return fault
        if fault.fails_with == "stockout" and operation == "create" and kind.keeps_failed:
            return fault
        raise refusal(fault, resource_id)

    async def _wait(self, kind: Kind, record: Record, fault: Fault | None, stop: asyncio.Event) -> None:
        """Wait for the record's operation as the real provider does."""
        task = self._running.get(record.id)
        if fault is not None and fault.fails_with == "stockout" and task is not None:
            task.cancel()
            record.state, record.error = "ERROR", str(refusal(fault, record.id))
            self._cloud.inventory.save()
            raise HalfMade(record, record.error)
        if fault is not None:
            failure = refusal(fault, record.id)
            raise HalfMade(record, str(failure)) if kind.keeps_failed else failure
        if task is not None:
            stopped = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
            if not task.done():
                raise Interrupted(record)
            error = None if task.cancelled() else task.exception()
            if error is not None and record.state != "ERROR":
                raise error
        if record.state == "ERROR":
            raise HalfMade(record, record.error or "it is in state ERROR")

    async def _join(self, record: Record) -> None:
        task = self._running.get(record.id)
        if task is not None:
            await asyncio.wait({task})

    def _start(self, record: Record, operation: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(operation, name=f"{record.state} {record.id}")
        self._running[record.id] = task
        task.add_done_callback(lambda done: self._ended(record, done))

    def _ended(self, record: Record, task: asyncio.Task[None]) -> None:
        if self._running.get(record.id) is task:
            del self._running[record.id]
        if task.cancelled():
            return
        if task.exception() is not None:
            log.warning("%s: %s", task.get_name(), task.exception())
        else:
            log.info("%s: done", task.get_name())

    async def _provision(self, kind: Kind, record: Record) -> None:
        await self._cloud.clock.operation(kind.token, "create")
        try:
            await kind.provision(self._cloud, record)
        except OperationFailed as error:
            if not error.leaves_resource:
                self._cloud.inventory.remove(record)
                raise
            record.state, record.error = "ERROR", str(error)
        except Refusal:
            self._cloud.inventory.remove(record)
            raise
        else:
            record.state, record.error = "READY", None
        self._keep(kind, record)

    def _keep(self, kind: Kind, record: Record) -> None:
        """What was made stays a record; what was set becomes a switch."""
        if kind.is_switch:
            before = self._cloud.inventory.switches.get(record.id)
            is_same = before is not None and before.inputs == record.inputs
            since = before.since if before is not None and is_same else time.time()
            self._cloud.inventory.switches[record.id] = Switch(record.id, kind.token, record.inputs, since)
            self._cloud.inventory.resources.pop(record.id, None)
        self._cloud.inventory.save()

    async def _apply_update(self, kind: Kind, record: Record, old_inputs: Mapping[str, Any]) -> None:
        await self._cloud.clock.operation(kind.token, "update")
        try:
            await kind.apply_update(self._cloud, record, old_inputs)
        except Refusal:
            record.inputs = dict(old_inputs)
            raise
        finally:
            record.state = "READY"
            self._keep(kind, record)

    async def _release(self, kind: Kind, record: Record) -> None:
        await self._cloud.clock.operation(kind.token, "delete")
        await kind.release(self._cloud, record)
        self._cloud.inventory.remove(record)
