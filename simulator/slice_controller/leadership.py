"""Leader election by a Lease, so that an old pod and its successor never both reconcile.

Same Lease and rules as client-go's: a holder is believed for the lease's duration after the last change that we saw
ourselves, so clocks need not agree. Webhooks need no leader. Unlike the real controller, it gives the Lease back when
it stops, so that its successor need not wait.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import urllib3

from simulator.reconcile import Api, ApiException
from simulator.slice_controller.timing import Timing

log = logging.getLogger(__name__)

LEASE = "a17d1262.my.domain"


class Leadership:
    """Calls `lead` once when this process becomes the leader and `lost` if it then cannot stay it."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        identity: str,
        timing: Timing,
        lead: Callable[[], None],
        lost: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._identity, self._timing, self._clock = api, identity, timing, clock
        self._lead, self._lost = lead, lost
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)
        self._leading = False
        self._seen: tuple[Any, Any] = (None, None)
        self._seen_at = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)
        if self._leading:
            try:
                lease = self._api.get(f"{self._collection}/{LEASE}")
                if (lease["spec"] or {}).get("holderIdentity") == self._identity:
                    self._write(lease, {"holderIdentity": "", "leaseDurationSeconds": 1})
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                log.info("lease not given back: %s", error)

    def _run(self) -> None:
        renewed_at = self._clock()
        while not self._stopping.is_set():
            try:
                held = self.acquire_or_renew()
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                log.info("lease %s: %s", LEASE, error)
                held = False
            if held:
                renewed_at = self._clock()
                if not self._leading:
                    log.info("became leader as %s", self._identity)
                    self._leading = True
                    self._lead()
            elif self._leading and self._clock() - renewed_at >= self._timing.lease_renew_deadline:
                log.error("leader election lost")
                self._leading = False
                self._lost()
                return
            self._stopping.wait(self._timing.lease_retry)

    def acquire_or_renew(self) -> bool:
        """One attempt; False while somebody else's lease still runs or another was quicker."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(int(self._timing.lease_duration), 1),
            "renewTime": now,
        }
        try:
            lease = self._api.get(f"{self._collection}/{LEASE}")
        except ApiException as error:
            if error.status != 404:
                raise
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": LEASE},
                "spec": spec | {"acquireTime": now, "leaseTransitions": 0},
            }
            self._api.create(self._collection, lease)
            return True
        before = lease.get("spec") or {}
        holder = before.get("holderIdentity")
        if (holder, before.get("renewTime")) != self._seen:
            self._seen = (holder, before.get("renewTime"))
            self._seen_at = self._clock()
        if holder == self._identity:
            self._write(lease, before | spec)
            return True
        duration = before.get("leaseDurationSeconds") or 0
        if holder and self._clock() < self._seen_at + duration:
            return False
        transitions = (before.get("leaseTransitions") or 0) + 1
        try:
            self._write(lease, spec | {"acquireTime": now, "leaseTransitions": transitions})
        except ApiException as error:
            if error.status == 409:
                return False
            raise
        return True

    def _write(self, lease: dict[str, Any], spec: dict[str, Any]) -> None:
        self._api.replace(f"{self._collection}/{LEASE}", lease | {"spec": spec})
