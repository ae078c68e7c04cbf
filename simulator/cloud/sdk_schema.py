"""What pulumi-gcp says of a resource type: its inputs, their types, which are required, and its outputs.

The schema is read from the SDK's own classes at the pinned version, so no copy of it can grow stale. It refuses an
unknown input, a wrong type and a missing required input, each with its path; whether Google's API knows the field
and takes the value is `discovery`'s part.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi import _types

from simulator.cloud.wire import Unknown

_DEFAULTS_KEY = "__defaults"


@dataclass(frozen=True)
class Problem:
    """One input that cannot be."""

    path: str
    reason: str


@dataclass(frozen=True)
class ResourceSchema:
    """Inputs and outputs of one resource type, from its `…Args` class and its resource class."""

    resource_class: type
    args_class: type

    @functools.cached_property
    def input_types(self) -> dict[str, Any]:
        return _types.input_type_types(self.args_class)

    @functools.cached_property
    def output_names(self) -> frozenset[str]:
        return frozenset(_types.resource_types(self.resource_class))

    @functools.cached_property
    def always_set_outputs(self) -> frozenset[str]:
        """Outputs that are never absent: required inputs, and what the provider or Google fills in."""
        return frozenset(
            name
            for _python_name, name, prop in _types._py_properties(self.resource_class)  # noqa: SLF001
            if "Optional" not in repr(prop.fget.__annotations__.get("return"))
        )

    def is_kept_when_unset(self, name: str) -> bool:
        """True for a top-level input that keeps its value when the program stops giving it.

        Terraform calls such an attribute optional and computed; the SDK shows it as an optional input whose
        output is always set.
        """
        return name in self.always_set_outputs and name not in _required(self.args_class)

    def problems(self, inputs: Mapping[str, Any]) -> list[Problem]:
        """Every input that the schema refuses."""
        given = {name: value for name, value in inputs.items() if name != _DEFAULTS_KEY}
        return list(_object_problems(self.args_class, given, ""))


def _object_problems(args_class: type, value: Mapping[str, Any], prefix: str) -> Iterator[Problem]:
    types = _types.input_type_types(args_class)
    for name, item in value.items():
        path = f"{prefix}{name}"
        if name not in types:
            yield Problem(path, f"is no input of pulumi-gcp's {args_class.__name__}: {_nearest(name, types)}")
        elif item is not None:
            yield from _value_problems(types[name], item, path)
    for name in _required(args_class):
        if value.get(name) is None:
            yield Problem(
                f"{prefix}{name}", f"is required by pulumi-gcp's {args_class.__name__} and not given"
            )


def _value_problems(wanted: Any, value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, Unknown):
        return
    wanted = _types.unwrap_type(wanted)
    origin = typing.get_origin(wanted)
    if origin in (list, collections.abc.Sequence):
        if not isinstance(value, list):
            yield Problem(path, f"must be a list, not {_kind(value)}")
            return
        for index, item in enumerate(value):
            yield from _value_problems(typing.get_args(wanted)[0], item, f"{path}[{index}]")
    elif origin in (dict, collections.abc.Mapping):
        if not isinstance(value, Mapping):
            yield Problem(path, f"must be a mapping, not {_kind(value)}")
            return
        for key, item in value.items():
            yield from _value_problems(typing.get_args(wanted)[1], item, f"{path}.{key}")
    elif isinstance(wanted, type) and _types.is_input_type(wanted):
        if not isinstance(value, Mapping):
            yield Problem(path, f"must be an object, not {_kind(value)}")
            return
        yield from _object_problems(wanted, value, f"{path}.")
    elif not _is_scalar(wanted, value):
        yield Problem(path, f"must be {_SCALARS.get(wanted, str(wanted))}, not {_kind(value)}")


_SCALARS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _is_scalar(wanted: Any, value: Any) -> bool:
    if wanted is bool:
        return isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def _kind(value: Any) -> str:
    return {bool: "true or false", str: "text", list: "a list", dict: "an object"}.get(
        type(value), "a number"
    )


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = [other for other in sorted(known) if other.lower().startswith(name[:4].lower())]
    return f"did you mean {', '.join(close)}?" if close else "remove it, or check the spelling"


@functools.cache
def _required(args_class: type) -> frozenset[str]:
    names = _types.input_type_py_to_pulumi_names(args_class)
    parameters = inspect.signature(args_class.__init__).parameters
    return frozenset(
        names[name]
        for name, parameter in parameters.items()
        if name in names and parameter.default is inspect.Parameter.empty
    )
