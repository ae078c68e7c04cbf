"""The road from the API server to Services, pods and kubelets: an HTTP CONNECT proxy on a unix socket.

The API server asks for a ClusterIP (webhooks, aggregated APIs), a pod's address or a node's; the proxy finds
the ready endpoint as kube-proxy would and hands the connection to that pod's sandbox. What KWOK simulates has
no process behind it: such a connection is refused with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from simulator.cluster.mirror import Mirror
from simulator.cluster.streams import Connection, join, serve_unix

_LOG = logging.getLogger(__name__)

Dial = Callable[[str, int], Awaitable[Connection]]
"""Opens a connection to a pod's address and port; raises ConnectionError where no process listens."""


class EgressProxy:
    """Serves `socket_path`; `services` and `slices` mirror Services and EndpointSlices."""

    def __init__(self, socket_path: Path, services: Mirror, slices: Mirror, dial_pod: Dial) -> None:
        self._socket_path = socket_path
        self._services = services
        self._slices = slices
        self._dial_pod = dial_pod
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        self._server = await serve_unix(self._handle, self._socket_path)

    async def stop(self) -> None:
        """Stop listening and remove the socket."""
        if self._server is not None:
            self._server.close()
        self._socket_path.unlink(missing_ok=True)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[0]
            host, _, port = request.split()[1].rpartition(":")
            far = await self._connect(host.strip("[]"), int(port))
        except (OSError, ValueError, IndexError, LookupError, asyncio.IncompleteReadError) as error:
            _LOG.info("egress: %s", error)
            with contextlib.suppress(OSError):
                writer.write(f"HTTP/1.1 503 {str(error)[:200]}\r\n\r\n".encode("latin-1", "replace"))
                await writer.drain()
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await join((reader, writer), far)

    async def _connect(self, host: str, port: int) -> Connection:
        if ipaddress.ip_address(host).is_loopback:
            return await asyncio.open_connection(host, port)
        service = next(
            (each for each in self._services.objects.values() if each["spec"].get("clusterIP") == host), None
        )
        if service is None:
            return await self._dial_pod(host, port)
        address, target = self._endpoint(service, port)
        return await self._dial_pod(address, target)

    def _endpoint(self, service: dict[str, Any], port: int) -> tuple[str, int]:
        metadata = service["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}"
        names = [each.get("name", "") for each in service["spec"].get("ports", []) if each["port"] == port]
        if not names:
            raise ConnectionError(f"Service {name} has no port {port}")
        for each in self._slices.objects.values():
            labels = each["metadata"].get("labels", {})
            if (
                each["metadata"]["namespace"] != metadata["namespace"]
                or labels.get("kubernetes.io/service-name") != metadata["name"]
            ):
                continue
            target = next((p["port"] for p in each.get("ports") or [] if p.get("name", "") == names[0]), None)
            for endpoint in each.get("endpoints") or []:
                if target is not None and endpoint.get("conditions", {}).get("ready"):
                    return endpoint["addresses"][0], target
        raise ConnectionError(f"no endpoints available for service {name}")
