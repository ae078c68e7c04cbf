"""A stack file as the engine reads it, without the engine.

Owns the reading of `Pulumi.<stack>.yaml` as text: which scalars YAML 1.2 makes numbers, keys given twice, keys
beside `config:`. Owns also the other direction, what the engine would hand a program of it, for `ops render`.
Refuses to decrypt anything, and to open files: the caller reads.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import yaml

from facts.refusal import Refusal
from preflight.keys import full_name, given_twice, nearest
from preflight.problems import Problem, SettingsError

# What the engine keeps in a stack file beside the program's config.
_TOP_LEVEL = ("config", "encryptionsalt", "encryptedkey", "environment", "secretsprovider")


_DATE = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?"


class _Loader(yaml.SafeLoader):
    """YAML as the engine reads it: `on` and `12:30` stay texts, a time has Go's spelling, a key stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node, deep=True))
            if key in seen:
                raise _Doubled(key, key_node.start_mark.line + 1)
            seen.add(key)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0o?[0-7_]+)$", "-+0123456789"),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9][0-9_]*\.[0-9]*)(?:[eE][-+]?[0-9]+)?$|^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$",
        "-+.0123456789",
    ),
    (
        "timestamp",
        rf"^{_DATE}([Tt][0-9:.]{{5,}}(Z|[-+][0-9]{{2}}:[0-9]{{2}})|[ ]{_TIME})?$",
        "0123456789",
    ),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^(?:<<)$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _instant(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        read = loader.construct_yaml_timestamp(node)
    except ValueError:
        return node.value
    if not isinstance(read, datetime):
        read = datetime(read.year, read.month, read.day, tzinfo=UTC)
    elif read.tzinfo is None:
        read = read.replace(tzinfo=UTC)
    zone = read.strftime("%z")
    return f"{read:%Y-%m-%d %H:%M:%S} {zone} {'UTC' if zone == '+0000' else zone}"


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _instant)


class _Doubled(Exception):
    """A key that a mapping has twice."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key = key
        self.line = line


def config_of(text: str, file_name: str) -> dict[str, Any]:
    """The config mapping of a stack file; `SettingsError` when the file holds none."""
    try:
        # The loader is PyYAML's safe one with fewer scalar types.
        content = yaml.load(text, Loader=_Loader)  # noqa: S506
    except _Doubled as doubled:
        raise _refused(
            file_name,
            f"must hold `{doubled.key}` once",
            f"line {doubled.line} has it again, and the engine refuses such a file",
            "Remove one of them.",
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(error, "problem", None) or "it cannot be read"
        raise _refused(
            file_name,
            "must be YAML",
            f"{where}{what}",
            "Tabs cannot indent; quote texts that begin with a sign.",
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get("config"), dict):
        raise _refused(
            file_name,
            "must hold a mapping `config:`",
            "the engine reads settings from there and nowhere else",
            "Write `config:` and put the keys below it, indented.",
        )
    repeated = [key for key, count in Counter(map(full_name, content["config"])).items() if count > 1]
    if repeated:
        raise SettingsError(map(given_twice, repeated))
    strange = [str(key) for key in content if key not in _TOP_LEVEL]
    if strange:
        raise SettingsError(_beside_config(key) for key in strange)
    config: dict[str, Any] = content["config"]
    return config


def engine_config(config: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """What the engine hands a program: every value as a text, and the keys that are secret.

    A closed secret becomes the text `[secret]`: nothing here can open it. One inside a section makes the whole
    section secret, as the engine does.
    """
    texts: dict[str, str] = {}
    secret_keys: list[str] = []
    for key, value in config.items():
        full_key = full_name(key)
        opened = _opened(value)
        if opened != value:
            secret_keys.append(full_key)
        texts[full_key] = opened if isinstance(opened, str) else json.dumps(opened)
    return texts, secret_keys


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return "[secret]"
        return {key: _opened(item) for key, item in value.items()}
    return [_opened(item) for item in value] if isinstance(value, list) else value


def _beside_config(key: str) -> Problem:
    way_out = "Indent it below `config:`." if ":" in key else f"Known are {', '.join(_TOP_LEVEL)}."
    if ":" not in key and (near := nearest(key, _TOP_LEVEL)):
        way_out = f"Did you mean `{near}`?"
    refusal = Refusal(
        "must not stand beside `config:`", reason="the engine reads it from no such place", way_out=way_out
    )
    return Problem(key, str(refusal))


def _refused(file_name: str, rule: str, reason: str, way_out: str) -> SettingsError:
    return SettingsError([Problem(file_name, str(Refusal(rule, reason=reason, way_out=way_out)))])
