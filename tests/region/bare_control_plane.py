"""An API server and its etcd, alone, for tests of what only talks to the API server.

The arguments are the region's own (`simulator.cluster.control_plane`); the scheduler, the controller manager and
KWOK stay out. Nodes therefore are what the test says they are.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from simulator.child_process import die_with_parent
from simulator.cluster.control_plane import ControlPlane
from simulator.cluster.kubeconfig import write_kubeconfig
from simulator.kube_api import Api, ApiException
from simulator.region_folder import CHECKOUT


def programs_folder() -> Path | None:
    """Where the built programs are: TPU_SLICES_PROGRAMS, else the region's bin folder."""
    candidates = [os.environ.get("TPU_SLICES_PROGRAMS"), str(CHECKOUT / ".region" / "bin")]
    for candidate in candidates:
        if candidate and all((Path(candidate) / name).exists() for name in ("etcd", "kube-apiserver")):
            return Path(candidate)
    return None


class BareControlPlane:
    """etcd and one API server; the latter can be stopped and started again."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._plane = ControlPlane(
            folder,
            programs,
            folder / "logs",
            service_cidr="10.96.0.0/16",
            api_server_ip="10.96.0.1",
            pod_cidr="10.244.0.0/16",
            say=lambda _text: None,
        )
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.kubeconfig = self._plane.admin_kubeconfig

    def start(self) -> None:
        write_kubeconfig(self.kubeconfig, self._plane.server, self._plane.pki, "admin")
        self._plane._write_configurations()
        self._run("etcd", self._plane._etcd())
        self.start_api_server()

    def start_api_server(self) -> None:
        self._run("kube-apiserver", self._plane._api_server())
        api, deadline = self.api(), time.monotonic() + 60
        while True:
            try:
                api.get("/readyz")
            except Exception as error:
                if isinstance(error, ApiException) and error.status not in {403, 500, 503}:
                    raise
                assert time.monotonic() < deadline, (
                    f"the API server is not ready: {self._log('kube-apiserver')}"
                )
                time.sleep(0.1)
            else:
                return

    def kill_api_server(self) -> None:
        self._end("kube-apiserver", kill=True)

    def stop(self) -> None:
        for name in list(self._running)[::-1]:
            self._end(name, kill=name == "kube-apiserver")

    def api(self) -> Api:
        return Api.from_kubeconfig(self.kubeconfig)

    def _run(self, name: str, arguments: list[str]) -> None:
        log = self._plane.logs / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            self._running[name] = subprocess.Popen(
                [str(self._plane.programs / name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd=self.folder,
                preexec_fn=die_with_parent,  # noqa: PLW1509 (one system call, no lock)
            )

    def _end(self, name: str, *, kill: bool) -> None:
        process = self._running.pop(name)
        process.kill() if kill else process.terminate()
        process.wait(20)

    def _log(self, name: str) -> str:
        return (self._plane.logs / f"{name}.log").read_text()[-2000:]
