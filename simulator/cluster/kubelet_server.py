"""The kubelet API of every node: container logs here, all else handed on to KWOK's own server.

The API server comes here (through the egress proxy) for `kubectl logs`. Clients must show a certificate of the
cluster's CA, as the real kubelet asks.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from aiohttp import web

from simulator.cluster import workload_logs
from simulator.cluster.mirror import Mirror
from simulator.cluster.pki import Pki

FOLLOW_SECONDS = 0.3


class KubeletServer:
    """Serves https://127.0.0.1:<port>. `log_of` gives the log file of a pod that runs as a process."""

    def __init__(
        self, port: int, pki: Pki, pods: Mirror, nodes: Mirror, log_of: Callable[[str, str], Path | None]
    ) -> None:
        self._port = port
        self._pki = pki
        self._pods = pods
        self._nodes = nodes
        self._log_of = log_of
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen on loopback."""
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self._pki.certificate("ca")))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self._pki.certificate("kubelet"), self._pki.key("kubelet"))
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=context).start()

    async def stop(self) -> None:
        """Stop listening; followers are cut off."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["namespace"], request.match_info["pod"]
        pod = self._pods.objects.get(key)
        if pod is None:
            raise web.HTTPNotFound(text=f"pod {key[0]}/{key[1]} not found")
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        is_following = request.query.get("follow") in ("true", "1")
        shows_time = request.query.get("timestamps") in ("true", "1")
        since = _since(request)
        tail = int(request.query.get("tailLines", -1))
        path = self._log_of(*key)
        if path is not None:
            found = [line for line in _read(path) if line[0] >= since]
        else:
            found = [
                line for line in self._simulated(key, request.match_info["container"]) if line[0] >= since
            ]
        for time, text in found[-tail:] if tail > 0 else ([] if tail == 0 else found):
            await response.write((f"{time} {text}\n" if shows_time else f"{text}\n").encode())
        if is_following:
            async for time, text in self._follow(key, path):
                await response.write((f"{time} {text}\n" if shows_time else f"{text}\n").encode())
        await response.write_eof()
        return response

    def _simulated(self, key: tuple[str, str], container_name: str) -> list[tuple[str, str]]:
        pod = self._pods.objects[key]
        container = next(each for each in pod["spec"]["containers"] if each["name"] == container_name)
        node = self._nodes.objects.get(("", pod["spec"].get("nodeName", "")))
        started = pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"]
        return [(started, text) for text in workload_logs.lines(pod, container, node)]

    async def _follow(self, key: tuple[str, str], path: Path | None) -> AsyncIterator[tuple[str, str]]:
        """Lines that come after now, until the pod has ended."""
        position = path.stat().st_size if path is not None and path.exists() else 0
        while (pod := self._pods.objects.get(key)) is not None:
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                return
            if path is not None and path.exists() and path.stat().st_size > position:
                with path.open("rb") as stream:
                    stream.seek(position)
                    content = stream.read()
                whole = content[: content.rfind(b"\n") + 1]
                position += len(whole)
                for line in whole.decode(errors="replace").splitlines():
                    yield _split(line)
            await asyncio.sleep(FOLLOW_SECONDS)


def _since(request: web.Request) -> str:
    if "sinceTime" in request.query:
        return request.query["sinceTime"]
    if "sinceSeconds" in request.query:
        moment = datetime.datetime.now(datetime.UTC) - datetime.timedelta(
            seconds=int(request.query["sinceSeconds"])
        )
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""


def _read(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    return [_split(line) for line in path.read_text(errors="replace").splitlines()]


def _split(line: str) -> tuple[str, str]:
    """(time, text) of a line in the CRI log format; a line that is not in it has no time."""
    parts = line.split(" ", 3)
    if len(parts) >= 3 and parts[1] in ("stdout", "stderr"):
        return parts[0], parts[3] if len(parts) == 4 else ""
    return "", line
