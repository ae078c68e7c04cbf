"""Free loopback ports, chosen once and kept, so that a restarted part is found where it was."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from simulator.files import read_json, write_json


def keep_ports(path: Path, names: Sequence[str]) -> dict[str, int]:
    """A free port a name, remembered in `path`: the same answer at every later call."""
    known: dict[str, int] = read_json(path) or {}
    missing = [name for name in names if name not in known]
    if missing:
        with ExitStack() as stack:
            for name in missing:
                listener = stack.enter_context(socket.socket())
                listener.bind(("127.0.0.1", 0))
                known[name] = listener.getsockname()[1]
        write_json(path, known)
    return {name: known[name] for name in names}
