"""The difference of two JSON documents as a JSON patch (RFC 6902), for admission responses.

Only what the webhooks need: values are added and replaced, never removed, and lists grow at their end.
"""

from __future__ import annotations

from typing import Any


def difference(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """Operations that turn `before` into `after`; whatever is not added to or replaced in place is an error."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        gone = sorted(set(before) - set(after))
        if gone:
            raise ValueError(f"{path or '/'}: a webhook only adds and replaces, but {gone} would be removed")
        operations = []
        for key, value in after.items():
            here = f"{path}/{_escaped(key)}"
            if key in before and before[key] is not None:
                operations += difference(before[key], value, here)
            elif key not in before or value is not None:
                operations.append({"op": "add", "path": here, "value": value})
        return operations
    if isinstance(before, list) and isinstance(after, list) and len(after) >= len(before):
        operations = []
        for index, value in enumerate(after):
            if index < len(before):
                operations += difference(before[index], value, f"{path}/{index}")
            else:
                operations.append({"op": "add", "path": f"{path}/-", "value": value})
        return operations
    return [{"op": "replace", "path": path, "value": after}]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
