"""Runs the program without engine, cloud, network or passphrase, and records what it registers.

Owns a monitor in place of the engine's, built on the SDK's own mocks, which carry neither parent nor dependencies, let
a second registration of one URN replace the first in silence, and spell nested URNs otherwise than the engine.
Refuses duplicate URNs, and resources of ours that would fall back to a default provider.
"""

import json
import logging
import runpy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import mocks, rpc, settings, stack
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.sync_await import _sync_await

ROOT = Path(__file__).resolve().parents[1]
PROJECT = "tpu-slices"
UNKNOWN = "[unknown]"
SECRET = "[secret]"  # noqa: S105 (what is shown in a secret's place)
# Fields under which the engine's wire format keeps special values.
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SIGNATURE_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 (a marker, no secret)


@dataclass(frozen=True, kw_only=True)
class Registration:
    """One resource as the engine would have received it."""

    urn: str
    type_token: str
    name: str
    parent: str | None
    """URN; None below the stack itself."""
    provider: str | None
    """URN of the explicit provider."""
    depends_on: tuple[str, ...]
    """URNs that it depends on, explicitly or through a value; sorted."""
    inputs: dict[str, Any]
    """With `[unknown]` and `[secret]` where a value is one."""
    options: dict[str, Any]
    """Resource options that are set: protect, ignoreChanges, deleteBeforeReplace, …"""


@dataclass(kw_only=True)
class Recording:
    """What a run of the program registered."""

    registrations: dict[str, Registration] = field(default_factory=dict)
    """By URN, in the order of arrival."""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """URN of a component or of the stack → what it registered as its outputs."""

    def of_type(self, type_token: str) -> list[Registration]:
        """Every registration of a type, by URN."""
        return sorted(
            (found for found in self.registrations.values() if found.type_token == type_token),
            key=lambda found: found.urn,
        )

    def named(self, name: str) -> Registration:
        """The one registration of that logical name."""
        (found,) = (found for found in self.registrations.values() if found.name == name)
        return found

    @property
    def stack_outputs(self) -> dict[str, Any]:
        """What the program exported."""
        return next((value for urn, value in self.outputs.items() if "::pulumi:pulumi:Stack::" in urn), {})


Outputs = Callable[[str, dict[str, Any]], dict[str, Any]]
"""`(type token, inputs)` → the outputs that a provider adds."""


def no_outputs(_type_token: str, _inputs: dict[str, Any]) -> dict[str, Any]:
    """What is known before anything exists."""
    return {}


class _Unused(mocks.Mocks):
    """The SDK wants mocks; the monitor below answers in their place."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], None]:
        raise AssertionError(
            f"the program asked {args.token}: a plan must not depend on what a cloud answers"
        )

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise AssertionError(f"{args.name} reached the SDK's own mock")


class RecordingMonitor(mocks.MockMonitor):
    """Stands where the engine's resource monitor stands."""

    def __init__(self, recording: Recording, outputs: Outputs, *, preview: bool) -> None:
        """`preview` leaves ids and outputs unknown, as before the first `up`."""
        super().__init__(_Unused())
        self._recording = recording
        self._outputs = outputs
        self._preview = preview

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The URN as the engine spells it: the chain of parents' types, without the stack's."""
        chain = parent.split("::")[2] if parent else ""
        qualified = type_ if chain in ("", "pulumi:pulumi:Stack") else f"{chain}${type_}"
        return f"urn:pulumi:{settings.get_stack()}::{settings.get_project()}::{qualified}::{name}"

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        if urn in self._recording.registrations:
            raise ValueError(
                f"{urn} must be registered once: the engine refuses the second. Choose another name."
            )
        provider = request.provider.rpartition("::")[0] or None
        package = request.type.split(":")[0]
        if package in ("gcp", "kubernetes") and request.custom and provider is None:
            raise ValueError(
                f"{urn} must have an explicit provider: default providers are disabled. Pass it on."
            )
        self._recording.registrations[urn] = Registration(
            urn=urn,
            type_token=request.type,
            name=request.name,
            parent=None if "::pulumi:pulumi:Stack::" in request.parent else request.parent or None,
            provider=provider,
            depends_on=tuple(sorted(_dependencies(request))),
            inputs=readable(request.object),
            options=_options(request),
        )
        state = struct_pb2.Struct()
        state.CopyFrom(request.object)
        identifier = ""
        if not self._preview:
            identifier = f"{request.name}-id"
            added = self._outputs(request.type, readable(request.object))
            state.MergeFrom(_sync_await(rpc.serialize_properties(added, {})))
        if not request.custom and not request.remote:
            state.Clear()
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, identifier, readable(state))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identifier, object=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        self._recording.outputs[request.urn] = readable(request.outputs)
        return empty_pb2.Empty()


def record(
    program: Callable[[], None] | None = None,
    *,
    stack_name: str,
    config: Mapping[str, str],
    secret_keys: list[str] | None = None,
    preview: bool = True,
    outputs: Outputs = no_outputs,
) -> Recording:
    """Run a program (by default the project's own) and give back what it registered.

    Whatever it raises, `pulumi.RunError` for wrong settings among it, comes through.
    """
    recording = Recording()
    monitor = RecordingMonitor(recording, outputs, preview=preview)
    settings.configure(
        mocks.MockSettings(  # type: ignore[no-untyped-call]
            monitor=monitor,
            monitor_features=set(monitor.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures),  # type: ignore[no-untyped-call]
            engine=mocks.MockEngine(logging.getLogger("pulumi")),
            project=PROJECT,
            stack=stack_name,
            dry_run=preview,
            organization=None,
            callbacks=None,
        )
    )
    settings.set_root_resource(None)  # type: ignore[arg-type]
    pulumi.runtime.set_all_config(_unasked(config), secret_keys or [])
    _sync_await(stack.run_in_stack(program or run_program))
    return recording


def _unasked(config: Mapping[str, str]) -> dict[str, str]:
    """The config with live checks off: a plan must not depend on what a cloud answers."""
    key = f"{PROJECT}:safety"
    try:
        safety = json.loads(config.get(key, "{}"))
    except ValueError:
        return dict(config)  # the settings refuse it
    if not isinstance(safety, dict) or safety.get("liveChecks", True) is not True:
        return dict(config)
    return {**config, key: json.dumps({**safety, "liveChecks": False})}


def run_program() -> None:
    """Run `__main__.py` as the language host does."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def readable(message: struct_pb2.Struct) -> dict[str, Any]:
    """A wire-format object as plain values, without its nulls: to the engine they are absent."""
    found = {key: _readable(value) for key, value in sorted(message.fields.items())}
    return {key: value for key, value in found.items() if value is not None}


def _readable(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value == rpc.UNKNOWN else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "list_value":
        return [_readable(item) for item in value.list_value.values]
    if kind == "struct_value":
        if value.struct_value.fields[_SIGNATURE].string_value == _SIGNATURE_SECRET:
            return SECRET
        value.struct_value.fields.pop(_SIGNATURE)
        return readable(value.struct_value)
    return value.bool_value if kind == "bool_value" else None


def _dependencies(request: Any) -> set[str]:
    found = set(request.dependencies)
    for dependencies in request.propertyDependencies.values():
        found.update(dependencies.urns)
    return found


def _options(request: Any) -> dict[str, Any]:
    timeouts = request.customTimeouts
    options = {
        "protect": request.protect,
        "deleteBeforeReplace": request.deleteBeforeReplace,
        "ignoreChanges": list(request.ignoreChanges),
        "replaceOnChanges": list(request.replaceOnChanges),
        "retainOnDelete": request.retainOnDelete,
        "customTimeouts": {
            name: getattr(timeouts, name)
            for name in ("create", "update", "delete")
            if getattr(timeouts, name)
        },
        "onError": list(request.hooks.on_error),
        "transforms": len(request.transforms),
    }
    return {name: value for name, value in options.items() if value}
