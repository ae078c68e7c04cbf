"""`python -m ops check FILE…`: will these workloads get their slices?

Owns the reading of files and the printing. Exit codes: 0 nothing to say, 1 problems, 2 a file cannot be read.
Refuses to ask a cluster: what is checked here is what a cluster passes over in silence.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ops.checks.manifest_rules import Problem, problems_of
from ops.checks.manifest_templates import mapping_at

HELP = "say what keeps the workloads of a manifest from getting their slices"
UNREADABLE = 2


@dataclass(frozen=True)
class Checked:
    """One object of a file."""

    file: str
    name: str
    problems: list[Problem] | None
    """None when it wants no dynamic slice."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a person can say."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="YAML or JSON with Kubernetes objects; - is stdin"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of sentences")


def run(arguments: argparse.Namespace) -> int:
    """Checks all files before it answers."""
    checked: list[Checked] = []
    unreadable: list[str] = []
    for file in arguments.files:
        try:
            checked += check_text(sys.stdin.read() if file == "-" else Path(file).read_text(), file)
        except (OSError, ValueError, TypeError, yaml.YAMLError) as problem:
            unreadable.append(f"{file}: cannot be read: {problem}")
    print(_as_json(checked) if arguments.json else _as_text(checked))
    for line in unreadable:
        print(line, file=sys.stderr)
    if unreadable:
        return UNREADABLE
    return 1 if any(one.problems for one in checked) else 0


def check_text(text: str, file: str) -> list[Checked]:
    """Every object of a YAML or JSON text, also those inside a List."""
    checked = []
    for document in yaml.safe_load_all(text):
        for thing in _objects(document):
            metadata = mapping_at(thing, "metadata")
            namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
            name = f"{thing.get('kind', 'object')} {namespace}{metadata.get('name', '?')}"
            checked.append(Checked(file, name, problems_of(thing)))
    return checked


def _objects(document: Any) -> Iterator[Mapping[str, Any]]:
    if document is None:
        return
    if not isinstance(document, Mapping):
        raise TypeError("it holds something that is no Kubernetes object")
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(item)
    else:
        yield document


def _as_text(checked: list[Checked]) -> str:
    lines = [f"{one.file}: {one.name}: {problem}" for one in checked for problem in one.problems or []]
    about_slices = [one for one in checked if one.problems is not None]
    count = sum(len(one.problems or []) for one in checked)
    told = f"{len(checked)} objects, {len(about_slices)} want slices, {count} problems"
    return "\n".join([*lines, told])


def _as_json(checked: list[Checked]) -> str:
    content = [
        {
            "file": one.file,
            "object": one.name,
            "wantsSlices": one.problems is not None,
            "problems": [
                {
                    "path": p.path,
                    "rule": p.refusal.rule,
                    "reason": p.refusal.reason,
                    "wayOut": p.refusal.way_out,
                    "text": str(p),
                }
                for p in one.problems or []
            ],
        }
        for one in checked
    ]
    return json.dumps(content, indent=2, ensure_ascii=False)
