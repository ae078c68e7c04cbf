"""The cache of built programs: a folder outside every checkout, shared by all checkouts of one person.

It owns `$TPU_SLICES_CACHE` (else `$XDG_CACHE_HOME/tpu-slices`, else `~/.cache/tpu-slices`):

    programs/<name>-<version>-<key>/   a program's files; whole from the moment that the folder is there
    logs/                              one log a program, of its last build
    build/                             what only building needs: Go, its module and compile caches, work folders
    lock                               held while building (flock: a dead process holds nothing)

A program's folder is made under `build/` and renamed into `programs/` after all of it is on the disk, so a
killed build leaves nothing half-made there. `build/` stays when a build is killed, so that the next one goes on
where it stopped, and goes when all programs are there. A folder that no checkout has asked for in 30 days goes at
the next build. It refuses to delete anything outside its own folder.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from simulator.toolchain.errors import ToolchainError
from simulator.toolchain.process import HEARTBEAT_SECONDS

UNUSED_DAYS = 30
_USED_RESOLUTION_SECONDS = 3600
_MARK = "CACHEDIR.TAG"
_MARK_TEXT = """Signature: 8a477f597d28d172789f06886806bc55
# Programs that tpu-slices built for this machine. `make clean-cache` removes this folder; the next `make up`
# builds them again.
"""


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the cache is for this environment. Relative XDG paths count for nothing, as their specification says."""
    if named := environ.get("TPU_SLICES_CACHE"):
        return Path(named).expanduser().absolute()
    xdg = environ.get("XDG_CACHE_HOME", "")
    if xdg.startswith("/"):
        return Path(xdg) / "tpu-slices"
    try:
        return Path.home() / ".cache" / "tpu-slices"
    except RuntimeError as error:
        raise ToolchainError(
            "no home folder is known for the build cache: set TPU_SLICES_CACHE to a folder for it (about 1 GB)."
        ) from error


class Cache:
    """One cache folder. Nothing is written before `open`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.programs = root / "programs"
        self.logs = root / "logs"
        self.build = root / "build"
        self._lock = root / "lock"

    def open(self) -> None:
        """Makes the folders and marks them as ours."""
        if self.root.exists() and not self._is_ours() and any(self.root.iterdir()):
            raise ToolchainError(
                f"{self.root} holds files that are not from this cache: point TPU_SLICES_CACHE to an empty folder, "
                "since `make clean-cache` removes the whole of it."
            )
        try:
            for folder in (self.root, self.programs, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
            if not self._is_ours():
                (self.root / _MARK).write_text(_MARK_TEXT, encoding="utf-8")
        except OSError as error:
            raise ToolchainError(
                f"the build cache {self.root} cannot be written ({error.strerror}): make it writable, or set "
                "TPU_SLICES_CACHE to a folder that is."
            ) from error

    def _is_ours(self) -> bool:
        return (self.root / _MARK).is_file()

    def find(self, folder_name: str, files: Iterable[str]) -> Path | None:
        """The folder of a finished program, noted as used; None if it must be built."""
        folder = self.programs / folder_name
        if not all((folder / name).exists() for name in files):
            return None
        with contextlib.suppress(OSError):  # a cache that we may only read still serves
            if time.time() - folder.stat().st_mtime > _USED_RESOLUTION_SECONDS:
                os.utime(folder)
        return folder

    def publish(self, made: Path, folder_name: str) -> Path:
        """Moves a program's folder to where `find` sees it, whole: on the disk first, then by one rename."""
        _flush(made)
        target = self.programs / folder_name
        if target.exists():  # somebody took files out of it
            self._set_aside(target)
        made.rename(target)
        _flush_one(self.programs)
        return target

    @contextlib.contextmanager
    def locked(self, say: Callable[[str], None], poll_seconds: float = 0.5) -> Iterator[None]:
        """Holds the right to build. Waits for another builder, and says who that is."""
        said = -HEARTBEAT_SECONDS
        started = time.monotonic()
        while (lock := self._take_lock()) is None:
            waited = time.monotonic() - started
            if waited - said >= HEARTBEAT_SECONDS:
                said = waited
                say(f"toolchain: waiting for {self._holder()}, {waited:.0f} s so far")
            time.sleep(poll_seconds)
        with lock:
            lock.truncate(0)
            lock.write(json.dumps({"pid": os.getpid(), "folder": str(Path.cwd())}))
            lock.flush()
            yield

    def _take_lock(self) -> TextIO | None:
        """The locked file, or None if another process has it."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = self._lock.open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # `clean` removes the file that it has locked: a lock on a removed file excludes nobody.
            if os.fstat(lock.fileno()).st_ino == self._lock.stat().st_ino:
                return lock
        except (BlockingIOError, FileNotFoundError):
            pass
        lock.close()
        return None

    def _holder(self) -> str:
        try:
            holder = json.loads(self._lock.read_text(encoding="utf-8"))
            return f"the build that process {holder['pid']} runs in {holder['folder']}"
        except (OSError, ValueError, KeyError):
            return "another build"

    def drop_build_files(self) -> None:
        """Removes `build/`; renamed first, so that a killed removal leaves no half of a module cache to be trusted."""
        if self.build.exists():
            self._set_aside(self.build)
        for dropped in self.root.glob("dropped-*"):
            shutil.rmtree(dropped)

    def _set_aside(self, folder: Path) -> None:
        folder.rename(self.root / f"dropped-{time.time_ns()}")

    def has_leftovers(self) -> bool:
        """Whether a killed build or removal left files that nothing needs any more."""
        return self.build.exists() or any(self.root.glob("dropped-*"))

    def try_drop_leftovers(self) -> None:
        """Removes leftovers if nobody builds right now."""
        if (lock := self._take_lock()) is not None:
            with lock:
                self.drop_build_files()

    def prune(self, wanted: frozenset[str]) -> list[str]:
        """Sets programs aside that no checkout asked for in 30 days; returns their names."""
        oldest = time.time() - UNUSED_DAYS * 86400
        unused = [
            folder
            for folder in sorted(self.programs.iterdir())
            if folder.name not in wanted and folder.stat().st_mtime < oldest
        ]
        for folder in unused:
            self._set_aside(folder)
        return [folder.name for folder in unused]

    def clean(self, say: Callable[[str], None]) -> None:
        """Removes the whole cache, after a build that runs has ended."""
        if not self.root.exists():
            say(f"nothing to remove: {self.root} is not there")
            return
        if not self._is_ours():
            raise ToolchainError(
                f"{self.root} is not a cache of ours (no {_MARK} in it): it is left as it is."
            )
        with self.locked(say):
            shutil.rmtree(self.root)
        say(f"removed {self.root}")


def _flush(folder: Path) -> None:
    """Writes a folder and all below it to the disk: a rename may reach the disk before what it names does."""
    for parent, _, names in os.walk(folder):
        for name in names:
            _flush_one(Path(parent) / name)
        _flush_one(Path(parent))


def _flush_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
