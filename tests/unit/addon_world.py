"""A small world for the add-on's pure core: hosts and Slice objects in memory, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from facts import labels, tpu
from simulator.addon import slice_objects
from simulator.addon.hosts import Host, Partitions
from simulator.addon.knobs import Knobs
from simulator.addon.lifecycle import Plan, node_labels, plan

Object = dict[str, Any]
LEVELS = tpu.PARTITION_LEVELS


def partition_of(cube: int, level: str, number: int = 0) -> str:
    return f"c{cube}-{level}-{number}"


def cube_hosts(cube: int, *, block: str = "block-0", reservation: str = "res-a") -> list[Host]:
    """The 16 hosts of one cube, with nested partitions of every level."""
    return [
        Host(
            name=f"host-{cube}-{number:02d}",
            pool=f"pool-{cube}",
            block=block,
            reservation=reservation,
            partition_ids={
                level: partition_of(cube, level, number // tpu.Topology.parse(level).host_count)
                for level in LEVELS
            },
        )
        for number in range(16)
    ]


class World:
    """What an API server would hold, moved on by the add-on's own plans."""

    def __init__(self, hosts: Iterable[Host], knobs: Knobs | None = None, time_scale: float = 1.0) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.knobs = knobs or Knobs()
        self.time_scale = time_scale
        self.now = 1_000_000.0
        self.objects: dict[str, Object] = {}
        self.history: dict[str, list[str]] = {}
        self.memory = slice_objects.Memory()
        self._uids = 0

    def create(self, name: str, topology: str, *partition_ids: str, retries: bool = False) -> None:
        self._uids += 1
        annotations = {labels.SLICE_RETRY_ON_FAILURE: "true"} if retries else {}
        self.objects[name] = {
            "metadata": {
                "name": name,
                "uid": f"uid-{self._uids}",
                "creationTimestamp": self._timestamp(),
                "annotations": annotations,
            },
            "spec": {"type": "tpu7x", "topology": topology, "partitionIds": list(partition_ids)},
        }
        self.history[name] = []

    def delete(self, name: str) -> None:
        metadata = self.objects[name]["metadata"]
        if not metadata.get("finalizers"):
            del self.objects[name]
        else:
            metadata.setdefault("deletionTimestamp", self._timestamp())

    def step(self) -> Plan:
        """One pass: plan, and write all of it."""
        slices = [slice_objects.read(obj, self.memory) for obj in self.objects.values()]
        partitions = Partitions(self.hosts.values(), self.knobs)
        decided = plan(slices, partitions, self.knobs, self.now, self.time_scale)
        changes, due = node_labels(slices, decided.holders, partitions, self.knobs, self.now)
        for name, change in changes.items():
            host = self.hosts[name]
            merged = {key: value for key, value in {**host.labels, **change}.items() if value is not None}
            self.hosts[name] = replace(host, labels=merged)
        for name in decided.add_finalizers:
            self.objects[name]["metadata"]["finalizers"] = slice_objects.finalizers_with(self.objects[name])
        for move in decided.moves:
            obj = self.objects[move.slice]
            obj["status"] = {"conditions": slice_objects.conditions_after(obj, move, self.now)}
            self.memory.moved(obj["metadata"]["uid"], move.reason, self.now)
            self.history[move.slice].append(str(move.reason))
        for name in decided.drop_finalizers:
            obj = self.objects[name]
            obj["metadata"]["finalizers"] = slice_objects.finalizers_without(obj)
            if not obj["metadata"]["finalizers"] and "deletionTimestamp" in obj["metadata"]:
                del self.objects[name]
        if due is not None:
            decided.look_at(due)
        return decided

    def settle(self, *, wait: bool = True, steps: int = 500) -> None:
        """Step until nothing is written; with `wait`, let the clock jump to the next time the plan asks for."""
        for _ in range(steps):
            before = repr((self.objects, self.hosts))
            decided = self.step()
            if repr((self.objects, self.hosts)) != before:
                continue
            if not wait or decided.next_look is None:
                return
            self.now = decided.next_look
        raise AssertionError(f"no end after {steps} steps: {self.history}")

    def restart(self) -> None:
        """The add-on's process comes back: what it remembered is gone."""
        self.memory = slice_objects.Memory()

    def ready(self, name: str) -> Object:
        return self.objects[name]["status"]["conditions"][0]

    def reason(self, name: str) -> str:
        return self.ready(name)["reason"]

    def labelled(self, name: str) -> set[str]:
        """The hosts that carry the Slice's label."""
        return {host.name for host in self.hosts.values() if host.slice_label == name}

    def states(self, level: str) -> dict[str, str]:
        """Partition id to the state on its hosts' labels, which must agree."""
        found: dict[str, str] = {}
        for host in self.hosts.values():
            state = host.labels[labels.partition_state(level)]
            assert found.setdefault(host.partition_ids[level], state) == state
        return found

    def change(self, host: str, **changes: Any) -> None:
        self.hosts[host] = replace(self.hosts[host], **changes)

    def _timestamp(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
