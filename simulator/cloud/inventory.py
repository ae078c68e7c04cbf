"""The simulated cloud's live state: what exists, what is half done, which APIs and features are on.

One JSON file, written atomically after every step of every operation, so that a process killed at any moment leaves
a state from which the next one goes on. Only the cloud process writes it.
It holds nothing of Kubernetes and nothing that a region file already says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from simulator.files import read_json, write_json

FORMAT = 1

State = Literal["CREATING", "READY", "UPDATING", "DELETING", "ERROR"]


@dataclass
class Record:
    """One resource."""

    id: str
    """The id under which Pulumi knows it."""
    type: str
    """Its Pulumi type token."""
    urn: str
    """Who made it: a stack's URN, or `existing` for what the region file brings."""
    inputs: dict[str, Any]
    """Its configuration as it is now, defaults of the provider filled in."""
    computed: dict[str, Any] = field(default_factory=dict)
    """What the cloud has chosen: numbers, addresses, hosts."""
    state: State = "CREATING"
    answered_at: float | None = None
    """When its creator was answered (epoch seconds); from then on its name is taken."""
    error: str | None = None
    """Why it is in state ERROR."""

    @property
    def name(self) -> str:
        """The last part of its id."""
        return self.id.rsplit("/", 1)[-1]


@dataclass
class Switch:
    """Something of a project that is set rather than made: asking for it twice is no conflict."""

    id: str
    type: str
    inputs: dict[str, Any]
    since: float
    """When it got its present setting, in epoch seconds."""


EXISTING = "existing"


class Inventory:
    """All records, and the switches of each project."""

    def __init__(self, path: Path) -> None:
        self._path = path
        document = read_json(path) or {"format": FORMAT}
        if document.get("format") != FORMAT:
            raise ValueError(
                f"{path} has format {document.get('format')}, this version of the simulator writes {FORMAT}: "
                "`python -m simulator reset` starts over."
            )
        self.resources = {
            item["id"]: Record(**item) for item in document.get("resources", []) if isinstance(item, dict)
        }
        self.switches = {item["id"]: Switch(**item) for item in document.get("switches", [])}
        """Enabled APIs and preview features: they outlive whoever switched them."""
        self.disabled_apis: dict[str, list[str]] = document.get("disabledApis", {})
        """By project, of what the region file has on."""
        self.seeded: list[str] = document.get("seeded", [])
        """Ids of what the region file brought: made once, never again."""
        self.fault_counts: dict[str, int] = document.get("faultCounts", {})
        """How often each fault has struck."""

    def save(self) -> None:
        """Write everything, in one step."""
        write_json(
            self._path,
            {
                "format": FORMAT,
                "resources": [dataclasses.asdict(record) for record in self.resources.values()],
                "switches": [dataclasses.asdict(switch) for switch in self.switches.values()],
                "disabledApis": self.disabled_apis,
                "seeded": self.seeded,
                "faultCounts": self.fault_counts,
            },
        )

    def put(self, record: Record) -> None:
        """Add a record, and save."""
        self.resources[record.id] = record
        self.save()

    def remove(self, record: Record) -> None:
        """Forget a record, and save."""
        self.resources.pop(record.id, None)
        self.save()

    def get(self, resource_id: str, token: str | None = None) -> Record | None:
        """The record of that id (and type)."""
        record = self.resources.get(resource_id)
        return record if record is not None and token in (None, record.type) else None

    def of_type(self, token: str) -> Iterator[Record]:
        """Every record of a type; a snapshot, so that the caller may change the inventory."""
        yield from [record for record in self.resources.values() if record.type == token]


def left_behind(path: Path) -> list[str]:
    """Ids of everything that a stack has made and not removed: empty after a complete destroy."""
    return sorted(record.id for record in Inventory(path).resources.values() if record.urn != EXISTING)
