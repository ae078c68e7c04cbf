"""Events about Workloads, as client-go's recorder writes them: beside the work, the same text again as a count.

An event that cannot be written is logged and forgotten: it never holds up the work.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

import urllib3

from simulator.reconcile import Api, ApiException
from simulator.slice_controller.states import LONGEST_EVENT, truncated

log = logging.getLogger(__name__)

COMPONENT = "slice-workload-controller"
_REMEMBERED = 1024
_LONGEST_QUEUE = 1000

Event = tuple[dict[str, Any], str, str, str]


class Recorder:
    """Writes core/v1 events into the namespace of the object they are about; start() opens the queue's other end."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._waiting: queue.Queue[Event | None] = queue.Queue(_LONGEST_QUEUE)
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._seen: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()

    def start(self) -> None:
        self._thread.start()

    def stop(self, deadline_seconds: float = 2.0) -> None:
        """Write what waits, within the deadline."""
        self._put(None)
        if self._thread.is_alive():
            self._thread.join(deadline_seconds)

    def normal(self, workload: dict[str, Any], reason: str, message: str) -> None:
        self._put((workload, "Normal", reason, message))

    def warning(self, workload: dict[str, Any], reason: str, message: str) -> None:
        self._put((workload, "Warning", reason, message))

    def write_waiting(self) -> None:
        """Write what waits now, on the caller's thread."""
        while not self._waiting.empty():
            event = self._waiting.get()
            if event is not None:
                self._record(*event)

    def _put(self, event: Event | None) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            log.info("more than %d events wait, one is dropped", _LONGEST_QUEUE)

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._record(*event)

    def _record(self, workload: dict[str, Any], kind: str, reason: str, message: str) -> None:
        metadata = workload["metadata"]
        message = truncated(message, LONGEST_EVENT)
        collection = f"/api/v1/namespaces/{metadata['namespace']}/events"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        identity = (metadata["uid"], kind, reason, message)
        name, count = self._seen.get(identity, ("", 0))
        try:
            if name and self._count(f"{collection}/{name}", count + 1, now):
                self._remember(identity, name, count + 1)
                return
            name = f"{metadata['name']}.{secrets.token_hex(8)}"
            self._api.create(
                collection,
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": name, "namespace": metadata["namespace"]},
                    "involvedObject": {
                        "apiVersion": workload["apiVersion"],
                        "kind": workload["kind"],
                        "namespace": metadata["namespace"],
                        "name": metadata["name"],
                        "uid": metadata["uid"],
                        "resourceVersion": metadata["resourceVersion"],
                    },
                    "type": kind,
                    "reason": reason,
                    "message": message,
                    "source": {"component": COMPONENT},
                    "reportingComponent": COMPONENT,
                    "firstTimestamp": now,
                    "lastTimestamp": now,
                    "count": 1,
                },
            )
            self._remember(identity, name, 1)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            log.info(
                "event %s on %s/%s not written: %s",
                reason,
                metadata["namespace"],
                metadata["name"],
                error,
            )

    def _count(self, path: str, count: int, now: str) -> bool:
        try:
            self._api.merge_patch(path, {"count": count, "lastTimestamp": now})
        except ApiException as error:
            if error.status == 404:  # events live for an hour
                return False
            raise
        return True

    def _remember(self, identity: tuple[str, ...], name: str, count: int) -> None:
        self._seen[identity] = (name, count)
        self._seen.move_to_end(identity)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
