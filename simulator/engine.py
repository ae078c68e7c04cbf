"""Running the real Pulumi engine against the region: what `make up` and `make down` add to `pulumi` itself.

A stack of this region lives in the region's own file backend, with the region's own copy of its settings file
where that file names another secrets provider, so that running any committed stack here leaves the checkout
as it was. Locks are taken from a dead engine, never from a live one.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from simulator.files import write_atomically
from simulator.process_identity import start_time_of
from simulator.region_folder import CHECKOUT, RegionFolder

PROJECT = "tpu-slices"
CLUSTER = "gcp:container/cluster:Cluster"


class EngineError(Exception):
    """The engine failed; its own output, already shown, says why."""


class Engine:
    """`pulumi` for one stack on one region."""

    def __init__(self, region: RegionFolder, stack: str) -> None:
        self.region = region
        self.stack = stack
        self.environment = {**os.environ, **region.environment()}

    @property
    def config_file(self) -> Path:
        """The settings file that the engine reads: the checkout's own, or the region's copy of it."""
        return self._copy if self._needs_copy else self._own

    @property
    def _own(self) -> Path:
        return CHECKOUT / f"Pulumi.{self.stack}.yaml"

    @property
    def _copy(self) -> Path:
        return self.region.root / "settings" / self._own.name

    @property
    def _needs_copy(self) -> bool:
        """Without a salt of our passphrase in it, the engine would write one into the file."""
        return _salt(self._own.read_text()) == ""

    def _refresh_copy(self) -> None:
        salt = _salt(self._copy.read_text()) if self._copy.exists() else ""
        write_atomically(self._copy, f"{self._own.read_text().rstrip()}\n{salt}")

    def run(self, *arguments: str, is_quiet: bool = False, folder: Path = CHECKOUT) -> str:
        """Run `pulumi ARGUMENTS`; its output goes to the person unless `is_quiet`. Raises EngineError."""
        result = subprocess.run(
            [str(self.region.bin / "pulumi"), *arguments, "--non-interactive"],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_quiet else None,
            stderr=subprocess.PIPE if is_quiet else None,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            detail = f":\n{result.stdout}{result.stderr}" if is_quiet else ""
            raise EngineError(f"`pulumi {' '.join(arguments)}` failed (exit {result.returncode}){detail}")
        return result.stdout or ""

    def on_stack(self, command: str, *arguments: str, is_quiet: bool = False) -> str:
        """Run a command on this stack with its settings file."""
        return self.run(
            command,
            "--stack",
            self.stack,
            f"--config-file={self.config_file}",
            *arguments,
            is_quiet=is_quiet,
        )

    def exists(self) -> bool:
        """Whether the backend knows the stack."""
        return self._state_file.exists()

    @property
    def _state_file(self) -> Path:
        return self.region.pulumi_backend / ".pulumi" / "stacks" / PROJECT / f"{self.stack}.json"

    def select(self) -> None:
        """Make the stack, if it is new, and make it the one that a person's `pulumi` commands act on.

        The engine writes the salt of the passphrase into the settings file beside `Pulumi.yaml`: where the
        checkout's own file has none, the stack is made in the folder of the region's copy.
        """
        folder = CHECKOUT
        if self._needs_copy:
            self._refresh_copy()
            folder = self._copy.parent
            write_atomically(folder / "Pulumi.yaml", f"name: {PROJECT}\nruntime: python\n")
        if not self.exists():
            self.run(
                "stack", "init", self.stack, "--secrets-provider=passphrase", is_quiet=True, folder=folder
            )
        self.run("stack", "select", self.stack, is_quiet=True)

    def free_dead_locks(self) -> list[str]:
        """Remove locks whose engine has ended. Raises EngineError for one that lives."""
        freed = []
        folder = self.region.pulumi_backend / ".pulumi" / "locks"
        for path in folder.rglob("*.json"):
            if self.stack not in path.parts:
                continue
            lock: dict[str, Any] = json.loads(path.read_text())
            pid = int(lock.get("pid", 0))
            if start_time_of(pid) is not None and _is_pulumi(pid):
                raise EngineError(
                    f"another `pulumi` (process {pid}) works on stack {self.stack} since {lock.get('timestamp')}: "
                    "wait until it has ended, or stop it, and run this again."
                )
            path.unlink()
            freed.append(f"the lock of a pulumi that is gone (process {pid})")
        return freed

    def resource_count(self) -> int:
        """How many resources the stack's state holds, the stack itself not counted."""
        return sum(each["type"] != "pulumi:pulumi:Stack" for each in self._latest().get("resources") or [])

    def protected(self) -> list[str]:
        """URNs of what the engine refuses to delete or replace, as the stack's state says."""
        return [each["urn"] for each in self._latest().get("resources") or [] if each.get("protect")]

    def lift_protection(self) -> None:
        """What a person does before they take a protected stack down, done to this region's copy of it."""
        self.run("state", "unprotect", "--all", "--yes", "--stack", self.stack, is_quiet=True)
        kept_by_google = [
            each["urn"]
            for each in self._latest().get("resources") or []
            if each["type"] == CLUSTER and (each.get("inputs") or {}).get("deletionProtection")
        ]
        if not kept_by_google:
            return
        document = yaml.safe_load(self.config_file.read_text())
        settings = document["config"]
        settings[f"{PROJECT}:cluster"]["deletionProtection"] = False
        settings[f"{PROJECT}:safety"] = {**settings.get(f"{PROJECT}:safety", {}), "mayLoseCapacity": True}
        lifted = self.region.root / "settings" / f"unprotected-{self._own.name}"
        write_atomically(lifted, yaml.safe_dump(document, sort_keys=False))
        targets = [word for urn in kept_by_google for word in ("--target", urn)]
        arguments = ["--yes", "--skip-preview", "--suppress-outputs", "--suppress-progress", *targets]
        self.run("up", "--stack", self.stack, f"--config-file={lifted}", *arguments)

    def pending_operations(self) -> list[str]:
        """What an engine that was killed left half done."""
        pending = self._latest().get("pending_operations") or []
        return [f"{each['type']} {each['resource']['urn']}" for each in pending]

    def _latest(self) -> dict[str, Any]:
        """The stack's state as its file holds it; empty for a stack that the backend does not know."""
        if not self.exists():
            return {}
        state = json.loads(self._state_file.read_text())
        return (state.get("checkpoint") or {}).get("latest") or {}


def _salt(content: str) -> str:
    """The line with the passphrase's salt, or nothing."""
    return next((f"{line}\n" for line in content.splitlines() if line.startswith("encryptionsalt:")), "")


def _is_pulumi(pid: int) -> bool:
    try:
        return "pulumi" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return False
