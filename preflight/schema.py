"""The JSON Schema of a `Pulumi.<stack>.yaml`, so that editors complete and check it.

Owns `settings.schema.json`, generated from the models: `python -m preflight.schema` writes it, `--check` says
whether it is current. The schema knows single fields; what joins sections is known to `preflight.rules` alone.
Refuses to hold a rule of its own.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from preflight.problems import NAMESPACE

FILE = Path(__file__).resolve().parents[1] / "settings.schema.json"

_SECURE = {
    "type": "object",
    "properties": {"secure": {"type": "string"}},
    "required": ["secure"],
    "additionalProperties": False,
    "description": "A closed secret, as `pulumi config set --secret` writes it.",
}
_ENGINE = {
    "secretsprovider": "Address of the secrets provider, such as gcpkms://…",
    "encryptedkey": "The stack's data key, closed by the secrets provider",
    "encryptionsalt": "Salt of the passphrase secrets provider",
}


def stack_schema() -> dict[str, Any]:
    """The schema of a whole stack file."""
    # Imported here: `settings` imports this package.
    from settings import Settings

    contract = _trimmed(Settings.model_json_schema(by_alias=True))
    keys = {
        "gcp:project" if key == "project" else f"{NAMESPACE}:{key}": _key_schema(key, schema)
        for key, schema in contract["properties"].items()
    }
    config = {
        "type": "object",
        "description": "What the stack says.",
        "properties": keys,
        "patternProperties": {"^pulumi:": {}},
        "required": ["gcp:project", f"{NAMESPACE}:zone"],
        "additionalProperties": False,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of a tpu-slices stack",
        "description": "Generated from settings.py by `python -m preflight.schema`; do not edit.",
        "type": "object",
        "properties": {
            "config": config,
            "environment": {"description": "Pulumi ESC environments."},
            **{key: {"type": "string", "description": text} for key, text in _ENGINE.items()},
        },
        "required": ["config"],
        "additionalProperties": False,
        "$defs": contract["$defs"],
    }


def _key_schema(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    if key == "hfToken":
        return {**_SECURE, "description": schema["description"]}
    if key == "projectNumber":
        # YAML may read it as a number; the engine hands it over as a text either way.
        about = {"description": schema.pop("description")}
        return {**about, "anyOf": [schema, {"type": "integer", "minimum": 100000}]}
    return schema


def rendered() -> str:
    """The file's text."""
    return json.dumps(stack_schema(), indent=2, ensure_ascii=False) + "\n"


def _trimmed(node: Any) -> Any:
    """pydantic's schema as a person's file obeys it.

    Its titles only repeat the keys, and null is no value of a key here: a key without a value is refused.
    """
    if isinstance(node, list):
        return [_trimmed(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option != {"type": "null"}]
        node = {key: value for key, value in node.items() if key != "anyOf"}
        node |= options[0] if len(options) == 1 else {"anyOf": options}
    return {
        key: {name: _trimmed(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _trimmed(value)
        for key, value in node.items()
        if key != "title" and (key, value) != ("default", None)
    }


def main() -> int:
    """Write the schema, or say whether it is current."""
    parser = argparse.ArgumentParser(prog="python -m preflight.schema", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the file is stale")
    if not parser.parse_args().check:
        FILE.write_text(rendered(), encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == rendered():
        return 0
    print(f"{FILE.name} is stale: run `python -m preflight.schema` and commit it.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
