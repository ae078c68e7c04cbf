"""The hosts of a cluster's node pools: what the cloud side asks for in `pools/<pool>.json`, as KWOK nodes.

Level-triggered: every pass compares the files with the nodes and mends the difference, so it does not matter
which side was killed when. A pool whose file has gone loses its nodes, pods first; then its status file goes.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import client

from facts import labels
from simulator.cluster.mirror import Mirror, Object
from simulator.files import read_json, write_json

_LOG = logging.getLogger(__name__)
PASS_SECONDS = 0.2
PARALLEL_REQUESTS = 16
_PARTITION_PREFIX = labels.partition_id("").removesuffix("-id")


class Nodes:
    """Keeps the nodes of the pools in `folder` in the cluster."""

    def __init__(self, folder: Path, core: client.CoreV1Api, pods: Mirror) -> None:
        self._folder = folder
        self._core = core
        self._pods = pods
        self._limit = asyncio.Semaphore(PARALLEL_REQUESTS)
        self.mirror = Mirror(core.list_node)

    async def run(self) -> None:
        """Compare and mend until cancelled."""
        self._folder.mkdir(parents=True, exist_ok=True)
        mirroring = asyncio.create_task(self.mirror.run())
        try:
            await self.mirror.is_synced.wait()
            while True:
                try:
                    await self._reconcile()
                except (client.ApiException, aiohttp.ClientError, OSError) as error:
                    _LOG.warning("nodes: %s", error)
                await asyncio.sleep(PASS_SECONDS)
        finally:
            mirroring.cancel()
            await asyncio.gather(mirroring, return_exceptions=True)

    def _nodes_of(self, pool: str) -> dict[str, Object]:
        return {
            name: node
            for (_namespace, name), node in self.mirror.objects.items()
            if (node["metadata"].get("labels") or {}).get(labels.NODE_POOL) == pool
        }

    async def _reconcile(self) -> None:
        wanted = {
            path.stem: read_json(path)
            for path in self._folder.glob("*.json")
            if not path.name.endswith(".status.json")
        }
        gone = {path.name.removesuffix(".status.json") for path in self._folder.glob("*.status.json")} - set(
            wanted
        )
        await asyncio.gather(
            *(self._mend(name, pool) for name, pool in wanted.items() if pool is not None),
            *(self._remove(name) for name in gone),
        )

    async def _mend(self, name: str, pool: dict[str, Any]) -> None:
        present = self._nodes_of(name)
        hosts = {host["name"]: host for host in pool["hosts"]}
        await asyncio.gather(
            *(self._create(pool, host) for key, host in hosts.items() if key not in present),
            *(self._delete(key) for key in present if key not in hosts),
        )
        present = self._nodes_of(name)
        status = {
            "hostCount": len(hosts),
            "readyHostCount": sum(_is_ready(node) for key, node in present.items() if key in hosts),
            "activeSlices": sorted(
                {
                    node["metadata"]["labels"][labels.TPU_SLICE]
                    for node in present.values()
                    if node["metadata"]["labels"].get(labels.TPU_SLICE)
                }
            ),
        }
        path = self._folder / f"{name}.status.json"
        if read_json(path) != status:
            write_json(path, status)

    async def _create(self, pool: dict[str, Any], host: dict[str, Any]) -> None:
        is_late = float(pool.get("labelDelaySeconds") or 0) > 0
        node_labels = {
            key: value
            for key, value in host["labels"].items()
            if not (is_late and key.startswith(_PARTITION_PREFIX))
        }
        allocatable = {key: str(value) for key, value in host["allocatable"].items()}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": host["name"],
                "labels": node_labels,
                "annotations": host.get("annotations") or {},
            },
            "spec": {"taints": host.get("taints") or []},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        }
        async with self._limit:
            await _tolerating(self._core.create_node(body), 409)

    async def _delete(self, name: str) -> None:
        async with self._limit:
            for (namespace, pod), item in list(self._pods.objects.items()):
                if item["spec"].get("nodeName") == name:
                    await _tolerating(
                        self._core.delete_namespaced_pod(pod, namespace, grace_period_seconds=0), 404
                    )
            await _tolerating(self._core.delete_node(name), 404)

    async def _remove(self, pool: str) -> None:
        present = self._nodes_of(pool)
        await asyncio.gather(*(self._delete(name) for name in present))
        if not self._nodes_of(pool):
            (self._folder / f"{pool}.status.json").unlink(missing_ok=True)


async def _tolerating(call: Any, status: int) -> None:
    try:
        await call
    except client.ApiException as error:
        if error.status != status:
            raise


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
