"""The kubelet of the pods that run as local processes: Kueue, JobSet, LWS and the slice controller.

A pod whose image is one of ours and that is bound to a node gets its volumes, a token of its own service
account and a sandbox (sandbox.py), is probed, restarted with back-off when it ends, and stopped when it is
deleted. All other pods are KWOK's. Such a pod has one container: our controllers'
charts and manifest have no more, and only the first is run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from kubernetes.aio import client

from simulator.cluster.mirror import Mirror, Object
from simulator.cluster.process_pod import PodHost, ProcessPod
from simulator.cluster.programs import IMAGE_NAMES, image_name
from simulator.cluster.streams import Connection

_LOG = logging.getLogger(__name__)


def is_process_pod(pod: Object) -> bool:
    """Whether the pod's image is one that runs as a local process."""
    return any(image_name(container["image"]) in IMAGE_NAMES for container in pod["spec"]["containers"])


class ProcessPods:
    """Starts, watches and stops the pods that run as processes."""

    def __init__(self, host: PodHost, core: client.CoreV1Api, say: Callable[[str], None]) -> None:
        self._host = host
        self._core = core
        self._say = say
        self._pods: dict[str, ProcessPod] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.mirror = Mirror(core.list_pod_for_all_namespaces, self._changed)

    def _changed(self, key: tuple[str, str], pod: Object | None) -> None:
        if pod is None:
            for uid, running in list(self._pods.items()):
                if (running.namespace, running.name) == key:
                    self._end(uid)
            return
        if not is_process_pod(pod) or not pod["spec"].get("nodeName"):
            return
        uid = pod["metadata"]["uid"]
        running = self._pods.get(uid)
        if running is None:
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                return
            running = ProcessPod(pod, self._host, self._core, self._say)
            self._pods[uid] = running
            task = asyncio.create_task(running.run(), name=f"pod {running.name}")
            task.add_done_callback(lambda done: self._ended(uid, done))
            self._tasks[uid] = task
        running.pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            running.ask_to_stop()

    def _end(self, uid: str) -> None:
        self._pods[uid].ask_to_stop()

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        pod = self._pods.pop(uid, None)
        self._tasks.pop(uid, None)
        if not task.cancelled() and task.exception() is not None:
            _LOG.error("pod %s: %s", pod and pod.name, task.exception(), exc_info=task.exception())

    async def run(self) -> None:
        """Follow the cluster's pods until cancelled."""
        try:
            await self.mirror.run()
        finally:
            for task in list(self._tasks.values()):
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def dial(self, address: str, port: int) -> Connection:
        """A connection to `port` of the pod that has `address`."""
        for pod in self._pods.values():
            if pod.address == address:
                return await pod.open_port(port)
        raise ConnectionError(f"no local process has the address {address}: the pod behind it is simulated")

    def log_of(self, namespace: str, name: str) -> Path | None:
        """The log file (CRI format) of a process pod."""
        for pod in self._pods.values():
            if (pod.namespace, pod.name) == (namespace, name):
                return pod.log
        return None
