"""The files by which clusters and node pools are handed to the cluster side, and its answers.

`clusters/<cluster>/cluster.json` and `pools/<pool>.json` say what the cloud wants; `status.json` and
`pools/<pool>.status.json` say what the cluster side has made. Both sides write atomically and look again and again, so
either may be killed at any moment. The cloud never talks to a Kubernetes API.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator.cloud.errors import OperationFailed
from simulator.files import read_json, write_json

FIRST_LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 0.5


class ClusterFiles:
    """The folder `clusters/` of a region."""

    def __init__(self, root: Path, deadline_seconds: float = 120.0) -> None:
        self.root = root
        self.deadline_seconds = deadline_seconds
        """How long the cluster side may take before the operation fails."""

    def write_cluster(self, name: str, document: dict[str, Any]) -> None:
        """Say what the cluster is to be."""
        write_json(self.root / name / "cluster.json", document)

    def cluster_status(self, name: str) -> dict[str, Any]:
        """What the cluster side says of the cluster."""
        return read_json(self.root / name / "status.json") or {}

    async def running_cluster(self, name: str) -> dict[str, Any]:
        """The status of the cluster once it runs."""

        def is_running() -> bool:
            status = self.cluster_status(name)
            if status.get("state") == "ERROR":
                raise OperationFailed(status.get("message", "the control plane failed"), leaves_resource=True)
            return status.get("state") == "RUNNING"

        await self._until(is_running, f"the control plane of cluster {name} is not RUNNING")
        return self.cluster_status(name)

    async def delete_cluster(self, name: str) -> None:
        """Have the cluster removed, and wait until its folder is gone."""
        folder = self.root / name
        if not folder.exists():
            return
        wanted = read_json(folder / "cluster.json")
        if wanted is None:
            return
        write_json(folder / "cluster.json", {**wanted, "deleting": True})
        await self._until(lambda: not folder.exists(), f"the folder of cluster {name} is still there")

    def write_pool(self, cluster: str, pool: str, document: dict[str, Any]) -> None:
        """Say what hosts the pool is to have."""
        write_json(self._pool(cluster, pool), document)

    def pool_status(self, cluster: str, pool: str) -> dict[str, Any]:
        """What the cluster side says of the pool."""
        return read_json(self._pool_status(cluster, pool)) or {}

    def active_slices(self, cluster: str, pool: str) -> list[str]:
        """Slices that are formed on the pool's hosts now."""
        return list(self.pool_status(cluster, pool).get("activeSlices", []))

    async def ready_pool(self, cluster: str, pool: str, host_count: int) -> None:
        """Wait until every host of the pool is Ready."""

        def is_ready() -> bool:
            status = self.pool_status(cluster, pool)
            if status.get("state") == "ERROR":
                raise OperationFailed(status.get("message", "the node pool failed"), leaves_resource=True)
            return status.get("hostCount") == host_count and status.get("readyHostCount") == host_count

        await self._until(is_ready, f"node pool {pool} has not {host_count} Ready hosts")

    async def delete_pool(self, cluster: str, pool: str) -> None:
        """Have the pool's nodes removed, and wait until they are gone."""
        self._pool(cluster, pool).unlink(missing_ok=True)
        status = self._pool_status(cluster, pool)
        await self._until(lambda: not status.exists(), f"nodes of pool {pool} are still there")

    def _pool(self, cluster: str, pool: str) -> Path:
        return self.root / cluster / "pools" / f"{pool}.json"

    def _pool_status(self, cluster: str, pool: str) -> Path:
        return self.root / cluster / "pools" / f"{pool}.status.json"

    async def _until(self, is_done: Callable[[], bool], still: str) -> None:
        started = time.monotonic()
        pause = FIRST_LOOK_SECONDS
        while not is_done():
            if time.monotonic() - started > self.deadline_seconds:
                raise OperationFailed(
                    f"after {self.deadline_seconds:g} s {still}: `python -m simulator status` says which process is "
                    "not well",
                    leaves_resource=True,
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_SECONDS)
