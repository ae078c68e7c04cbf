"""Ctrl-C and SIGTERM while verify runs.

Owns three rules. The first signal stops the checks at once, and what they made is removed. A signal during that
removal is remembered, and it goes on. One more stops it too, and verify says what was left. Refuses to be
caught by an `except Exception` on the way: both exceptions stand beside KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import Self


class Interrupted(BaseException):
    """The checks are to stop; removal follows."""


class Abandoned(BaseException):
    """The removal is to stop too."""


class Interruption:
    """While entered, turns signals into the exceptions above."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.received: int | None = None
        """The first signal that came."""
        self._removing = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in self.SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what signal.signal itself returned

    def removing(self) -> None:
        """From here on the first signal no longer raises."""
        self._removing = True

    @property
    def exit_code(self) -> int | None:
        """128 + signal, as a shell says it; None when none came."""
        return None if self.received is None else 128 + self.received

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        first, self.received = self.received is None, self.received or number
        if not first:
            raise Abandoned
        name = signal.Signals(number).name
        print(
            f"\n{name}: stopping, and removing what verify made. Once more leaves it there.",
            file=sys.stderr,
            flush=True,
        )
        if not self._removing:
            self._removing = True
            raise Interrupted
