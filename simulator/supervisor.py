"""The supervisor of a region: the one process that a person starts, which starts and watches all others.

It runs the simulated cloud, the chart registry and one process a cluster that the cloud has asked for. What dies is started again
and said, in `region.json` and in its log. Everything ends with it, also when it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import logging
import os
import signal
import sys
from pathlib import Path

from simulator.chart_registry import port_of
from simulator.child_process import ChildProcess
from simulator.files import read_json, write_json
from simulator.process_identity import start_time_of
from simulator.region_folder import CHECKOUT, RegionFolder

_LOG = logging.getLogger(__name__)
POLL_SECONDS = 0.1
EVENTS_KEPT = 100


class Supervisor:
    """Runs one region until it is told to stop."""

    def __init__(
        self, region: RegionFolder, region_file: Path, time_scale: float, without: list[str]
    ) -> None:
        self.region = region
        self.region_file = region_file
        self.time_scale = time_scale
        self.without = without
        self._events: list[dict[str, str]] = []
        self._clusters: dict[Path, ChildProcess] = {}
        self._is_ready = False

    def say(self, text: str) -> None:
        """Record what happened, for `status` and the log."""
        _LOG.warning("%s", text)
        moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._events = [*self._events, {"time": moment, "what": text}][-EVENTS_KEPT:]
        self._write()

    async def run(self, stopping: asyncio.Event) -> None:
        """Start the cloud, follow the clusters, and end all of it when `stopping` is set."""
        self._write()
        cloud = ChildProcess(
            "simulated cloud",
            [
                sys.executable,
                "-m",
                "simulator.cloud",
                f"--region-dir={self.region.root}",
                f"--region-file={self.region_file}",
                f"--time-scale={self.time_scale}",
            ],
            log=self.region.logs / "cloud.log",
            say=self.say,
            cwd=CHECKOUT,
            parent_death_signal=signal.SIGTERM,
        )
        registry = ChildProcess(
            "chart registry",
            [sys.executable, "-m", "simulator.chart_registry", str(self.region.root)],
            log=self.region.logs / "chart-registry.log",
            say=self.say,
            cwd=CHECKOUT,
            parent_death_signal=signal.SIGTERM,
        )
        await asyncio.gather(cloud.start(), registry.start())
        try:
            while not stopping.is_set():
                if not self._is_ready and await self._all_answer():
                    self._is_ready = True
                    self._write()
                await self._follow_clusters()
                self._keep_kubeconfig()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), POLL_SECONDS)
        finally:
            await asyncio.gather(*(child.stop(30.0) for child in self._clusters.values()))
            await asyncio.gather(cloud.stop(), registry.stop())
            self.region.kubeconfig.unlink(missing_ok=True)
            self.region.region_json.unlink(missing_ok=True)

    async def _all_answer(self) -> bool:
        for port in ((read_json(self.region.cloud_json) or {}).get("port"), port_of(self.region)):
            if port is None:
                return False
            try:
                _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return False
            writer.close()
        return True

    def _keep_kubeconfig(self) -> None:
        """A person's kubeconfig: one context a running cluster, with the administrator's certificate files."""
        folders = sorted(path.parent for path in self.region.clusters.glob("*/status.json"))
        running = [
            (folder, status)
            for folder in folders
            if (status := read_json(folder / "status.json")) is not None and status["state"] == "RUNNING"
        ]
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": folder.name,
                    "cluster": {
                        "server": f"https://{status['endpoint']}",
                        "certificate-authority-data": status["caCertificate"],
                    },
                }
                for folder, status in running
            ],
            "users": [
                {
                    "name": folder.name,
                    "user": {
                        "client-certificate": str(folder / "pki" / "admin.crt"),
                        "client-key": str(folder / "pki" / "admin.key"),
                    },
                }
                for folder, _status in running
            ],
            "contexts": [
                {"name": folder.name, "context": {"cluster": folder.name, "user": folder.name}}
                for folder, _status in running
            ],
            "current-context": running[0][0].name if running else "",
        }
        if read_json(self.region.kubeconfig) != document:
            write_json(self.region.kubeconfig, document)

    async def _follow_clusters(self) -> None:
        for folder in {path.parent for path in self.region.clusters.glob("*/cluster.json")}:
            if folder in self._clusters:
                continue
            child = ChildProcess(
                f"cluster {folder.name}",
                [sys.executable, "-m", "simulator.cluster", str(folder), str(self.time_scale), *self.without],
                log=self.region.logs / "cluster.log",
                say=self.say,
                cwd=CHECKOUT,
                parent_death_signal=signal.SIGTERM,
                is_expected_exit=lambda code, folder=folder: code == 0 and not folder.exists(),
            )
            self._clusters[folder] = child
            await child.start()
        for folder, child in list(self._clusters.items()):
            if not folder.exists() and child.pid is None:
                await child.stop()
                del self._clusters[folder]

    def _write(self) -> None:
        write_json(
            self.region.region_json,
            {
                "pid": os.getpid(),
                "pidStart": start_time_of(os.getpid()),
                "isReady": self._is_ready,
                "regionFile": str(self.region_file),
                "timeScale": self.time_scale,
                "without": self.without,
                "events": self._events,
            },
        )


def running_pid(region: RegionFolder) -> int | None:
    """The pid of the region's live supervisor, or None: a number that another process got is not it."""
    said = read_json(region.region_json)
    if said is None or start_time_of(said["pid"]) != said["pidStart"]:
        return None
    return int(said["pid"])


def main() -> int:
    """`python -m simulator.supervisor`: not for people; `python -m simulator start` calls it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--region-dir", type=Path, required=True)
    parser.add_argument("--region-file", type=Path, required=True)
    parser.add_argument("--time-scale", type=float, required=True)
    parser.add_argument("--without", action="append", default=[])
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    supervisor = Supervisor(
        RegionFolder(given.region_dir), given.region_file, given.time_scale, given.without
    )
    asyncio.run(_run(supervisor))
    return 0


async def _run(supervisor: Supervisor) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    await supervisor.run(stopping)


if __name__ == "__main__":
    sys.exit(main())
