"""What a program's change means for a resource: nothing, an update, or a replacement.

Compares the inputs that the engine has kept with the new ones, as the real provider's schema would: an unset value
equals its default and Terraform's zero value, sets have no order, a reference has several spellings, and what Google
may set by itself is kept when the program does not give it. What Google volunteers (`VOLUNTEERED`) is compared with
the resource's state, because there the real provider never comes to rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from simulator.cloud.kinds.base import Kind, last_part
from simulator.cloud.replacements import KEPT_WHEN_UNSET, REFERENCES, REPLACES, UNORDERED, VOLUNTEERED
from simulator.cloud.wire import Unknown

Change = Literal["add", "delete", "update"]


@dataclass(frozen=True)
class Difference:
    """One changed input."""

    path: str
    """As the engine writes it: `nodeConfig.labels.a`, `nodeLocations[0]`."""
    change: Change
    replaces: bool


@dataclass(frozen=True)
class Diff:
    """All changed inputs of a resource."""

    differences: list[Difference]
    deletes_before_replace: bool

    @property
    def replaces(self) -> list[str]:
        """Top-level inputs that replace it."""
        return sorted({_top(item.path) for item in self.differences if item.replaces})

    @property
    def changed(self) -> list[str]:
        """Top-level inputs that changed."""
        return sorted({_top(item.path) for item in self.differences})


def compare(
    kind: Kind,
    old_inputs: Mapping[str, Any],
    old_state: Mapping[str, Any],
    new_inputs: Mapping[str, Any],
    ignored: list[str],
) -> Diff:
    """How the new inputs differ from the resource as the engine knows it."""
    comparison = _Comparison(kind)
    old = {name: value for name, value in old_inputs.items() if name != "__defaults"}
    new = {name: value for name, value in new_inputs.items() if name != "__defaults"}
    found = list(comparison.objects(old, new, "", ""))
    found += [
        Difference(path, "delete", replaces=False)
        for path in VOLUNTEERED.get(kind.token, ())
        if _at(old_state, path) is not None and _at(old, path) is None and _at(new, path) is None
    ]
    found = [item for item in found if not any(_is_below(item.path, path) for path in ignored)]
    # The engine must delete first when the new one would have the same, fixed name.
    is_named = kind.is_autonamed and "name" not in (new_inputs.get("__defaults") or [])
    same_name = not kind.is_autonamed or (is_named and old.get("name") == new.get("name"))
    return Diff(found, same_name and any(item.replaces for item in found))


class _Comparison:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._replaces = REPLACES[kind.token]
        self._unordered = UNORDERED.get(kind.token, frozenset())
        self._kept = KEPT_WHEN_UNSET.get(kind.token, frozenset())

    def objects(
        self, old: Mapping[str, Any], new: Mapping[str, Any], path: str, schema_path: str
    ) -> Iterator[Difference]:
        for name in sorted({*old, *new}):
            here, schema_here = _join(path, name), f"{schema_path}.{name}".lstrip(".")
            yield from self._values(old.get(name), new.get(name), here, schema_here)

    def _values(self, old: Any, new: Any, path: str, schema_path: str) -> Iterator[Difference]:
        if isinstance(new, Unknown):
            yield self._difference(path, schema_path, "update")
            return
        if self._same(old, new, schema_path):
            return
        if new is None:
            if not self._stays(old, schema_path):
                yield self._difference(path, schema_path, "delete")
        elif old is None:
            if not self._is_default(new, schema_path):
                yield self._difference(path, schema_path, "add")
        elif isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from self.objects(old, new, path, schema_path)
        elif isinstance(old, list) and isinstance(new, list) and schema_path not in self._unordered:
            yield from self._lists(old, new, path, schema_path)
        else:
            yield self._difference(path, schema_path, "update")

    def _lists(self, old: list[Any], new: list[Any], path: str, schema_path: str) -> Iterator[Difference]:
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            yield from self._values(before, after, f"{path}[{index}]", schema_path)

    def _same(self, old: Any, new: Any, schema_path: str) -> bool:
        if schema_path in self._unordered and isinstance(old, list) and isinstance(new, list):
            return sorted(map(_canonical, old)) == sorted(map(_canonical, new))
        if isinstance(old, str) and isinstance(new, str):
            if schema_path in REFERENCES:
                return _same_reference(old, new)
            # Locations are spelt in capitals by Cloud Storage and in small letters by people.
            return old == new or (schema_path == "location" and old.lower() == new.lower())
        return bool(old == new) or (_is_zero(old) and _is_zero(new))

    def _stays(self, old: Any, schema_path: str) -> bool:
        parent = schema_path.rpartition(".")[0]
        if not parent:
            return self._kind.schema.is_kept_when_unset(schema_path) or self._is_default(old, schema_path)
        return schema_path in self._kept or f"{parent}.*" in self._kept or self._is_default(old, schema_path)

    def _is_default(self, value: Any, schema_path: str) -> bool:
        return _is_zero(value) or _at(self._kind.defaults, schema_path) == value

    def _difference(self, path: str, schema_path: str, change: Change) -> Difference:
        return Difference(path, change, schema_path in self._replaces)


def _is_zero(value: Any) -> bool:
    """Terraform cannot tell an unset value from these."""
    return value is None or value is False or value in ("", 0, [], {})


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _same_reference(old: str, new: str) -> bool:
    short = [re.sub(r"^https://[^/]+/[^/]+/[^/]+/(?=projects/)", "", text) for text in (old, new)]
    if "/" in short[0] and "/" in short[1]:
        return short[0] == short[1]
    return last_part(old) == last_part(new)


def _join(path: str, name: str) -> str:
    if re.fullmatch(r"[A-Za-z_$][\w$-]*", name) is None:
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def _top(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _is_below(path: str, ignored: str) -> bool:
    return path == ignored or path.startswith((f"{ignored}.", f"{ignored}["))


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
