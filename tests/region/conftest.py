"""The region that the tests of this folder share: a copy of the checkout, brought up as a person would.

A copy, because a checkout has one region and a person may be using this one's. It is made from what git tracks
(and the new files that it does not ignore), so that a file that was forgotten shows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.2


def until(find: Callable[[], Any], what: str, deadline_seconds: float = DEADLINE_SECONDS) -> Any:
    """The first truthy answer of `find`, asked again and again; fails with `what` at the deadline."""
    deadline = time.monotonic() + deadline_seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"not within {deadline_seconds:.0f} s: {what}"
        time.sleep(POLL_SECONDS)
    return found


def copy_checkout(repository: Path, target: Path) -> Path:
    """A copy of the checkout's own files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source = repository / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


@dataclass
class Checkout:
    """A checkout in which `python -m simulator` and `pulumi` are run."""

    root: Path
    output: str = ""
    """What the last command printed."""
    extra_environment: dict[str, str] = field(default_factory=dict)

    @property
    def region(self) -> Path:
        return self.root / ".region"

    def environment(self) -> dict[str, str]:
        """The shell of a person in this checkout, without what a surrounding region exported."""
        ambient = {
            key: value for key, value in os.environ.items() if not key.startswith(("PULUMI_", "TPU_SLICES_R"))
        }
        return {**ambient, **self.extra_environment}

    def simulator(self, *arguments: str, expect: int = 0, timeout: float = 600) -> str:
        """Run `python -m simulator ARGUMENTS`."""
        return self._run([sys.executable, "-m", "simulator", *arguments], self.environment(), expect, timeout)

    def shell(self) -> dict[str, str]:
        """The environment after `eval "$(make -s env)"`."""
        printed = self.simulator("env")
        script = f"{printed}\nenv -0"
        found = subprocess.run(
            ["sh", "-c", script], env=self.environment(), capture_output=True, check=True
        ).stdout.decode()
        return dict(line.split("=", 1) for line in found.split("\0") if "=" in line)

    def pulumi(self, *arguments: str, expect: int = 0, timeout: float = 600) -> str:
        """Run `pulumi ARGUMENTS` as a person who has the exports."""
        command = ["pulumi", *arguments, "--non-interactive", "--color=never"]
        return self._run(command, self.shell(), expect, timeout)

    def _run(self, command: list[str], environment: dict[str, str], expect: int, timeout: float) -> str:
        result = subprocess.run(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        self.output = result.stdout
        assert result.returncode == expect, (
            f"{' '.join(command)} exited {result.returncode}:\n{result.stdout}"
        )
        return result.stdout

    def api(self) -> client.ApiClient:
        """An API client with the administrator's rights."""
        return config.new_client_from_config(str(self.region / "kubeconfig"))

    def change_settings(self, stack: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Edit a stack file, as a person would."""
        path = self.root / f"Pulumi.{stack}.yaml"
        document = yaml.safe_load(path.read_text())
        change(document["config"])
        path.write_text(yaml.safe_dump(document, sort_keys=False))


@pytest.fixture(scope="session")
def empty_checkout(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout without a region; a test that needs its own copies it."""
    return Checkout(copy_checkout(repository, tmp_path_factory.mktemp("checkout")))


@pytest.fixture(scope="session")
def running(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """Stack `local`, up. Tests put back what they change."""
    checkout = Checkout(copy_checkout(repository, tmp_path_factory.mktemp("running")))
    try:
        checkout.simulator("up", "local")
        yield checkout
    finally:
        checkout.simulator("stop")
