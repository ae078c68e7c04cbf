"""Unix sockets at any depth of folder, and carrying bytes between two connections. Standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

_CHUNK_BYTES = 65536

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def serve_unix(
    handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], path: Path
) -> asyncio.Server:
    """Listen on `path`, replacing a socket that a killed predecessor left.

    A unix socket's path may have 107 bytes; through /proc/self/fd the folder may lie as deep as it likes.
    """
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short_path(path) as short:
        listener.bind(short)
    path.chmod(0o600)
    listener.listen(128)
    listener.setblocking(False)
    return await asyncio.start_unix_server(handler, sock=listener)


async def connect_unix(path: Path) -> Connection:
    """Connect to the unix socket at `path`."""
    with _short_path(path) as short:
        return await asyncio.open_unix_connection(short)


@contextlib.contextmanager
def _short_path(path: Path) -> Iterator[str]:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


async def join(near: Connection, far: Connection) -> None:
    """Carry bytes both ways until both sides are done, then close both."""
    try:
        await asyncio.gather(_carry(near[0], far[1]), _carry(far[0], near[1]))
    finally:
        for _reader, writer in (near, far):
            with contextlib.suppress(OSError):
                writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        with contextlib.suppress(OSError):
            writer.close()
