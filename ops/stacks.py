"""What the commands need of a stack: its settings from the file, its kubeconfig from the engine.

Owns the way from a stack's name to both. The settings are read from `Pulumi.<stack>.yaml` without the engine, so
no passphrase is needed; the kubeconfig is a secret output and stays in memory. Refuses to fall back to an
ambient kubeconfig: verify must never run on a cluster that nobody named.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

import settings
from preflight import stackfile

ROOT = Path(__file__).resolve().parents[1]
KUBECONFIG_OUTPUT = "kubeconfig"
ENGINE_TIMEOUT_SECONDS = 120


class StackError(Exception):
    """The stack cannot be looked at; the message says what to do."""


def load_settings(stack: str, config_file: Path | None = None) -> settings.Settings:
    """The settings of a stack's file."""
    path = config_file or ROOT / f"Pulumi.{stack.rsplit('/', 1)[-1]}.yaml"
    try:
        return settings.load(stackfile.config_of(path.read_text(encoding="utf-8"), path.name))
    except OSError as problem:
        known = ", ".join(sorted(p.name.split(".")[1] for p in ROOT.glob("Pulumi.*.yaml"))) or "none"
        raise StackError(
            f"{path.name} cannot be read: {problem.strerror}. Stacks with a file here: {known}."
        ) from problem
    except settings.SettingsError as problem:
        raise StackError(f"{path.name}: {problem}") from problem


def read_kubeconfig(stack: str) -> dict[str, Any]:
    """The kubeconfig that the stack's `up` exported; it goes from the engine's pipe into memory, to no file."""
    command = ["pulumi", "stack", "output", KUBECONFIG_OUTPUT, "--show-secrets", "--non-interactive"]
    try:
        answer = subprocess.run(
            [*command, "--stack", stack],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=ENGINE_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError as absent:
        raise StackError(
            'pulumi is not on PATH. For the region: `eval "$(make -s env)"` first, or `make verify`. '
            "For a cluster that you reach otherwise: `--kubeconfig FILE`."
        ) from absent
    except subprocess.TimeoutExpired as late:
        raise StackError(
            f"the engine said nothing about stack {stack} in {ENGINE_TIMEOUT_SECONDS} s"
        ) from late
    if answer.returncode != 0:
        why = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise StackError(
            f"stack {stack} has no kubeconfig to give: {why}. Bring it up first (`make up STACK={stack}` on this "
            "machine), or name one with `--kubeconfig FILE`."
        )
    try:
        kubeconfig = yaml.safe_load(answer.stdout)
    except yaml.YAMLError:
        kubeconfig = None  # never quoted: it may hold a credential
    if not isinstance(kubeconfig, dict) or "clusters" not in kubeconfig:
        raise StackError(f"the output `{KUBECONFIG_OUTPUT}` of stack {stack} is no kubeconfig")
    return kubeconfig
