"""Waiting with a deadline, and saying what is waited for.

Owns the clock, the progress lines (on stderr, one a change) and the loop. A server that does not answer while
something is waited for is one more thing to wait for, until the deadline. Refuses to wait without one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from ops.checks.kubernetes_api import ApiRefusal

POLL_SECONDS = 1.0


class Clock:
    """Time, so that tests need not wait."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


class Progress:
    """Says what goes on, once each time that it changes."""

    def __init__(self, stream: TextIO | None = None, *, clock: Clock | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock or Clock()
        self._started = self._clock.now()
        self._last = ""

    def say(self, text: str) -> None:
        if text and text != self._last:
            self._last = text
            print(f"{self._clock.now() - self._started:7.1f} s  {text}", file=self._stream, flush=True)


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look saw."""

    seen: str
    """In words, how far it is."""
    done: bool = False
    misses: tuple[str, ...] = ()
    """What is not yet as it must be, for the report if it never is."""
    hopeless: bool = False
    """True when no waiting will help."""


@dataclass(frozen=True, kw_only=True)
class Waited:
    """How a wait ended: with the last look, in time or not."""

    look: Look
    seconds: float

    @property
    def done(self) -> bool:
        return self.look.done


def until(
    look: Callable[[], Look], *, about: str, timeout_seconds: float, clock: Clock, progress: Progress
) -> Waited:
    """Looks until it is done, hopeless, or the time is over; the last look is always a fresh one."""
    started = clock.now()
    while True:
        try:
            last = look()
        except ApiRefusal as refusal:
            if not refusal.may_pass:
                last = Look(seen="refused", misses=(str(refusal),), hopeless=True)
            else:
                last = Look(seen="the API server does not answer", misses=(str(refusal),))
        progress.say(f"{about}: {last.seen}")
        passed = clock.now() - started
        if last.done or last.hopeless or passed >= timeout_seconds:
            return Waited(look=last, seconds=passed)
        clock.wait(min(POLL_SECONDS, max(timeout_seconds - passed, 0.01)))
