"""The sandbox of one pod that runs as a local process: own mounts, own network, own address.

`python -m simulator.cluster.sandbox SPEC.json` enters a mount and a network namespace (and a user namespace
when it is not root), builds a file system in which the pod's volumes lie at their mount paths, brings up the
pod's address and the API server's Service address on loopback, and runs the program. Two unix sockets join
this network to the world outside: what the program sends to the API server's Service leaves by one, what is
sent to the pod's ports comes in by the other. So unmodified charts need no port, path or address changed, and
nothing that a pod listens on can be reached from outside this machine's owner. Standard library only.
"""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from simulator.child_process import die_with_parent
from simulator.cluster.streams import connect_unix, join, serve_unix

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
_SIOCSIFADDR, _SIOCSIFFLAGS, _IFF_UP = 0x8916, 0x8914, 0x1
_FRESH = ("tmp", "run")
"""Top-level folders that a pod gets empty and writable instead of the host's."""


def main(spec_path: str) -> int:
    """Run the pod described by the file; returns the program's exit status."""
    spec = json.loads(Path(spec_path).read_text())
    die_with_parent(signal.SIGTERM)
    _enter_namespaces()
    _bring_up_addresses([spec["podIp"], spec["apiServerIp"]])
    _build_root(Path(spec["root"]), spec["mounts"], [Path(each) for each in spec["hostPaths"]])
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _become_program(spec, read_end, write_end)
    os.close(write_end)
    return asyncio.run(_serve(spec, child, read_end))


def _become_program(spec: dict[str, Any], read_end: int, write_end: int) -> None:
    try:
        die_with_parent(signal.SIGKILL)
        os.close(read_end)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        os.chroot(spec["root"])
        os.chdir("/")
        os.execve(spec["argv"][0], spec["argv"], spec["env"])
    except BaseException as error:  # noqa: BLE001 - a forked child must never return into its parent's code
        os.write(2, f"cannot run {spec['argv'][0]}: {error}\n".encode())
        os._exit(127)


async def _serve(spec: dict[str, Any], child: int, output: int) -> int:
    async def go_out(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await connect_unix(Path(spec["apiServerSocket"]))
        except OSError:
            writer.close()
            return
        await join((reader, writer), far)

    async def come_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int((await reader.readline()).strip() or 0)
        try:
            far = await asyncio.open_connection(spec["podIp"], port)
        except OSError:
            writer.close()
            return
        writer.write(b"+")
        await join((reader, writer), far)

    await asyncio.start_server(go_out, spec["apiServerIp"], spec["apiServerPort"])
    await serve_unix(come_in, Path(spec["socket"]))
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, lambda: _signal(child, signal.SIGTERM))
    log = asyncio.create_task(_write_log(output, Path(spec["log"])))
    status = await loop.run_in_executor(None, lambda: os.waitpid(child, 0)[1])
    await log
    return os.waitstatus_to_exitcode(status)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


async def _write_log(output: int, path: Path) -> None:
    """Append the program's output in the CRI log format: time, stream, F for a full line, text."""
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb"))
    with path.open("ab", buffering=0) as stream:
        while line := await reader.readline():
            now = (
                datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            )
            stream.write(f"{now} stdout F ".encode() + line.rstrip(b"\n") + b"\n")


def _enter_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWNS | _CLONE_NEWNET | (0 if user == 0 else _CLONE_NEWUSER)
    if _LIBC.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(
            number,
            f"this machine does not let us make the namespaces of a pod ({os.strerror(number)}): "
            "run as root, or allow unprivileged user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)",
        )
    if flags & _CLONE_NEWUSER:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _bring_up_addresses(addresses: list[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
        for number, address in enumerate(addresses, 1):
            request = struct.pack(
                "16sHH4s8x", f"lo:{number}".encode(), socket.AF_INET, 0, socket.inet_aton(address)
            )
            fcntl.ioctl(control, _SIOCSIFADDR, request)


def _mount(source: str, target: Path, kind: str, flags: int) -> None:
    if _LIBC.mount(source.encode(), str(target).encode(), kind.encode(), flags, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount of {source} at {target}: {os.strerror(number)}")


def _build_root(root: Path, mounts: list[dict[str, Any]], host_paths: list[Path]) -> None:
    """The host's file system seen from a fresh root, with the pod's volumes on top.

    A volume's mount path may lie below the root itself, below /tmp or /run, or at an existing path: those are
    ours to create. Any other path would have to be made on the host, which is refused.
    """
    _mount("none", Path("/"), "none", _MS_REC | _MS_PRIVATE)
    root.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", root, "tmpfs", 0)
    for entry in sorted(Path("/").iterdir()):
        target = root / entry.name
        if entry.is_symlink():
            target.symlink_to(entry.readlink())
        elif entry.name in _FRESH:
            target.mkdir(mode=0o1777)
        elif entry.is_dir():
            target.mkdir()
            _mount(str(entry), target, "none", _MS_BIND | _MS_REC)
    for path in host_paths:
        _bind(path, _inside(root, path), is_read_only=True)
    for mount in mounts:
        _bind(Path(mount["source"]), _inside(root, Path(mount["target"])), is_read_only=mount["readOnly"])


def _inside(root: Path, path: Path) -> Path:
    """`path` as it will be below `root`, following the symlinks of the new root (/var/run is one)."""
    resolved = root
    parts = list(path.parts[1:])
    while parts:
        step = resolved / parts.pop(0)
        if step.is_symlink():
            link = step.readlink()
            if link.is_absolute():
                resolved = root
                parts = [*link.parts[1:], *parts]
            else:
                parts = [*link.parts, *parts]
            continue
        resolved = resolved.parent if step.name == ".." else step
    return resolved


def _bind(source: Path, target: Path, *, is_read_only: bool) -> None:
    if not target.exists():
        try:
            if source.is_dir():
                target.mkdir(parents=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch()
        except OSError as error:
            raise OSError(error.errno, f"the pod's mount path {target} cannot be made: {error}") from error
    elif source.samefile(target):
        return
    _mount(str(source), target, "none", _MS_BIND | _MS_REC)
    if is_read_only:
        # A bind mount takes its flags only when it is remounted; in a user namespace the source's own locked
        # flags (nosuid, nodev) must be kept, so a refusal is not an error: the files belong to us alone.
        _LIBC.mount(b"none", str(target).encode(), b"none", _MS_REMOUNT | _MS_BIND | _MS_RDONLY, None)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m simulator.cluster.sandbox SPEC.json")
    sys.exit(main(sys.argv[1]) & 0xFF)
