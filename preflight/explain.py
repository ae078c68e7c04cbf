"""pydantic's findings in our own words.

Owns the sentence for every kind of finding that the models can produce; a test provokes each. Refuses to show a
finding that it does not know as anything but itself.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import BaseModel

from facts.refusal import Refusal, shown
from preflight.keys import places, unknown_inner_key
from preflight.problems import NAMESPACE, Problem

_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "datetime_type": "a time",
    "datetime_parsing": "a time",
}


def problem_from(finding: Any, raw: dict[str, Any], model: type[BaseModel]) -> Problem:
    """The problem that one finding stands for."""
    location = [part for part in finding["loc"] if part != "[key]"]
    path, node = _walk(location, raw, model)
    full = "gcp:project" if path == "project" else f"{NAMESPACE}:{path}"
    return Problem(full, str(_refusal(finding, location, full, node, model)))


def _refusal(
    finding: Any, location: Sequence[Any], path: str, node: dict[str, Any], model: type[BaseModel]
) -> Refusal:
    kind, got, context = finding["type"], finding["input"], finding.get("ctx", {})
    raised = context.get("error")
    about = _about(node)
    if kind == "value_error" and isinstance(raised, Refusal):
        return raised
    if kind == "missing":
        key = location[-1] if len(location) > 1 else path
        return Refusal("must be given", reason=about, way_out=f"Add `{key}`.")
    if kind == "extra_forbidden":
        schema = _schema(model)
        _, parent = _walk(location[:-1], {}, model)
        return unknown_inner_key(str(location[-1]), list(parent.get("properties", {})), places(schema))
    if kind == "literal_error":
        return _not_a_choice(got, node, about)
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = context["ge"] if kind == "greater_than_equal" else context["le"]
        side = "least" if kind == "greater_than_equal" else "most"
        limits = f"from {node.get('minimum', '…')} to {node.get('maximum', '…')}"
        return Refusal(f"must be at {side} {bound}", got=got, reason=about, way_out=f"Use a number {limits}.")
    if kind == "too_short":
        return Refusal("must not be an empty list", reason=about, way_out="Fill it in, or remove the key.")
    if kind in _WANTED:
        return _wrong_type(_WANTED[kind], got, about, list(node.get("properties", {})))
    return Refusal(f"must be right ({finding['msg']})", got=got, reason=about, way_out="Correct the value.")


def _not_a_choice(got: Any, node: dict[str, Any], about: str) -> Refusal:
    choices = [str(choice) for choice in _choices(node)]
    near = get_close_matches(str(got).upper(), [choice.upper() for choice in choices], n=1, cutoff=0.6)
    meant = next((choice for choice in choices if near and choice.upper() == near[0]), None)
    return Refusal(
        f"must be one of {', '.join(choices)}" if len(choices) > 2 else f"must be {' or '.join(choices)}",
        got=got,
        reason=about,
        way_out=f"Did you mean {meant}?"
        if meant
        else "Use one of those."
        if len(choices) > 1
        else f"Use {choices[0]}.",
    )


def _choices(node: dict[str, Any]) -> list[Any]:
    if "enum" in node:
        return list(node["enum"])
    if "const" in node:
        return [node["const"]]
    return [choice for option in node.get("anyOf", []) for choice in _choices(option)]


def _wrong_type(wanted: str, got: Any, about: str, keys: list[str]) -> Refusal:
    reason, way_out = about, f"Give {wanted}."
    if wanted == "a text" and isinstance(got, bool | int | float):
        kind = "true or false" if isinstance(got, bool) else "a number"
        reason, way_out = f"without quotes YAML reads it as {kind}", f'Write it in quotes: "{shown(got)}".'
    elif wanted == "a whole number" and isinstance(got, str) and got.strip().lstrip("-").isdigit():
        reason, way_out = "quotes make it a text", f"Write {got.strip()} without quotes."
    elif wanted == "a whole number" and isinstance(got, str) and re.fullmatch(r"\d+ ?s(ec\w*)?", got):
        reason, way_out = "the unit is in the key's name", f"Write {re.split('[ s]', got)[0]}."
    elif wanted == "true or false" and isinstance(got, str):
        quoted = got.lower() in ("true", "false")
        reason = "quotes make it a text" if quoted else "the engine reads any other word as a text"
        way_out = "Write true or false, without quotes."
    elif wanted == "a list" and isinstance(got, dict | str):
        reason, way_out = (
            "it is one thing where several may stand",
            "Put it in a list: a hyphen in front, or [ ] around.",
        )
    elif wanted == "a mapping":
        reason = f"its keys are {', '.join(keys)}" if keys else about
        way_out = (
            "Remove the hyphen or the brackets."
            if isinstance(got, list)
            else "Write the keys below it, indented."
        )
    return Refusal(f"must be {wanted}", got=got, reason=reason, way_out=way_out)


def _about(node: dict[str, Any]) -> str:
    text = str(node.get("description", "the program needs it here")).split("\n")[0].rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


def _walk(location: Sequence[Any], raw: Any, model: type[BaseModel]) -> tuple[str, dict[str, Any]]:
    """The path as the person wrote it, and the schema of what stands there."""
    root = _schema(model)
    node: dict[str, Any] = root
    path = ""
    written: Any = raw
    for part in location:
        description = node.get("description")
        node = _step(node, part, root)
        if "description" not in node and description:
            node = {**node, "description": description}
        if isinstance(part, int):
            # A mapping where a list may stand has no index that the person wrote.
            if not isinstance(written, dict):
                path += f"[{part}]"
                written = written[part] if isinstance(written, list) and part < len(written) else None
        elif not isinstance(written, str):
            path += f".{part}" if path else str(part)
            written = written.get(part) if isinstance(written, dict) else None
    return path, node


def _step(node: dict[str, Any], part: Any, root: dict[str, Any]) -> dict[str, Any]:
    for option in _options(node, root):
        if isinstance(part, int) and "items" in option:
            return _resolved(option["items"], root)
        if part in option.get("properties", {}):
            return _resolved(option["properties"][part], root)
        if isinstance(option.get("additionalProperties"), dict) and not isinstance(part, int):
            return _resolved(option["additionalProperties"], root)
    return {}


def _options(node: dict[str, Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    found = [node]
    for option in node.get("anyOf", []):
        found.extend(_options(_resolved(option, root), root))
    return found


def _resolved(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    target = root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}
