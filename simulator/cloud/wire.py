"""Property values as the engine sends them, and as the rest of the simulator sees them.

Plain JSON values in, plain JSON values out; what is not yet known is `UNKNOWN`, and which places hold secrets
travels beside the values as a set of paths. The SDK's own `PropertyValue` cannot be used for this: its
`marshal` raises on a computed value and its `unmarshal` reads one as an ordinary string (seen in 3.272), so the
first preview of an empty region could not pass.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import struct_pb2
from pulumi.runtime import rpc

Path = tuple[str | int, ...]


class Unknown(enum.Enum):
    """The type of `UNKNOWN`: a value that only the coming update will know."""

    VALUE = "[unknown]"

    def __repr__(self) -> str:
        return self.value


UNKNOWN: Final = Unknown.VALUE

# Pulumi's protocol has one text for each type of unknown value; we send the one for strings, which the
# SDKs take for any type (pulumi sdk/go/common/resource/plugin/rpc.go).
_UNKNOWN_TEXTS: Final = frozenset(
    {
        rpc.UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
_SIGNATURE: Final = rpc._special_sig_key  # noqa: SLF001 - the protocol's constant, public nowhere else
_SECRET: Final = rpc._special_secret_sig  # noqa: SLF001
_OUTPUT: Final = rpc._special_output_value_sig  # noqa: SLF001


@dataclass(frozen=True)
class Properties:
    """A resource's properties, and the places in them that are secret."""

    values: dict[str, Any] = field(default_factory=dict)
    secrets: frozenset[Path] = frozenset()


def read(message: struct_pb2.Struct) -> Properties:
    """Decode what the engine sent."""
    secrets: set[Path] = set()
    values = {key: _read(value, (key,), secrets) for key, value in message.fields.items()}
    return Properties(values, frozenset(secrets))


def write(values: Mapping[str, Any], secrets: Iterable[Path] = ()) -> struct_pb2.Struct:
    """Encode for the engine; what stands at one of `secrets` is marked as secret."""
    places = frozenset(secrets)
    return struct_pb2.Struct(fields={key: _write(value, (key,), places) for key, value in values.items()})


def has_unknown(value: Any) -> bool:
    """True if any part of `value` is not known yet."""
    if isinstance(value, Unknown):
        return True
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return False


def _read(value: struct_pb2.Value, path: Path, secrets: set[Path]) -> Any:
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWN_TEXTS else value.string_value
    if kind == "list_value":
        return [_read(item, (*path, index), secrets) for index, item in enumerate(value.list_value.values)]
    fields = value.struct_value.fields
    signature = fields[_SIGNATURE].string_value if _SIGNATURE in fields else None
    if signature is None:
        return {key: _read(item, (*path, key), secrets) for key, item in fields.items()}
    if signature == _SECRET or (signature == _OUTPUT and fields["secret"].bool_value):
        secrets.add(path)
    if signature == _OUTPUT and "value" not in fields:
        return UNKNOWN
    if signature in (_SECRET, _OUTPUT):
        return _read(fields["value"], path, secrets)
    raise ValueError(
        f"`{'.'.join(map(str, path))}` holds an asset, an archive or a resource reference: the simulated "
        "region's resource types take plain values only. Pass the value itself."
    )


def _write(value: Any, path: Path, secrets: frozenset[Path]) -> struct_pb2.Value:
    if path in secrets:
        inner = _write(value, path, secrets - {path})
        marked = {_SIGNATURE: struct_pb2.Value(string_value=_SECRET), "value": inner}
        return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=marked))
    if isinstance(value, Unknown):
        return struct_pb2.Value(string_value=rpc.UNKNOWN)
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        fields = {str(key): _write(item, (*path, str(key)), secrets) for key, item in value.items()}
        return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))
    items = [_write(item, (*path, index), secrets) for index, item in enumerate(value)]
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=items))
