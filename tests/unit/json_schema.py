"""As much of JSON Schema as `settings.schema.json` uses; refuses a keyword that it does not know."""

import re
from typing import Any

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
}
# Keywords that say nothing about a value; `format` is left to editors.
_ANNOTATIONS = {"$schema", "$defs", "title", "description", "default", "format"}


def faults(
    value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, path: str = ""
) -> list[str]:
    """Paths and keywords that a value breaks."""
    root = schema if root is None else root
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, path)
    found: list[str] = []
    for keyword, rule in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        found += _broken(value, schema, keyword, rule, root, path)
    return found


def _broken(
    value: Any, schema: dict[str, Any], keyword: str, rule: Any, root: dict[str, Any], path: str
) -> list[str]:
    fault = [f"{path or '/'} {keyword}"]
    match keyword:
        case "type":
            right = isinstance(value, _TYPES[rule]) and not (rule == "integer" and isinstance(value, bool))
            return [] if right else fault
        case "enum":
            return [] if value in rule else fault
        case "const":
            return [] if value == rule else fault
        case "anyOf":
            return [] if any(not faults(value, option, root, path) for option in rule) else fault
        case "pattern":
            return [] if not isinstance(value, str) or re.search(rule, value) else fault
        case "maxLength" | "minLength":
            if not isinstance(value, str):
                return []
            return [] if (len(value) <= rule if keyword == "maxLength" else len(value) >= rule) else fault
        case "minimum" | "maximum":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return []
            return [] if (value >= rule if keyword == "minimum" else value <= rule) else fault
        case "minItems":
            return [] if not isinstance(value, list) or len(value) >= rule else fault
        case "items":
            items = value if isinstance(value, list) else []
            return [
                found for i, item in enumerate(items) for found in faults(item, rule, root, f"{path}[{i}]")
            ]
        case "required":
            missing = [key for key in rule if isinstance(value, dict) and key not in value]
            return [f"{path}/{key} required" for key in missing]
        case "properties":
            members = value if isinstance(value, dict) else {}
            return [
                found
                for key, inner in rule.items()
                if key in members
                for found in faults(members[key], inner, root, f"{path}/{key}")
            ]
        case "additionalProperties":
            return _additional(value, schema, rule, root, path)
        case "patternProperties" | "propertyNames":
            return []
    raise NotImplementedError(keyword)


def _additional(value: Any, schema: dict[str, Any], rule: Any, root: dict[str, Any], path: str) -> list[str]:
    members = value if isinstance(value, dict) else {}
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    extra = [key for key in members if key not in known and not any(re.search(p, key) for p in patterns)]
    if rule is False:
        return [f"{path}/{key} additionalProperties" for key in extra]
    return [found for key in extra for found in faults(members[key], rule, root, f"{path}/{key}")]
