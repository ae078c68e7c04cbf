"""Google's own discovery documents as the second source for every `gcp:` input.

Pure: `fields(token, inputs)` maps each input to its REST field (or to the reason why there is none), and
`problems(token, inputs)` refuses what the API does not know: a field that does not exist or is output only, a wrong
type, a value outside the enum. The documents are those that google-api-python-client ships; the mapping's
exceptions are tables in `rest_fields`. Values that are not known yet (`UNKNOWN`, or `[unknown]` in a rendered plan)
and secrets (`[secret]`) are judged by their place only.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from simulator.cloud.rest_fields import MESSAGES, RENAMED, WITHOUT_FIELD
from simulator.cloud.sdk_schema import Problem
from simulator.cloud.wire import Unknown

_PLACEHOLDERS = ("[unknown]", "[secret]")
_IGNORED = ("__defaults",)


@dataclass(frozen=True)
class FieldUse:
    """One input of a resource, and the REST field that takes it."""

    input_path: str
    """Pulumi's path, elements of a list written `[]`."""
    exact_path: str
    """The same with the element's index: `allows[0].protocol`."""
    value: Any
    rest_path: str | None
    """Path below the REST message, or None where the API has no field."""
    without_field_because: str | None
    table_entry: str | None
    """The entry of `RENAMED` or `WITHOUT_FIELD` that decided, if one did."""


def fields(token: str, inputs: Mapping[str, Any]) -> list[FieldUse]:
    """Every input, leaves and what holds them, with its place in the REST message."""
    if token not in MESSAGES:
        raise KeyError(f"{token} has no REST message in simulator/cloud/rest_fields.py: add it to MESSAGES")
    given = {name: value for name, value in inputs.items() if name not in _IGNORED}
    return [
        use
        for name, value in given.items()
        if value is not None
        for use in _use(token, value, name, name, name)
    ]


def problems(token: str, inputs: Mapping[str, Any]) -> list[Problem]:
    """Every input that Google's API would not take."""
    return [problem for use in fields(token, inputs) for problem in _field_problems(token, use)]


def unused_entries(plans: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Entries `token path` of `WITHOUT_FIELD` that none of the `(token, inputs)` pairs needs.

    Types that do not occur among the pairs are left out: nothing can be said of them.
    """
    given = list(plans)
    needed = {(token, use.table_entry) for token, inputs in given for use in fields(token, inputs)}
    return [
        f"{token} {path}"
        for token in dict(given)
        for path in WITHOUT_FIELD.get(token, {})
        if (token, path) not in needed
    ]


def lost_entries() -> list[str]:
    """Entries `token path` of `RENAMED` whose place is not in Google's API."""
    return [
        f"{token} {path}"
        for token, entries in RENAMED.items()
        for path, rest_path in entries.items()
        if _look_up(token, rest_path) is None
    ]


def _use(token: str, value: Any, path: str, exact_path: str, same_name: str) -> Iterator[FieldUse]:
    reason = WITHOUT_FIELD.get(token, {}).get(path)
    if reason is not None:
        yield FieldUse(path, exact_path, value, None, reason, path)
        return
    renamed = RENAMED.get(token, {}).get(path)
    rest_path = same_name if renamed is None else renamed
    yield FieldUse(path, exact_path, value, rest_path, None, path if renamed is not None else None)
    schema = _look_up(token, rest_path)
    if schema is None or _is_map(schema):
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            if item is not None:
                yield from _use(token, item, f"{path}.{name}", f"{exact_path}.{name}", f"{rest_path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _use(token, item, f"{path}[]", f"{exact_path}[{index}]", f"{rest_path}[]")


def _is_map(schema: Mapping[str, Any]) -> bool:
    """True for a map of free keys (labels): what lies below it are data, not fields."""
    return "properties" not in schema and schema.get("additionalProperties", {}).get("type") == "string"


def _field_problems(token: str, use: FieldUse) -> Iterator[Problem]:
    if use.rest_path is None:
        return
    message = MESSAGES[token]
    where = f"{message.schema}.{use.rest_path} of {' and '.join(message.documents)}"
    schema = _look_up(token, use.rest_path)
    if schema is None:
        yield Problem(use.exact_path, f"is no field of Google's API: there is no {where}")
        return
    if schema.get("readOnly"):
        yield Problem(use.exact_path, f"is output only in Google's API: {where}")
    if isinstance(use.value, Unknown) or use.value in _PLACEHOLDERS:
        return
    wanted = _wanted(schema)
    if not _fits(wanted, schema, use.value):
        yield Problem(use.exact_path, f"must be {wanted} for Google's API ({where}), not {use.value!r}")
    allowed = schema.get("enum")
    # The provider leaves an empty text out of the request, so it is "not given" rather than a value.
    if allowed and isinstance(use.value, str) and use.value and use.value not in allowed:
        yield Problem(use.exact_path, f"must be one of {', '.join(allowed)} ({where}), not {use.value!r}")


def _wanted(schema: Mapping[str, Any]) -> str:
    return "object" if "properties" in schema else str(schema.get("type", "object"))


def _fits(wanted: str, schema: Mapping[str, Any], value: Any) -> bool:
    if wanted == "boolean":
        return isinstance(value, bool)
    if wanted in ("integer", "number"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted == "string":
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return isinstance(value, str) or (is_number and "int64" in schema.get("format", ""))
    if wanted == "array":
        return isinstance(value, list)
    # A list of messages with a key inside is a map of messages in the API (maintenance exclusions).
    return isinstance(value, Mapping | list)


@functools.cache
def _document(name: str) -> dict[str, Any]:
    folder = resources.files("googleapiclient") / "discovery_cache" / "documents"
    document: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return document["schemas"]


@functools.cache
def _look_up(token: str, rest_path: str) -> dict[str, Any] | None:
    message = MESSAGES[token]
    for document in message.documents:
        schemas = _document(document)
        found = _walk(schemas, schemas[message.schema], rest_path)
        if found is not None:
            return found
    return None


def _walk(schemas: Mapping[str, Any], schema: dict[str, Any], rest_path: str) -> dict[str, Any] | None:
    for part in rest_path.split("."):
        name = part.rstrip("[]{}")
        field = schema.get("properties", {}).get(name)
        if field is None:
            return None
        schema = _resolved(schemas, field)
        for _ in range(part.count("[]")):
            if "items" not in schema:
                return None
            schema = _resolved(schemas, schema["items"])
        for _ in range(part.count("{}")):
            if "additionalProperties" not in schema:
                return None
            schema = _resolved(schemas, schema["additionalProperties"])
    return schema


def _resolved(schemas: Mapping[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in field:
        return field
    # A field may be output only although its message is not.
    return {**schemas[field["$ref"]], **({"readOnly": True} if field.get("readOnly") else {})}
