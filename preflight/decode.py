"""From what config holds to settings: raw values, types, then the rules that join sections.

Owns the order of checks. Every section is judged by itself, so that a fault in one hides none in another; a rule
that joins sections runs when all sections that it reads are sound. Refuses to stop at the first problem.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from facts.refusal import Refusal, looks_like_credential
from preflight import rules
from preflight.explain import problem_from
from preflight.keys import section_keys, unknown_key
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
    raw = dict(_sections(config, model, problems))
    unsound = {problem.path.split(":", 1)[-1].split(".")[0].split("[")[0] for problem in problems}
    raw = {key: value for key, value in raw.items() if key not in unsound}
    settings, broken = _validated(raw, model, problems, unsound)
    moment = now or datetime.now(UTC)
    for needed, rule in rules.ALL:
        if not broken.intersection(needed):
            problems.extend(at(_as_written(path, raw), refusal) for path, refusal in rule(settings, moment))
    if problems:
        raise SettingsError(problems)
    return settings


def _sections(
    config: Mapping[str, Any], model: type[BaseModel], problems: list[Problem]
) -> Iterator[tuple[str, Any]]:
    """Our sections with their structured values; everything that cannot be read becomes a problem."""
    known = section_keys(model)
    seen: set[str] = set()
    for full_key, value in config.items():
        key = str(full_key) if ":" in str(full_key) else f"{NAMESPACE}:{full_key}"
        namespace, _, name = key.partition(":")
        if namespace == "pulumi":
            continue
        section = "project" if key == "gcp:project" else name
        if (
            (key != "gcp:project" and namespace != NAMESPACE)
            or section not in known
            or key == f"{NAMESPACE}:project"
        ):
            problems.append(unknown_key(key, known))
            continue
        if section in seen:
            problems.append(
                Problem(
                    key,
                    str(
                        Refusal(
                            "must be given once",
                            reason=f"`{name}` and `{key}` are the same key to the engine",
                            way_out="Remove one of them.",
                        )
                    ),
                )
            )
            continue
        seen.add(section)
        try:
            yield section, check_token(value) if section == TOKEN else _structured(section, value)
        except Refusal as refusal:
            problems.append(Problem(key, str(refusal)))


def _structured(section: str, value: Any) -> Any:
    """A section's value as a structure of plain types."""
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
    if section == "projectNumber" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _plain(value, section)


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


def _plain(value: Any, path: str) -> Any:
    """The value without YAML's own types; refuses what must not be secret, or must have been."""
    if isinstance(value, Sealed) or (isinstance(value, dict) and set(value) == {"secure"}):
        raise Refusal(
            "must not be a secret",
            reason=f"the plan's shape has to be readable; only {TOKEN} is a secret",
            way_out=f"Remove `{path}` and set it again without --secret.",
        )
    if looks_like_credential(value):
        raise Refusal(
            "must not hold a credential",
            got=value,
            reason="this key is stored and shown in plain text",
            way_out=f"Revoke it, remove it here, and run: {SECRET_COMMAND}",
        )
    if isinstance(value, dict):
        return {str(key): _plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, date):
        return value.isoformat()
    return value


def _validated(
    raw: dict[str, Any], model: "type[Settings]", problems: list[Problem], unsound: set[str]
) -> tuple["Settings", set[str]]:
    """The settings with unsound sections left out, and the names of those sections."""
    broken = set(unsound)
    try:
        return model.model_validate(raw | _missing_stand_ins(raw, unsound)), broken
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            problems.append(problem_from(detail, raw, model))
            broken.add(str(detail["loc"][0]))
    sound = {key: value for key, value in raw.items() if key not in broken}
    return model.model_validate(sound | _missing_stand_ins(sound, set(_STAND_INS))), broken


def _as_written(path: str, raw: dict[str, Any]) -> str:
    """The path without an index that the person did not write: one mapping may stand for a list of one."""
    section, bracket, rest = path.partition("[0]")
    return section + rest if bracket and isinstance(raw.get(section), dict) else path


def _missing_stand_ins(raw: dict[str, Any], allowed: set[str]) -> dict[str, Any]:
    return {key: value for key, value in _STAND_INS.items() if key in allowed and key not in raw}
