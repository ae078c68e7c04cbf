"""Level-triggered controllers: the small machinery that the simulator's controllers share.

Owns: a de-duplicating keyed queue with delays and per-key backoff (`WorkQueue`) and the worker threads that drain
it (`Controller`), fed by informers (`simulator.kube_api`). A reconcile function gets a key, reads the present state
from informers and writes what is missing; it may be called at any time, for any reason, any number of times.

Refuses: to write anything by itself. No finalizers, annotations, events or leases come from here, so that what
a controller writes can be compared field by field with its contract.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable

import urllib3

from simulator.kube_api import Api, ApiException, Informer, Object, key_of

__all__ = ["Api", "ApiException", "Controller", "Informer", "Object", "WorkQueue", "key_of"]

log = logging.getLogger(__name__)


class WorkQueue:
    """A keyed queue: a key waits in it once, is worked on by one thread at a time, and may be due later."""

    def __init__(
        self,
        *,
        base_seconds: float = 0.05,
        cap_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base, self._cap, self._clock = base_seconds, cap_seconds, clock
        self._changed = threading.Condition()
        self._ready: OrderedDict[Hashable, None] = OrderedDict()
        self._working: set[Hashable] = set()
        self._again: set[Hashable] = set()
        self._due: dict[Hashable, float] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        self._order = itertools.count()
        self._failures: dict[Hashable, int] = {}
        self._closed = False

    def add(self, key: Hashable) -> None:
        """Make the key due now. While it is being worked on, it comes again after that."""
        with self._changed:
            self._add(key)

    def add_after(self, key: Hashable, seconds: float) -> None:
        """Make the key due in that time, or earlier if it already is."""
        if seconds <= 0:
            return self.add(key)
        with self._changed:
            due = self._clock() + seconds
            if due < self._due.get(key, float("inf")):
                self._due[key] = due
                heapq.heappush(self._heap, (due, next(self._order), key))
                self._changed.notify()
        return None

    def add_failed(self, key: Hashable) -> float:
        """Make the key due after its backoff, which doubles with each failure; returns the delay."""
        with self._changed:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(self._base * 2 ** min(failures - 1, 30), self._cap)
        self.add_after(key, delay)
        return delay

    def failures(self, key: Hashable) -> int:
        with self._changed:
            return self._failures.get(key, 0)

    def forget(self, key: Hashable) -> None:
        """Start the key's backoff anew."""
        with self._changed:
            self._failures.pop(key, None)

    def take(self, timeout_seconds: float | None = None) -> Hashable | None:
        """The next due key, now being worked on until done(); `None` when closed or out of time."""
        deadline = None if timeout_seconds is None else self._clock() + timeout_seconds
        with self._changed:
            while not self._closed:
                now = self._clock()
                self._ripen(now)
                if self._ready:
                    key, _ = self._ready.popitem(last=False)
                    self._working.add(key)
                    return key
                if deadline is not None and now >= deadline:
                    return None
                ends = [self._heap[0][0]] if self._heap else []
                ends += [deadline] if deadline is not None else []
                self._changed.wait(min(ends) - now if ends else None)
        return None

    def done(self, key: Hashable) -> None:
        with self._changed:
            self._working.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, key: Hashable) -> None:
        self._due.pop(key, None)
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._changed.notify()

    def _ripen(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:  # else a newer entry has replaced this one
                self._add(key)


class Controller:
    """Worker threads that call `reconcile(key)` for each key whose informers saw a change.

    `reconcile` returns the seconds after which it wants to look again, or `None`; what it raises is logged with the
    key and retried after the key's backoff. start() starts the informers given to watch() and stop() ends them, so
    controllers that share an informer are stopped together.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[str], float | None],
        *,
        workers: int = 1,
        queue: WorkQueue | None = None,
    ) -> None:
        self.name = name
        self.queue = queue or WorkQueue()
        self._reconcile = reconcile
        self._workers = workers
        self._informers: list[Informer] = []
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def watch(self, informer: Informer, keys: Callable[[Object], Iterable[str]] | None = None) -> None:
        """Queue `keys(object)` for the old and the new object of each change (default: its own key)."""
        keys_of = keys or (lambda obj: (key_of(obj),))

        def changed(old: Object | None, new: Object | None) -> None:
            found = dict.fromkeys(key for obj in (old, new) if obj is not None for key in keys_of(obj))
            for key in found:
                self.queue.add(key)

        informer.subscribe(changed)
        self._informers.append(informer)

    def start(self) -> None:
        for informer in self._informers:
            informer.start()
        for number in range(self._workers):
            thread = threading.Thread(target=self._work, name=f"{self.name}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def wait_synced(self, timeout_seconds: float) -> bool:
        deadline = time.monotonic() + timeout_seconds
        return all(informer.wait_synced(max(deadline - time.monotonic(), 0)) for informer in self._informers)

    def stop(self, deadline_seconds: float = 5.0) -> bool:
        """End the workers and informers; False when a worker is still busy at the deadline (it is a daemon)."""
        deadline = time.monotonic() + deadline_seconds
        self._stopping.set()
        self.queue.close()
        for informer in self._informers:
            informer.stop()
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        busy = [thread.name for thread in self._threads if thread.is_alive()]
        if busy:
            log.error("%s: still busy after %s s: %s", self.name, deadline_seconds, ", ".join(busy))
        return not busy

    def _work(self) -> None:
        while not all(informer.wait_synced(0.2) for informer in self._informers):
            if self._stopping.is_set():
                return
        while (key := self.queue.take()) is not None:
            try:
                self._reconcile_one(str(key))
            finally:
                self.queue.done(key)

    def _reconcile_one(self, key: str) -> None:
        try:
            after = self._reconcile(key)
        except Exception as error:
            delay = self.queue.add_failed(key)
            if self._stopping.is_set():
                return
            if isinstance(error, ApiException):
                log.warning(
                    "%s %s: HTTP %s %s; again in %.2f s", self.name, key, error.status, error.body, delay
                )
            elif isinstance(error, urllib3.exceptions.HTTPError):
                log.warning(
                    "%s %s: no answer (%s); again in %.2f s", self.name, key, type(error).__name__, delay
                )
            else:
                log.exception("%s %s: failed; again in %.2f s", self.name, key, delay)
            return
        self.queue.forget(key)
        if after is not None:
            self.queue.add_after(key, after)
