"""Builds the programs that the cache misses, one after another, and says all the time where it is.

Owns the order: checks of the machine, Go, then for each program its build in a work folder and its publication.
A module's folder is copied before Go works in it, so that a checkout is never written to. Downloads of the next
module run beside the compilation of the present one.
"""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from simulator.toolchain import golang, machine
from simulator.toolchain.cache import Cache
from simulator.toolchain.errors import ToolchainError
from simulator.toolchain.process import CommandFailed, die_with_parent, run_logged
from simulator.toolchain.programs import MODULES, Copied, Program, folder_name

Say = Callable[[str], None]

COMPILER_FLAGS = "-gcflags=all=-dwarf=false"
"""Nobody debugs these: without the debugger's tables, compiling takes a quarter less (measured 2026-12-01)."""


def minutes(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Builder:
    """Builds into one cache, whose lock the caller holds."""

    def __init__(
        self, cache: Cache, platform: str, say: Say, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._cache = cache
        self._platform = platform
        self._say = say
        self._work = cache.build / "work"
        self._env = golang.build_environment(cache.build, environ)
        self._go = Path("go")

    def build(self, missing: Sequence[Program]) -> None:
        """Builds and publishes `missing`. What is finished stays finished if a later one fails."""
        machine.check_disk(self._cache.root)
        machine.check_memory()
        if self._work.exists():
            shutil.rmtree(self._work)
        self._work.mkdir(parents=True)
        if machine.available_memory() > machine.AMPLE_MEMORY_BYTES:
            self._env["GOGC"] = "300"
        needed = golang.needed_version({MODULES / program.module_folder for program in missing})
        self._go = golang.find_or_install(self._cache, needed, self._env, self._say)
        version = golang.installed_version(self._go, self._env) or needed
        left = sum(program.expected_seconds for program in missing)
        self._say(
            f"toolchain: {len(missing)} programs to build with Go {'.'.join(map(str, version))} into "
            f"{self._cache.root}, about {minutes(left)} on 2 cores"
        )
        with _Prefetch(self._prefetch_commands(missing), self._env):
            for index, program in enumerate(missing):
                following = missing[index + 1].name if index + 1 < len(missing) else "nothing"
                step = f"[{index + 1}/{len(missing)}] {program.name} {program.version}"
                expected = minutes(program.expected_seconds)
                self._say(f"toolchain: {step}: building, about {expected}; next: {following}")
                started = time.monotonic()
                self._build_one(program, step)
                left -= program.expected_seconds
                took = minutes(time.monotonic() - started)
                rest = f"; about {minutes(left)} to go" if left else ""
                self._say(f"toolchain: {step}: ready after {took}{rest}")

    def _prefetch_commands(self, missing: Sequence[Program]) -> list[tuple[list[str], Path]]:
        """For each module after the first: the command that downloads what its programs import."""
        packages: dict[str, list[str]] = {}
        for program in missing:
            packages.setdefault(program.module_folder, []).append(program.package)
        later = list(packages.items())[1:]
        # -e: a main package lists, even before the files are there that it embeds.
        return [([str(self._go), "list", "-e", "-deps", *names], MODULES / folder) for folder, names in later]

    def _build_one(self, program: Program, step: str) -> None:
        source = self._workspace(program, program.module_folder)
        made = self._work / program.name / "made"
        made.mkdir()
        log = self._cache.logs / f"{program.name}.log"
        log.write_text("", encoding="utf-8")
        for embedded in program.embeds:
            _place(self._module(embedded, source, log) / embedded.source, source / embedded.target)
            if embedded.target == "schema.json":
                _set_schema_version(source / embedded.target, program.version)
        command = [str(self._go), "build", COMPILER_FLAGS, "-ldflags", program.linker_flags]
        command += ["-o", str(made / program.name), program.package]
        expected = minutes(program.expected_seconds)
        try:
            run_logged(
                command,
                log=log,
                env=self._env,
                cwd=source,
                heartbeat=lambda seconds: self._say(
                    f"toolchain: {step}: {seconds:.0f} s of about {expected}"
                ),
            )
        except CommandFailed as error:
            raise ToolchainError(
                f"building {program.name} {program.version} failed with {error}\n"
                "What is built stays built: the same command goes on from here. If it fails again at the same "
                "place, `make clean-cache` starts afresh."
            ) from error
        for copied in program.copies:
            selecting = self._workspace(program, copied.selected_by or program.module_folder)
            _place(self._module(copied, selecting, log) / copied.source, made / copied.target)
        self._cache.publish(made, folder_name(program, self._platform))
        shutil.rmtree(self._work / program.name)

    def _workspace(self, program: Program, module_folder: str) -> Path:
        """A copy of a module's folder that Go may write to."""
        copy = self._work / program.name / module_folder
        if not copy.exists():
            shutil.copytree(MODULES / module_folder, copy)
        return copy

    def _module(self, copied: Copied, source: Path, log: Path) -> Path:
        """The folder of a module of the build, downloaded if it is not there yet."""
        command = [str(self._go), "mod", "download", "-json", copied.module]
        answer = subprocess.run(
            command, cwd=source, env=self._env, capture_output=True, text=True, check=False
        )
        with log.open("a", encoding="utf-8") as output:
            output.write(answer.stderr)
        try:
            return Path(json.loads(answer.stdout)["Dir"])
        except (ValueError, KeyError) as error:
            raise ToolchainError(
                f"Go module {copied.module} cannot be had: {answer.stdout}{answer.stderr} (log: {log})"
            ) from error


class _Prefetch:
    """Downloads in the background while the machine compiles. Its failures are the build's to tell."""

    def __init__(self, commands: Sequence[tuple[list[str], Path]], env: Mapping[str, str]) -> None:
        self._commands = commands
        self._env = env
        self._ended = threading.Event()
        self._running: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)

    def _run(self) -> None:
        for command, folder in self._commands:
            if self._ended.is_set():
                return
            quiet = subprocess.DEVNULL
            self._running = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(self._env),
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, no lock
            )
            self._running.wait()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._running is not None and self._running.poll() is None:
            self._running.kill()
        self._thread.join(timeout=5)


def _place(source: Path, target: Path) -> None:
    """Copies a file or folder out of the module cache; a program that is a script stays executable."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.is_file():
        shutil.copyfile(source, target)
        is_script = target.read_bytes()[:2] == b"#!"
        target.chmod(0o755 if is_script else 0o644)
    else:
        raise ToolchainError(
            f"{source} is not in its module: this version keeps it elsewhere; put the new place into "
            "simulator/toolchain/programs.py."
        )


def _set_schema_version(schema: Path, version: str) -> None:
    """The module's schema carries no version: the provider's release sets it, and so do we."""
    content = json.loads(schema.read_text(encoding="utf-8"))
    schema.write_text(json.dumps(content | {"version": version}), encoding="utf-8")
