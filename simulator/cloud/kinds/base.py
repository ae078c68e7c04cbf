"""What a simulated resource type has to say of itself.

A kind owns its id, its own checks, what Google refuses for it and what Google computes. It does not own the flow of an
operation (`lifecycle`), nor time, nor the engine's protocol. Its methods before the first `await` run without
interruption, so that two operations never claim the same host or range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from facts import names
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, Refusal, already_exists, invalid_value
from simulator.cloud.inventory import Record
from simulator.cloud.sdk_schema import Problem, ResourceSchema
from simulator.cloud.wire import Unknown

COMPUTE_ADDRESS = "https://www.googleapis.com/compute/v1/"
CONTAINER_ADDRESS = "https://container.googleapis.com/v1/"


@dataclass(frozen=True)
class ProviderDefaults:
    """What the provider's own configuration fills in."""

    project: str | None = None
    region: str | None = None
    zone: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a resource lives."""

    id: str
    project: str
    """Empty where a request names no project, as Cloud Storage's do."""
    name: str
    location: str | None = None


class Kind:
    """A resource type."""

    token: ClassVar[str]
    schema: ClassVar[ResourceSchema]
    api: ClassVar[str]
    """The API that must be on in the project."""
    noun: ClassVar[str]
    """How the real provider calls it in `Error creating …`."""
    scope: ClassVar[tuple[str, ...]] = ("project",)
    """Inputs that the provider's configuration fills in: `project`, `region`."""
    name_pattern: ClassVar[str] = names.GCE_NAME
    is_autonamed: ClassVar[bool] = True
    """True if a missing `name` is made from the logical name."""
    keeps_failed: ClassVar[bool] = False
    """True if the real provider keeps a half-made resource in its state (clusters and node pools)."""
    is_switch: ClassVar[bool] = False
    """True if it is set rather than made: it is kept as a switch, and setting it twice is no conflict."""
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Outputs where the program gives no input: the provider's and Google's defaults."""
    secret_outputs: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def fill(self, inputs: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
        """The inputs with what the provider's configuration adds."""
        filled = {name: value for name, value in inputs.items() if value is not None and name != "__defaults"}
        for name in self.scope:
            value = getattr(defaults, name)
            if filled.get(name) is None and value is not None:
                filled[name] = value
        return filled

    def place(self, inputs: Mapping[str, Any]) -> Place:
        """Where filled inputs put it."""
        raise NotImplementedError

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        """What is wrong with the inputs by themselves, before anybody asks Google."""
        name = inputs.get("name")
        if isinstance(name, str) and re.match(self.name_pattern, name) is None:
            yield Problem("name", f"must match {self.name_pattern} (got {name!r}): Google names resources so")

    def refuse_conflict(self, place: Place) -> Refusal:
        """What Google says when the name is taken."""
        return already_exists(place.id)

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Raise what Google refuses before it begins; else what it decides at once (numbers, hosts)."""
        return {}

    async def provision(self, cloud: Cloud, record: Record) -> None:
        """The long part of a create. May run again after a crash."""

    def refuse_update(self, cloud: Cloud, record: Record, inputs: Mapping[str, Any]) -> None:
        """Raise what Google refuses of a change."""

    async def apply_update(self, cloud: Cloud, record: Record, old_inputs: Mapping[str, Any]) -> None:
        """The long part of an update; the record has the new inputs. May run again after a crash."""

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        """Raise what Google (or the provider) refuses of a delete."""

    async def release(self, cloud: Cloud, record: Record) -> None:
        """The long part of a delete. May run again after a crash."""

    def outputs(self, cloud: Cloud, record: Record) -> dict[str, Any]:
        """Everything the real provider would show."""
        return {**self.defaults, **record.inputs, **record.computed}

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        """The full id for what a person types at `pulumi import`."""
        return resource_id.removeprefix(COMPUTE_ADDRESS).removeprefix(CONTAINER_ADDRESS)


class ComputeKind(Kind):
    """A resource of Compute Engine: global, or of a region if `scope` has `region`."""

    api = "compute.googleapis.com"
    collection: ClassVar[str]
    """Its place in a path, such as `networks`."""

    def place(self, inputs: Mapping[str, Any]) -> Place:
        project, region, name = inputs["project"], inputs.get("region"), inputs["name"]
        return Place(
            f"projects/{project}/{self._where(region)}/{self.collection}/{name}", project, name, region
        )

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        return reference(resource_id, str(defaults.project), self.collection, self._where(defaults.region))

    def _where(self, region: str | None) -> str:
        return f"regions/{region}" if "region" in self.scope else "global"

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if place.location not in (None, cloud.region.region):
            raise invalid_value("region", place.location, "Unknown region.")
        return {"selfLink": COMPUTE_ADDRESS + place.id}


def known(value: Any) -> Any:
    """The value, or None while it is unknown."""
    return None if isinstance(value, Unknown) else value


def last_part(reference: str) -> str:
    """The name at the end of a path, a self link or a bare name."""
    return reference.rsplit("/", 1)[-1]


def reference(value: str, project: str, collection: str, location: str = "global") -> str:
    """A compute resource's id from any form in which a program names it.

    `collection` such as `networks`; `location` is `global` or `regions/R`.
    """
    path = re.sub(r"^https://[^/]+/compute/[^/]+/", "", value)
    return (
        path
        if path.startswith("projects/")
        else f"projects/{project}/{location}/{collection}/{last_part(path)}"
    )


def require(cloud: Cloud, resource_id: str, token: str) -> Record:
    """The ready resource that another one needs; else Google's 404."""
    record = cloud.inventory.get(resource_id, token)
    if record is None:
        raise GoogleRefusal(f"The resource '{resource_id}' was not found", 404, "notFound")
    if record.state in ("CREATING", "DELETING"):
        raise GoogleRefusal(f"The resource '{resource_id}' is not ready", 400, "resourceNotReady")
    return record
