"""The simulated gcp provider: what the engine asks, in plain values, answered from the region.

Owns checking, previews, diffs, imports and which outputs the engine sees. The flow of operations is `lifecycle`, the
resource types are `kinds`, the wire is `servicer`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi_gcp.provider

from simulator.cloud import diffing, discovery, functions
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import ProviderRefusal, Refusal
from simulator.cloud.inventory import EXISTING, Record
from simulator.cloud.kinds.base import Kind, ProviderDefaults
from simulator.cloud.lifecycle import Interrupted, Lifecycle
from simulator.cloud.registry import KINDS, kind_of
from simulator.cloud.sdk_schema import Problem, ResourceSchema
from simulator.cloud.wire import UNKNOWN, Path, Properties, Unknown

_PROVIDER_INPUTS = ResourceSchema(pulumi_gcp.provider.Provider, pulumi_gcp.provider.ProviderArgs).input_types
_ENGINE_INPUTS = ("version", "pluginDownloadURL", "pluginChecksums", "__internal")


@dataclass
class Session:
    """One engine's connection: how its provider is configured, and whether it has stopped waiting."""

    defaults: ProviderDefaults = field(default_factory=ProviderDefaults)
    stop: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Answer:
    """A resource as the engine is to keep it."""

    id: str
    outputs: dict[str, Any]
    secrets: frozenset[Path]
    inputs: dict[str, Any] = field(default_factory=dict)


def token_of(urn: str) -> str:
    """The resource's type token, from its URN."""
    return urn.split("::")[2].rsplit("$", 1)[-1]


class Provider:
    """The provider of one region."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.lifecycle = Lifecycle(cloud, KINDS)

    # --- Configuration ------------------------------------------------------------------------------------------

    def check_config(self, inputs: Mapping[str, Any]) -> list[Problem]:
        """Inputs of the provider itself that nobody knows."""
        return [
            Problem(name, "is no input of pulumi-gcp's provider: remove it, or check the spelling")
            for name in inputs
            if name not in _PROVIDER_INPUTS and name not in _ENGINE_INPUTS
        ]

    def configure(self, session: Session, inputs: Mapping[str, Any]) -> None:
        """Take the provider's inputs; a text is needed for each of the three that fill in others."""
        texts = {name: inputs.get(name) for name in ("project", "region", "zone")}
        session.defaults = ProviderDefaults(**{name: str(text) for name, text in texts.items() if text})

    # --- Before an operation ------------------------------------------------------------------------------------

    def check(
        self, session: Session, urn: str, old: Mapping[str, Any], new: Mapping[str, Any], seed: bytes
    ) -> tuple[dict[str, Any], list[Problem]]:
        """The inputs as the resource is made from them, and all that is wrong with them."""
        kind = kind_of(token_of(urn))
        inputs = {name: value for name, value in new.items() if value is not None and name != "__defaults"}
        if kind.is_autonamed and inputs.get("name") is None:
            is_kept = "name" in (old.get("__defaults") or [])
            inputs["name"] = old["name"] if is_kept else _auto_name(urn, seed)
            inputs["__defaults"] = ["name"]
        filled = kind.fill(inputs, session.defaults)
        problems = [
            *kind.schema.problems(inputs),
            *discovery.problems(kind.token, inputs),
            *kind.own_problems(filled),
            *self._missing_scope(kind, filled),
        ]
        first_by_path = {problem.path: problem for problem in reversed(problems)}
        return inputs, list(reversed(first_by_path.values()))

    def _missing_scope(self, kind: Kind, filled: Mapping[str, Any]) -> Iterable[Problem]:
        for name in kind.scope:
            if filled.get(name) is None:
                yield Problem(name, "must be given, by the resource or by the provider: Google needs it")

    def diff(
        self,
        urn: str,
        old_inputs: Mapping[str, Any],
        old_state: Mapping[str, Any],
        new: Mapping[str, Any],
        ignored: list[str],
    ) -> diffing.Diff:
        """What the change of inputs means."""
        return diffing.compare(kind_of(token_of(urn)), old_inputs, old_state, new, ignored)

    # --- Operations ---------------------------------------------------------------------------------------------

    async def create(self, session: Session, urn: str, given: Properties, *, is_preview: bool) -> Answer:
        """Make the resource, or say what it would be."""
        kind = kind_of(token_of(urn))
        filled = kind.fill(given.values, session.defaults)
        if is_preview:
            return Answer("", _planned(kind, filled), given.secrets)
        try:
            record = await self.lifecycle.create(kind, kind.place(filled), filled, urn, session.stop)
        except Interrupted as interrupted:
            return self._unfinished(kind, interrupted.record, given)
        except Refusal as refusal:
            raise _during("creating", kind, refusal) from refusal
        return self._answer(kind, record, given)

    async def update(
        self,
        session: Session,
        urn: str,
        resource_id: str,
        old_state: Mapping[str, Any],
        given: Properties,
        *,
        is_preview: bool,
    ) -> Answer:
        """Change the resource, or say what it would become."""
        kind = kind_of(token_of(urn))
        filled = kind.fill(given.values, session.defaults)
        if is_preview:
            return Answer(resource_id, _changed(old_state, filled), given.secrets)
        record = await self.lifecycle.read(resource_id, kind)
        if record is None:
            raise ProviderRefusal(
                f"{resource_id} is not there any more: somebody removed it. `pulumi refresh` forgets it, and the next "
                "update makes it again."
            )
        try:
            record = await self.lifecycle.update(kind, record, filled, session.stop)
        except Interrupted as interrupted:
            return self._unfinished(kind, interrupted.record, given)
        except Refusal as refusal:
            raise _during("updating", kind, refusal) from refusal
        return self._answer(kind, record, given)

    async def delete(self, session: Session, urn: str, resource_id: str) -> None:
        """Remove the resource; one that is gone already is fine."""
        kind = kind_of(token_of(urn))
        record = self.lifecycle.find(resource_id, kind)
        if record is None:
            return
        try:
            await self.lifecycle.delete(kind, record, session.stop)
        except Interrupted:
            raise ProviderRefusal(f"stopped waiting for the deletion of {resource_id}: it goes on") from None
        except Refusal as refusal:
            raise _during("deleting", kind, refusal) from refusal

    async def read(
        self,
        session: Session,
        urn: str,
        resource_id: str,
        known_inputs: Mapping[str, Any],
        secrets: frozenset[Path],
    ) -> Answer | None:
        """The resource as it is, with the inputs that would make it; None when it is gone.

        Without known inputs it is an import: the id may have any form that people type.
        """
        kind = kind_of(token_of(urn))
        if not known_inputs:
            resource_id = kind.import_id(resource_id, session.defaults)
        record = await self.lifecycle.read(resource_id, kind)
        if record is None:
            return None
        outputs = self._outputs(kind, record)
        if known_inputs:
            inputs = {**_projected(known_inputs, outputs), **_kept_defaults(known_inputs)}
        else:
            inputs = {name: value for name, value in record.inputs.items() if value is not None}
        return Answer(record.id, outputs, secrets | self._secrets(kind), inputs)

    def invoke(self, session: Session, token: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a function."""
        return functions.call(self.cloud, token, arguments, session.defaults)

    async def seed(self) -> None:
        """Make what the region file says is there already, once in the region's life."""
        inventory = self.cloud.inventory
        for existing in self.cloud.region.existing:
            kind = kind_of(existing.type)
            defaults = ProviderDefaults(self.cloud.region.projects[0].id, self.cloud.region.region)
            inputs = kind.fill(existing.inputs, defaults)
            place = kind.place(inputs)
            if place.id in inventory.seeded:
                continue
            await self.lifecycle.create(kind, place, inputs, EXISTING, asyncio.Event())
            inventory.seeded.append(place.id)
            inventory.save()

    # --- Answers ------------------------------------------------------------------------------------------------

    def answer_half_made(self, record: Record, secrets: frozenset[Path]) -> Answer:
        """What the engine keeps of a resource that exists and is not well."""
        kind = kind_of(record.type)
        outputs = self._outputs(kind, record)
        return Answer(record.id, outputs, secrets | self._secrets(kind), record.inputs)

    def _answer(self, kind: Kind, record: Record, given: Properties) -> Answer:
        return Answer(record.id, self._outputs(kind, record), given.secrets | self._secrets(kind))

    def _unfinished(self, kind: Kind, record: Record, given: Properties) -> Answer:
        """The real provider keeps a cluster or pool with its operation, and drops everything else."""
        if not kind.keeps_failed:
            raise ProviderRefusal(f"stopped waiting for {record.id}: context canceled")
        outputs = {**self._outputs(kind, record), "operation": f"operation-{record.id.rsplit('/', 1)[-1]}"}
        record.answered_at = time.time()
        self.cloud.inventory.save()
        return Answer(record.id, outputs, given.secrets | self._secrets(kind))

    def _outputs(self, kind: Kind, record: Record) -> dict[str, Any]:
        outputs = kind.outputs(self.cloud, record)
        return {name: value for name, value in outputs.items() if name in kind.schema.output_names}

    def _secrets(self, kind: Kind) -> frozenset[Path]:
        return frozenset(kind.secret_outputs)


def _planned(kind: Kind, filled: Mapping[str, Any]) -> dict[str, Any]:
    """A preview's outputs: what is given, and unknown what Google will choose."""
    chosen = dict.fromkeys(kind.schema.always_set_outputs, UNKNOWN)
    return {**chosen, **filled}


def _changed(known: Any, given: Any) -> Any:
    """What an update would leave: the given over the known, deep down, for Google's own fields stay as they are."""
    if isinstance(known, Mapping) and isinstance(given, Mapping):
        return {**known, **{name: _changed(known.get(name), value) for name, value in given.items()}}
    return given


def _during(doing: str, kind: Kind, refusal: Refusal) -> ProviderRefusal:
    return ProviderRefusal(f"Error {doing} {kind.noun}: {refusal}")


def _auto_name(urn: str, seed: bytes) -> str:
    """The logical name with seven hexadecimal digits, as the bridge makes names."""
    logical = urn.rsplit("::", 1)[-1].lower()
    return f"{logical[:54].rstrip('-')}-{hashlib.sha256(seed + urn.encode()).hexdigest()[:7]}"


def _kept_defaults(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"__defaults": inputs["__defaults"]} if "__defaults" in inputs else {}


def _projected(known: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[str, Any]:
    """The truth, at the places that the program has set: what it has left to Google does not become an input."""
    return {
        name: _project_value(value, truth[name])
        for name, value in known.items()
        if truth.get(name) is not None
    }


def _project_value(known: Any, truth: Any) -> Any:
    if isinstance(known, Mapping) and isinstance(truth, Mapping) and not isinstance(known, Unknown):
        return _projected(known, truth)
    return truth
