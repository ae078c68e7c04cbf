"""From what config holds to settings: raw values, types, then the rules that join sections.

Owns the order of checks. Every section is judged by itself, so that a fault in one hides none in another; a rule
that joins sections runs when all sections that it reads are sound. Refuses to stop at the first problem.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from facts.refusal import Refusal, looks_like_credential
from preflight import rules
from preflight.explain import problem_from
from preflight.keys import full_name, given_twice, nearest, section_keys, unknown_key
from preflight.problems import NAMESPACE, Problem, SettingsError, at
from preflight.sealed import SECRET_COMMAND, Sealed, check_token

if TYPE_CHECKING:
    from settings import Settings

TOKEN = "hfToken"  # noqa: S105 (a key's name)
# Stand-ins for required sections that are themselves wrong, so that the others are judged all the same.
_STAND_INS = {"project": "stand-in-project", "zone": "us-central1-ai1a"}


def settings_from(
    config: Mapping[str, Any], model: "type[Settings]", *, now: datetime | None = None
) -> "Settings":
    """The settings, or `SettingsError` with every problem."""
    problems: list[Problem] = []
    meant: set[str] = set()
    raw = dict(_sections(config, model, problems, meant))
    unsound = {_section_of(problem.path) for problem in problems} | meant
    settings, broken = _validated(raw, model, problems, unsound)
    moment = now or datetime.now(UTC)
    for needed, rule in rules.ALL:
        if not broken.intersection(needed):
            problems.extend(at(_as_written(path, raw), refusal) for path, refusal in rule(settings, moment))
    if problems:
        raise SettingsError(problems)
    return settings


def _sections(
    config: Mapping[str, Any], model: type[BaseModel], problems: list[Problem], meant: set[str]
) -> Iterator[tuple[str, Any]]:
    """Our sections with their structured values; everything that cannot be read becomes a problem.

    `meant` gathers the sections that a misspelt key probably meant: nothing is said about their absence.
    """
    known = section_keys(model)
    seen: set[str] = set()
    for full_key, value in config.items():
        key = full_name(full_key)
        namespace, _, name = key.partition(":")
        if namespace == "pulumi":
            continue
        ours = key == "gcp:project" or (namespace == NAMESPACE and name in known and name != "project")
        if not ours:
            problems.append(unknown_key(key, known))
            meant.add(nearest(name, known) or name)
        elif name in seen:
            problems.append(given_twice(key))
        else:
            seen.add(name)
            try:
                yield name, check_token(value) if name == TOKEN else _structured(name, value, problems)
            except Refusal as refusal:
                problems.append(Problem(key, str(refusal)))


def _within(path: str, said: set[str]) -> bool:
    """True when something was said about that place, or about what holds it."""
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in said)


def _section_of(path: str) -> str:
    return re.split(r"[.[]", path.split(":", 1)[-1], maxsplit=1)[0]


def _structured(section: str, value: Any, problems: list[Problem]) -> Any:
    """A section's value as a structure of plain types."""
    if value in ("", "null"):
        # How the engine hands over a key without a value.
        value = None
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value, object_pairs_hook=_unique)
        except json.JSONDecodeError as error:
            raise Refusal(
                "must be a JSON text or a YAML structure",
                got=value,
                reason=f"as JSON it breaks off at character {error.pos + 1}",
                way_out=f"Write it as YAML in the stack file, or use `pulumi config set --path {NAMESPACE}:{section}.…`.",
            ) from None
    if section in ("project", "projectNumber") and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _plain(value, section, problems)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Refusal(
                "must hold every key once",
                got=f"{key} twice",
                reason="the second silently replaces the first",
                way_out="Remove one of them.",
            )
        found[key] = value
    return found


def _plain(value: Any, path: str, problems: list[Problem]) -> Any:
    """The value without YAML's own types; what no key may hold becomes a problem."""
    if isinstance(value, dict) and set(value) != {"secure"}:
        return {str(key): _plain(item, f"{path}.{key}", problems) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{path}[{index}]", problems) for index, item in enumerate(value)]
    if isinstance(value, date):
        return value.isoformat()
    refusal = _never_held(value, path)
    if refusal is not None:
        full_key = "gcp:project" if path == "project" else f"{NAMESPACE}:{path}"
        problems.append(Problem(full_key, str(refusal)))
    return value


def _never_held(value: Any, path: str) -> Refusal | None:
    if value is None:
        return Refusal(
            "must have a value",
            reason="the key stands there alone, which could mean all defaults or nothing at all",
            way_out="Fill it in, or remove the key.",
        )
    if isinstance(value, Sealed | dict):
        return Refusal(
            "must not be a secret",
            reason=f"the plan's shape has to be readable; only `{TOKEN}` is a secret",
            way_out=f"Remove `{path}` and set it again without --secret.",
        )
    if looks_like_credential(value):
        return Refusal(
            "must not hold a credential",
            got=value,
            reason="this key is stored and shown in plain text",
            way_out=f"Revoke it, remove it here, and run: {SECRET_COMMAND}",
        )
    return None


def _validated(
    raw: dict[str, Any], model: "type[Settings]", problems: list[Problem], unsound: set[str]
) -> tuple["Settings", set[str]]:
    """The settings with unsound sections left out, and the names of those sections."""
    broken = set(unsound)
    try:
        return model.model_validate(raw | _missing_stand_ins(raw, unsound)), broken
    except ValidationError as error:
        said = {problem.path for problem in problems}
        found = [problem_from(detail, raw, model) for detail in error.errors(include_url=False)]
        problems.extend(problem for problem in found if not _within(problem.path, said))
        broken.update(_section_of(problem.path) for problem in found)
    sound = {key: value for key, value in raw.items() if key not in broken}
    return model.model_validate(sound | _missing_stand_ins(sound, set(_STAND_INS))), broken


def _as_written(path: str, raw: dict[str, Any]) -> str:
    """The path without an index that the person did not write: one mapping may stand for a list of one."""
    section, bracket, rest = path.partition("[0]")
    return section + rest if bracket and isinstance(raw.get(section), dict) else path


def _missing_stand_ins(raw: dict[str, Any], allowed: set[str]) -> dict[str, Any]:
    return {key: value for key, value in _STAND_INS.items() if key in allowed and key not in raw}
