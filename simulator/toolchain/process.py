"""Runs one long command into a log, and says every ten seconds that it still runs.

Owns the command's whole process group: it ends with us, however we end. Refuses to print the command's output
unless it fails; then the last lines come with the error.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HEARTBEAT_SECONDS = 10.0
_POLL_SECONDS = 0.2
_TAIL_LINES = 20
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@dataclass
class CommandFailed(Exception):
    """A command that ended with a status other than 0."""

    status: int
    log: Path
    tail: str

    def __str__(self) -> str:
        how = f"signal {-self.status}" if self.status < 0 else f"status {self.status}"
        hint = (
            " (killed: out of memory?)"
            if self.status == -signal.SIGKILL or "signal: killed" in self.tail
            else ""
        )
        lines = "\n".join(f"  | {line}" for line in self.tail.splitlines())
        return f"{how}{hint}; the last lines of {self.log}:\n{lines}"


def die_with_parent() -> None:
    """In the child: ends it when we are killed without a chance to end it ourselves."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_logged(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    heartbeat: Callable[[float], None],
) -> float:
    """Runs `command` with its output appended to `log`; returns the seconds it took.

    `heartbeat` is called with the seconds so far, at least every ten seconds.
    """
    started = said = time.monotonic()
    with log.open("ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, no lock
        )
        try:
            while True:
                try:
                    status = process.wait(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                    if now - said >= HEARTBEAT_SECONDS - _POLL_SECONDS:
                        said = now
                        heartbeat(now - started)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):  # it ended in this very moment
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if status:
        with log.open("rb") as written:
            written.seek(begin)
            text = written.read().decode("utf-8", errors="replace")
        raise CommandFailed(status, log, "\n".join(text.splitlines()[-_TAIL_LINES:]))
    return time.monotonic() - started
