"""The probes of a pod that runs as a local process: asked as the kubelet asks, over the pod's own network.

Delays and periods are the container's, divided by the time scale that the caller gives; thresholds count as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from simulator.cluster.streams import Connection

SHORTEST_PERIOD_SECONDS = 0.25
LONGEST_PERIOD_SECONDS = 2.0
"""Where time runs faster than life, a probe is never rarer than this."""

Open = Callable[[int], Awaitable[Connection]]
"""Opens a connection to a port of the pod."""


async def answers(probe: dict[str, Any], ports: dict[str, int], open_port: Open) -> bool:
    """Whether one try of `probe` (httpGet or tcpSocket) succeeds within its timeout."""
    timeout = max(float(probe.get("timeoutSeconds") or 1), 1.0)
    try:
        return await asyncio.wait_for(_ask(probe, ports, open_port), timeout)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
        return False


async def _ask(probe: dict[str, Any], ports: dict[str, int], open_port: Open) -> bool:
    action = probe.get("httpGet") or probe.get("tcpSocket")
    if action is None:
        raise ValueError("only httpGet and tcpSocket probes can be asked of a local process")
    port = action["port"]
    reader, writer = await open_port(port if isinstance(port, int) else ports[port])
    try:
        if "httpGet" not in probe:
            return True
        path = action.get("path") or "/"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        words = (await reader.readline()).split()
        # A process that dies while it is asked closes without a word.
        return len(words) > 1 and 200 <= int(words[1]) < 400
    finally:
        writer.close()


def period_seconds(probe: dict[str, Any], time_scale: float) -> float:
    """How long to wait between two tries; `time_scale` is infinite for as fast as possible."""
    scaled = max(float(probe.get("periodSeconds") or 10) / time_scale, SHORTEST_PERIOD_SECONDS)
    return min(scaled, LONGEST_PERIOD_SECONDS) if time_scale > 1 else scaled


def initial_delay_seconds(probe: dict[str, Any], time_scale: float) -> float:
    """How long to wait before the first try."""
    return float(probe.get("initialDelaySeconds") or 0) / time_scale
