"""TPU hosts and their partitions, as the add-on sees them in Node objects. Pure.

Owns: reading a Node, which hosts form which partition, and the state of each partition. Only hosts of
PROVISION_ONLY pools count: on others GKE forms the slice when it makes the pool, and nothing here may touch them.
Hosts are paired by equal partition ids, never by the order of their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from facts import labels, tpu
from simulator.addon.knobs import Knobs

HOSTS_OF_LEVEL = {level: tpu.Topology.parse(level).host_count for level in tpu.PARTITION_LEVELS}


def seconds_of(timestamp: str | None) -> float:
    """A metav1.Time as seconds of the epoch; 0 when there is none."""
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0


@dataclass(frozen=True, kw_only=True)
class Host:
    """One tpu7x node."""

    name: str
    pool: str = ""
    reservation: str = ""
    block: str = ""
    is_ready: bool | None = True
    """None: the node has not reported yet."""
    created_at: float = 0.0
    partition_ids: Mapping[str, str] = field(default_factory=dict)
    """Level to the id of the host's partition; empty until the device plugin has found them."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def slice_label(self) -> str | None:
        return self.labels.get(labels.TPU_SLICE)


def host_of(node: Mapping[str, Any]) -> Host | None:
    """The host that the Node is, or None when dynamic slicing has no part in it."""
    metadata = node["metadata"]
    found: dict[str, str] = metadata.get("labels") or {}
    if (
        found.get(labels.TPU_ACCELERATOR) != tpu.TPU7X
        or found.get(labels.TOPOLOGY_MODE) != labels.TOPOLOGY_MODE_PROVISION_ONLY
    ):
        return None
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), None)
    return Host(
        name=metadata["name"],
        pool=found.get(labels.NODE_POOL, ""),
        reservation=found.get(labels.RESERVATION_NAME, ""),
        block=found.get(labels.TOPOLOGY_BLOCK, ""),
        is_ready=None if ready is None else ready == "True",
        created_at=seconds_of(metadata.get("creationTimestamp")),
        partition_ids={
            level: found[labels.partition_id(level)]
            for level in tpu.PARTITION_LEVELS
            if found.get(labels.partition_id(level))
        },
        labels=found,
    )


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The hosts that share one id at one level."""

    level: str
    id: str
    hosts: tuple[Host, ...]
    state: str

    @property
    def is_complete(self) -> bool:
        return len(self.hosts) == HOSTS_OF_LEVEL[self.level]

    @property
    def is_usable(self) -> bool:
        """Whether a Slice can form on it."""
        return self.state in {labels.PARTITION_HEALTHY, labels.PARTITION_DEGRADED}


class Partitions:
    """All partitions of the hosts given, with their states."""

    def __init__(self, hosts: Iterable[Host], knobs: Knobs) -> None:
        self.hosts = tuple(sorted(hosts, key=lambda host: host.name))
        members: dict[tuple[str, str], list[Host]] = defaultdict(list)
        for host in self.hosts:
            for level, partition_id in host.partition_ids.items():
                members[level, partition_id].append(host)
        forced = knobs.forced_states()
        # A fault inside a partition is a fault of every wider one around it; narrower ones may be sound.
        broken_at: dict[str, int] = {}
        for (level, partition_id), found in members.items():
            if forced.get(partition_id) == labels.PARTITION_UNHEALTHY:
                for host in found:
                    broken_at[host.name] = min(
                        broken_at.get(host.name, HOSTS_OF_LEVEL[level]), HOSTS_OF_LEVEL[level]
                    )
        for host in self.hosts:
            if host.is_ready is False or knobs.is_faulty(host.name):
                broken_at[host.name] = 0
        self._by_id = {
            (level, partition_id): Partition(
                level=level,
                id=partition_id,
                hosts=tuple(found),
                state=_state(level, found, forced.get(partition_id), broken_at, knobs),
            )
            for (level, partition_id), found in members.items()
        }

    def get(self, level: str, partition_id: str) -> Partition | None:
        return self._by_id.get((level, partition_id))

    def states_of(self, host: Host) -> dict[str, str]:
        """Level to state: the values that the host's state labels must have."""
        return {
            level: self._by_id[level, host.partition_ids[level]].state
            if level in host.partition_ids
            else labels.PARTITION_UNSET
            for level in tpu.PARTITION_LEVELS
        }


def _state(
    level: str, members: list[Host], forced: str | None, broken_at: Mapping[str, int], knobs: Knobs
) -> str:
    if not knobs.initialized:
        return labels.PARTITION_UNSET
    if len(members) != HOSTS_OF_LEVEL[level] or any(host.is_ready is None for host in members):
        return labels.PARTITION_INCOMPLETE
    if any(broken_at.get(host.name, 1 << 30) <= HOSTS_OF_LEVEL[level] for host in members):
        return labels.PARTITION_UNHEALTHY
    if forced is None or (forced == labels.PARTITION_DEGRADED and level != tpu.CUBE):
        return labels.PARTITION_HEALTHY
    return forced
