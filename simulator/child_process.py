"""One child process of the region: started with its log, ended with its parent, restarted when it dies.

The kernel ends a child when its parent goes (PR_SET_PDEATHSIG), however the parent goes: nothing that the
region started outlives it. Deaths and restarts are told to whoever started the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

FIRST_RESTART_DELAY_SECONDS = 0.2
LONGEST_RESTART_DELAY_SECONDS = 5.0
HEALTHY_AFTER_SECONDS = 10.0
"""A child that lived this long starts its next restart delay from the first one again."""


def die_with_parent(end_signal: int = signal.SIGKILL) -> None:
    """Ask the kernel to send `end_signal` to this process when the one that started it goes."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, end_signal)


class ChildProcess:
    """A program kept running. `say(text)` is told of each death and restart."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        say: Callable[[str], None],
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        parent_death_signal: int = signal.SIGKILL,
        is_expected_exit: Callable[[int], bool] = lambda _code: False,
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.log = log
        self.cwd = cwd
        self.environment = dict(environment) if environment is not None else None
        self.restart_count = 0
        self._say = say
        self._parent_death_signal = parent_death_signal
        self._is_expected_exit = is_expected_exit
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def pid(self) -> int | None:
        """The running process, or None between two lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> None:
        """Start the program and keep it running until `stop`."""
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.name}")

    async def wait(self) -> None:
        """Return when the program has ended for good (stopped, or an expected exit)."""
        if self._keeper is not None:
            await asyncio.shield(self._keeper)

    async def stop(self, deadline_seconds: float = 10.0) -> None:
        """End the program: SIGTERM, then SIGKILL at the deadline."""
        self._is_stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), deadline_seconds)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def _spawn(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        end_signal = self._parent_death_signal
        with self.log.open("ab") as stream:
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd=self.cwd,
                env=self.environment if self.environment is not None else dict(os.environ),
                preexec_fn=lambda: die_with_parent(end_signal),
                start_new_session=True,
            )

    async def _keep(self) -> None:
        delay = FIRST_RESTART_DELAY_SECONDS
        while True:
            assert self._process is not None
            started = time.monotonic()
            code = await self._process.wait()
            if self._is_stopping or self._is_expected_exit(code):
                return
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS:
                delay = FIRST_RESTART_DELAY_SECONDS
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self._say(f"{self.name} died ({how}): starting it again in {delay:.1f} s; its log: {self.log}")
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_RESTART_DELAY_SECONDS)
            self.restart_count += 1
            await self._spawn()
