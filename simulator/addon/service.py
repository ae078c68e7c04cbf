"""The add-on as one thing to start and stop: its webhooks, its registrations, its controllers.

Owns the order in which they come up, and `addon/status.json` in the cluster's folder, from which others learn that
it serves. It lives through restarts of the API server, and comes back from its own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

from simulator.addon.knobs import KnobsFile
from simulator.addon.pool_files import PoolFiles
from simulator.addon.registration import SLICES_PATH, Registration
from simulator.addon.slice_controller import NODES_PATH, NodeController, SliceController
from simulator.addon.webhook_server import WebhookServer
from simulator.files import read_json, write_json
from simulator.reconcile import Api, Controller, Informer

log = logging.getLogger(__name__)

FOLDER = "addon"
STATUS_FILE = "status.json"
_REGISTER = "registrations"
_REGISTER_SECONDS = 10.0
_LOOK_SECONDS = 0.1


class Addon:
    """GKE's side of dynamic slicing in one cluster.

    `kubeconfig` is an administrator's. `cluster_folder` holds cluster.json (`sliceController`; absent means yes), pools/
    and, if any, the knobs. `time_scale` divides what the cloud takes; infinity is as fast as possible.
    """

    def __init__(self, kubeconfig: str | Path, cluster_folder: Path, *, time_scale: float = 1.0) -> None:
        if time_scale <= 0:
            raise ValueError(
                f"time_scale must be above 0 (got {time_scale}): it divides durations. Use inf for at once."
            )
        self._folder = cluster_folder
        self._status_path = cluster_folder / FOLDER / STATUS_FILE
        self._api = Api.from_kubeconfig(kubeconfig)
        self._webhooks = WebhookServer(cluster_folder / FOLDER)
        self._registration = Registration(self._api, self._webhooks.url, self._webhooks.certificate)
        self._knobs = KnobsFile(cluster_folder)
        self._pools = PoolFiles(cluster_folder)
        nodes = Informer(self._api, NODES_PATH)
        slices = Informer(self._api, SLICES_PATH)
        self._late_labels = NodeController(self._api, nodes, self._pools)
        self._slices = SliceController(self._api, nodes, slices, self._knobs, time_scale)
        self._registrar = Controller("registrations", self._register)
        self._slices_started = False
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._looker = threading.Thread(target=self._look, name="knobs", daemon=True)

    @property
    def has_slice_controller(self) -> bool:
        """Whether the cluster has the add-on switched on."""
        cluster = read_json(self._folder / "cluster.json") or {}
        return bool(cluster.get("sliceController", True))

    def start(self) -> None:
        """Start everything; returns at once. The API server need not be there yet."""
        self._write_status()
        self._knobs.refresh()
        self._pools.refresh()
        self._webhooks.start()
        self._registrar.start()
        self._registrar.queue.add(_REGISTER)
        self._late_labels.controller.start()
        self._looker.start()

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Whether all is installed and every object has been seen, in time."""
        return self._ready.wait(timeout_seconds)

    def stop(self, deadline_seconds: float = 5.0) -> None:
        """Stop everything. What it installed stays, as the cluster's folder does."""
        deadline = time.monotonic() + deadline_seconds
        self._stopping.set()
        self._ready.clear()
        for controller in (self._registrar, self._slices.controller, self._late_labels.controller):
            controller.stop(max(deadline - time.monotonic(), 0.1))
        if self._looker.is_alive():
            self._looker.join(max(deadline - time.monotonic(), 0.1))
        self._webhooks.stop()
        self._write_status()

    def _register(self, _key: str) -> float:
        has_slice_controller = self._slices.is_on = self.has_slice_controller
        if not self._registration.apply(has_slice_controller=has_slice_controller):
            return _LOOK_SECONDS
        if has_slice_controller and not self._slices_started:
            self._slices_started = True
            self._slices.controller.start()
        self._slices.look()
        if not self._ready.is_set():
            if not self._is_synced(has_slice_controller):
                return _LOOK_SECONDS
            self._ready.set()
            self._write_status()
            log.info("the add-on serves (slice controller: %s)", "on" if has_slice_controller else "off")
        return _REGISTER_SECONDS

    def _is_synced(self, has_slice_controller: bool) -> bool:
        controllers = [self._late_labels.controller]
        controllers += [self._slices.controller] if has_slice_controller else []
        return all(each.wait_synced(0) for each in controllers)

    def _look(self) -> None:
        """See changes of files."""
        had_slice_controller = self.has_slice_controller
        while not self._stopping.wait(_LOOK_SECONDS):
            error = self._knobs.error
            if self._knobs.refresh():
                self._slices.look()
            if self._knobs.error != error:
                self._write_status()
            if self._pools.refresh():
                self._late_labels.look()
            if self.has_slice_controller != had_slice_controller:
                had_slice_controller = not had_slice_controller
                self._registrar.queue.add(_REGISTER)

    def _write_status(self) -> None:
        write_json(
            self._status_path,
            {
                "ready": self._ready.is_set(),
                "pid": os.getpid(),
                "webhooks": self._webhooks.url,
                "knobsError": self._knobs.error,
            },
        )
