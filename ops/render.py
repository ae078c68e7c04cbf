"""`python -m ops render STACK [--config-file FILE] [--out DIR]`: the plan of a stack.

Owns the plan's form: JSON on stdout, a list of `{urn, type, name, parent, provider, dependsOn, inputs}` sorted by
URN, or one YAML file a Kubernetes object. Needs no engine, cloud, network or passphrase; what only a cloud could say
reads `[unknown]`, and secrets read `[secret]`. A chart is one entry: its insides are its own.
Refuses to print half a plan: settings that are wrong are listed on stderr, all of them, with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from ops.recording import Recording, Registration

HELP = "the plan of a stack, without engine, cloud, network or passphrase"
ROOT = Path(__file__).resolve().parents[1]
_CHART = "kubernetes:helm.sh/v4:Chart"


class RenderError(Exception):
    """There is no plan; the message says what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("stack", metavar="STACK", help="name of the stack")
    parser.add_argument(
        "--config-file", type=Path, metavar="FILE", help="read this file, not Pulumi.STACK.yaml"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write one YAML file a Kubernetes object here"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print or write the plan; the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
    try:
        recording = plan(arguments.stack, arguments.config_file)
    except RenderError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.out is None:
        json.dump(entries(recording), sys.stdout, indent=2, ensure_ascii=False)
        print()
        return 0
    written = write_objects(recording, arguments.out)
    print(f"{len(written)} Kubernetes objects under {arguments.out}", file=sys.stderr)
    return 0


def plan(stack: str, config_file: Path | None = None) -> Recording:
    """What the program would register for a stack before anything exists."""
    # The program's own settings are judged first, and cost no provider package.
    import settings
    from preflight import stackfile

    path = config_file or ROOT / f"Pulumi.{stack}.yaml"
    try:
        config = stackfile.config_of(path.read_text(encoding="utf-8"), path.name)
        settings.load(config)
    except OSError as error:
        known = ", ".join(sorted(found.name.split(".")[1] for found in ROOT.glob("Pulumi.*.yaml")))
        raise RenderError(
            f"{path} cannot be read: {error.strerror}. Stacks with a file here: {known}."
        ) from error
    except settings.SettingsError as error:
        raise RenderError(str(error)) from error

    import pulumi

    from ops import recording

    texts, secret_keys = stackfile.engine_config(config)
    try:
        return recording.record(stack_name=stack, config=texts, secret_keys=secret_keys)
    except pulumi.RunError as error:
        raise RenderError(str(error)) from error


def entries(recording: Recording) -> list[dict[str, Any]]:
    """The plan as plain data, sorted by URN."""
    return [_entry(recording.registrations[urn]) for urn in sorted(recording.registrations)]


def _entry(registration: Registration) -> dict[str, Any]:
    return {
        "urn": registration.urn,
        "type": registration.type_token,
        "name": registration.name,
        "parent": registration.parent,
        "provider": registration.provider,
        "dependsOn": list(registration.depends_on),
        "inputs": registration.inputs,
    }


def write_objects(recording: Recording, directory: Path) -> list[Path]:
    """One YAML file for each Kubernetes object that is ours."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for registration in recording.registrations.values():
        manifest = registration.inputs
        if not registration.type_token.startswith("kubernetes:") or registration.type_token == _CHART:
            continue
        metadata = manifest["metadata"]
        parts = [manifest["kind"], metadata.get("namespace"), metadata["name"]]
        path = directory / ("-".join(part for part in parts if part).lower() + ".yaml")
        if path in written:
            raise RenderError(
                f"{path} would be written twice: two objects have the same kind, namespace and name."
            )
        path.write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")
        written.append(path)
    return sorted(written)
