"""The process that serves a region's cloud: one lock, one port that stays, a clean end.

The port is kept in `cloud.json`, so that a shell that has it in PULUMI_DEBUG_PROVIDERS goes on working after a
restart. Operations that a killed life left behind go on before the first request is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from simulator.cloud import region_file
from simulator.cloud.cloud import Cloud
from simulator.cloud.provider import Provider
from simulator.cloud.servicer import Servicer
from simulator.files import read_json, write_json

log = logging.getLogger(__name__)

LOCK_WAIT_SECONDS = 10.0
_LARGEST_MESSAGE = 400 * 1024 * 1024  # as the engine's own limit


class AlreadyServed(RuntimeError):
    """Another process serves this region."""


def serve(folder: Path, region_path: Path, time_scale: float) -> None:
    """Serve the region of `folder` until SIGTERM or SIGINT."""
    region = region_file.load(region_path)
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / "cloud.lock"):
        cloud = Cloud.open(folder, region, time_scale)
        asyncio.run(_serve(Provider(cloud), folder / "cloud.json"))


async def _serve(provider: Provider, said: Path) -> None:
    provider.lifecycle.resume()
    server, port = await start(provider, (read_json(said) or {}).get("port"))
    write_json(said, {"port": port, "pid": os.getpid()})
    log.info("serving on 127.0.0.1:%d", port)
    seeding = asyncio.create_task(provider.seed())
    seeding.add_done_callback(_tell_failure)
    await _until_signal()
    log.info("stopping: operations under way go on at the next start")
    seeding.cancel()
    await server.stop(grace=1.0)


async def start(provider: Provider, wanted_port: int | None) -> tuple[grpc.aio.Server, int]:
    """Serve on loopback, on the wanted port if it is free."""
    if wanted_port is not None:
        with contextlib.suppress(RuntimeError):
            return await _start_on(provider, wanted_port)
    return await _start_on(provider, 0)


async def _start_on(provider: Provider, wanted_port: int) -> tuple[grpc.aio.Server, int]:
    options = [
        ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
        ("grpc.max_send_message_length", _LARGEST_MESSAGE),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(provider), server)
    port = server.add_insecure_port(f"127.0.0.1:{wanted_port}")
    if port == 0:
        raise RuntimeError(f"port {wanted_port} of 127.0.0.1 is taken")
    await server.start()
    return server, port


async def _until_signal() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("what the region file says is there already could not be made: %s", task.exception())


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the region; waits a little for a former life that is still ending."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    with path.open("a") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise AlreadyServed(
                        f"another process serves the region in {path.parent}: `python -m simulator stop` ends it"
                    ) from None
                time.sleep(0.1)
        yield
