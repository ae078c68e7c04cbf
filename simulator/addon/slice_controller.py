"""The loop around the state machine: reads informers, asks `lifecycle` what to do, and writes it.

One pass looks at everything, because holding hosts is decided between Slices; its writes go out side by side. Nothing
is remembered but when each state began (`slice_objects.Memory`), so a restart goes on where the objects stand.
(Not to be confused with the user-space slice controller, which makes Slices out of Kueue's Workloads.)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from simulator.addon import slice_objects
from simulator.addon.hosts import Host, Partitions, host_of
from simulator.addon.knobs import KnobsFile
from simulator.addon.lifecycle import Move, Slice, node_labels, plan
from simulator.addon.pool_files import PoolFiles
from simulator.addon.registration import SLICES_PATH
from simulator.reconcile import Api, ApiException, Controller, Informer, Object

log = logging.getLogger(__name__)

NODES_PATH = "/api/v1/nodes"
_PASS = "pass"  # noqa: S105
_WRITERS = 8
_CONFLICT_SECONDS = 0.1


class NodeController:
    """The node half: late partition ids, as the device plugin sets them, on every cluster."""

    def __init__(self, api: Api, nodes: Informer, pools: PoolFiles) -> None:
        self._nodes, self._pools = nodes, pools
        self._writes = _Writes(api)
        self.controller = Controller("late-labels", self._reconcile)
        self.controller.watch(nodes, lambda obj: [obj["metadata"]["name"]] if host_of(obj) else [])

    def look(self) -> None:
        """Something outside the cluster changed."""
        for node in self._nodes.list():
            if host_of(node) is not None:
                self.controller.queue.add(node["metadata"]["name"])

    def _reconcile(self, name: str) -> float | None:
        node = self._nodes.get(name)
        host = host_of(node) if node else None
        if host is None:
            return None
        now = time.time()
        found, due = self._pools.late_labels(host, now)
        if found:
            log.info("%s: the device plugin found its partition ids", name)
            self._writes.run([lambda: self._writes.label(self._nodes, name, dict(found))])
        return None if due is None else due - now


class SliceController:
    """Slices and the labels of their hosts, on clusters that have the slice controller."""

    def __init__(
        self, api: Api, nodes: Informer, slices: Informer, knobs: KnobsFile, time_scale: float
    ) -> None:
        self._nodes, self._slices = nodes, slices
        self._knobs = knobs
        self._time_scale = time_scale
        self._writes = _Writes(api)
        self._memory = slice_objects.Memory()
        self.is_on = True
        """Assumed: switched off in a cluster that had it, the add-on leaves Slices and labels as they are."""
        self.controller = Controller("slices", self._pass)
        self.controller.watch(nodes, lambda obj: [_PASS] if host_of(obj) else [])
        self.controller.watch(slices, lambda _obj: [_PASS])

    def look(self) -> None:
        """Something outside the cluster changed."""
        self.controller.queue.add(_PASS)

    def _pass(self, _key: str) -> float | None:
        if not self.is_on:
            return None
        now = time.time()
        knobs = self._knobs.knobs
        hosts = [host for host in map(host_of, self._nodes.list()) if host is not None]
        partitions = Partitions(hosts, knobs)
        objects = {obj["metadata"]["name"]: obj for obj in self._slices.list()}
        self._memory.keep_only({obj["metadata"]["uid"] for obj in objects.values()})
        slices = [slice_objects.read(obj, self._memory) for obj in objects.values()]
        decided = plan(slices, partitions, knobs, now, self._time_scale)
        changes, label_due = node_labels(slices, decided.holders, partitions, knobs, now)
        writes: list[Callable[[], None]] = [
            *(self._finalizers(objects[name], add=True) for name in decided.add_finalizers),
            *(self._finalizers(objects[name], add=False) for name in decided.drop_finalizers),
            *(self._move(objects[move.slice], move, now) for move in decided.moves),
            *(
                (lambda name=name, change=change: self._writes.label(self._nodes, name, change))
                for name, change in changes.items()
            ),
        ]
        self._say(slices, decided.moves)
        if not self._writes.run(writes):
            return _CONFLICT_SECONDS
        if writes:
            return 0.0
        dues = [due for due in (decided.next_look, label_due) if due is not None]
        return max(min(dues) - time.time(), 0.0) if dues else None

    def _move(self, obj: Object, move: Move, now: float) -> Callable[[], None]:
        def write() -> None:
            body = {
                "metadata": {"uid": obj["metadata"]["uid"]},
                "status": {"conditions": slice_objects.conditions_after(obj, move, now)},
            }
            self._slices.wrote(self._writes.api.merge_patch(f"{SLICES_PATH}/{move.slice}/status", body))
            self._memory.moved(obj["metadata"]["uid"], move.reason, now)

        return write

    def _finalizers(self, obj: Object, *, add: bool) -> Callable[[], None]:
        change = slice_objects.finalizers_with if add else slice_objects.finalizers_without

        def write() -> None:
            metadata = obj["metadata"]
            body = {
                "metadata": {
                    "uid": metadata["uid"],
                    "resourceVersion": metadata["resourceVersion"],
                    "finalizers": change(obj),
                }
            }
            answer = self._writes.api.merge_patch(f"{SLICES_PATH}/{metadata['name']}", body)
            if add:  # what loses its last finalizer is gone, and its answer would bring it back
                self._slices.wrote(answer)

        return write

    @staticmethod
    def _say(slices: list[Slice], moves: list[Move]) -> None:
        before = {each.name: each.reason for each in slices}
        for move in moves:
            log.info("slice %s: %s -> %s %s", move.slice, before[move.slice], move.reason, move.message)


class _Writes:
    """Writes side by side. What has changed or gone under our hands is for the next pass, not an error."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._pool = ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="write")

    def run(self, writes: list[Callable[[], None]]) -> bool:
        """Make them all; False when one met a newer object. Any other error is raised after the last one."""
        clean = True
        errors: list[Exception] = []
        for future in [self._pool.submit(write) for write in writes]:
            try:
                future.result()
            except ApiException as error:
                if error.status in {404, 409}:
                    clean = False
                else:
                    errors.append(error)
            except Exception as error:  # noqa: BLE001
                errors.append(error)
        if errors:
            raise errors[0]
        return clean

    def label(self, nodes: Informer, name: str, change: dict[str, str | None]) -> None:
        nodes.wrote(self.api.merge_patch(f"{NODES_PATH}/{name}", {"metadata": {"labels": change}}))


__all__ = ["NODES_PATH", "Host", "NodeController", "SliceController"]
