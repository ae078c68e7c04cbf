"""The partition ids that the TPU device plugin will find on each host, from the cluster's pool files.

Owns reading `pools/<pool>.json`. A pool with `labelDelaySeconds` gets its nodes without partition labels; this says
which ids each host is to have, and when. The seconds are those of the wall clock, counted from the node's creation,
as the plugin's polling of the metadata server counts from its own start. Refuses nothing: who writes those files
owns their contents.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from facts import labels, tpu
from simulator.addon.hosts import Host
from simulator.files import read_json

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _LateIds:
    delay_seconds: float
    ids: dict[str, str] = field(default_factory=dict)
    """Label to value."""


class PoolFiles:
    """The late ids of all pools of one cluster."""

    def __init__(self, cluster_folder: Path) -> None:
        self._folder = cluster_folder / "pools"
        self._stamps: dict[str, tuple[int, int]] = {}
        self._pools: dict[str, dict[str, _LateIds]] = {}

    def refresh(self) -> bool:
        """Read the files that changed; whether there were any."""
        stamps = {}
        for path in self._folder.glob("*.json"):
            if path.name.endswith(".status.json"):
                continue
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            stamps[path.name] = (stat.st_mtime_ns, stat.st_ino)
        changed = {name for name, stamp in stamps.items() if self._stamps.get(name) != stamp}
        gone = self._stamps.keys() - stamps.keys()
        for name in gone:
            self._pools.pop(name, None)
        for name in changed:
            self._pools[name] = self._read(self._folder / name)
        self._stamps = stamps
        return bool(changed or gone)

    def late_labels(self, host: Host, now: float) -> tuple[dict[str, str], float | None]:
        """The id labels to add to the host now, and when to ask again."""
        late = next((pool[host.name] for pool in self._pools.values() if host.name in pool), None)
        if late is None:
            return {}, None
        missing = {key: value for key, value in late.ids.items() if host.labels.get(key) != value}
        due = host.created_at + late.delay_seconds
        if missing and due > now:
            return {}, due
        return missing, None

    @staticmethod
    def _read(path: Path) -> dict[str, _LateIds]:
        pool = read_json(path) or {}
        delay = float(pool.get("labelDelaySeconds") or 0)
        if delay <= 0:
            return {}
        keys = {labels.partition_id(level) for level in tpu.PARTITION_LEVELS}
        return {
            host["name"]: _LateIds(
                delay_seconds=delay,
                ids={key: value for key, value in host["labels"].items() if key in keys},
            )
            for host in pool.get("hosts", ())
        }
