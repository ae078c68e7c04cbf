"""Starting, stopping and asking a region: the commands `start`, `stop`, `status` and `reset`.

A region is one supervisor (supervisor.py) and what it started. Start lays out the region's folder (programs,
charts, engine plugins) and returns when the simulated cloud answers; stop ends the supervisor and looks that
nothing of the region is left running.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facts import versions
from simulator.chart_registry import port_of
from simulator.files import read_json, write_atomically
from simulator.public_names import PublicNames
from simulator.region_folder import CHECKOUT, RegionFolder
from simulator.supervisor import running_pid
from simulator.toolchain import Toolchain
from simulator.toolchain.official import COMPANIONS, REGION_MARK

START_DEADLINE_SECONDS = 60.0
STOP_DEADLINE_SECONDS = 45.0
POLL_SECONDS = 0.1
ENGINE = frozenset({"pulumi", *COMPANIONS})
"""The engine looks for its language host where it lies itself, and warns of one that it finds elsewhere."""
DEFAULT_REGION_FILE = CHECKOUT / "simulator" / "regions" / "local.yaml"


class RegionError(Exception):
    """What a person is told when a region cannot be started or stopped."""


@dataclass(frozen=True)
class StartOptions:
    """How a region is started."""

    region_file: Path = DEFAULT_REGION_FILE
    time_scale: float = float("inf")
    without: tuple[str, ...] = ()


def prepare_folder(region: RegionFolder, toolchain: Toolchain) -> None:
    """Lay out what the engine and the control plane are found by. Doing it again changes nothing."""
    for folder in (region.bin, region.charts, region.logs, region.clusters, region.pulumi_backend):
        folder.mkdir(parents=True, exist_ok=True)
    for name, path in toolchain.programs.items():
        if path == toolchain.kubernetes_provider:
            continue  # on PATH the engine would take it from there, with a warning at each step
        if name in ENGINE and not toolchain.pulumi_is_official:
            _same_file(region.bin / name, path)
        else:
            _link(region.bin / name, path)
    write_atomically(region.bin / REGION_MARK, "")
    for name, path in toolchain.charts.items():
        _link(region.charts / name, path)
    plugin = region.pulumi_home / "plugins" / f"resource-kubernetes-v{versions.PULUMI_KUBERNETES}"
    plugin.mkdir(parents=True, exist_ok=True)
    PublicNames(region.public_names).write_bundle(region.trusted_roots)
    # The provider alone goes through the region's registry: charts that a stack takes from their published addresses
    # are the same ones here, and a person's shell keeps its own way out.
    write_atomically(
        plugin / "pulumi-resource-kubernetes",
        "#!/bin/sh\n"
        f'export SSL_CERT_FILE="{region.trusted_roots}" HTTPS_PROXY="http://127.0.0.1:{port_of(region)}"\n'
        "unset NO_PROXY no_proxy\n"
        f'exec "{toolchain.kubernetes_provider}" "$@"\n',
        0o755,
    )
    script = CHECKOUT / "simulator" / "gke_gcloud_auth_plugin.py"
    write_atomically(
        region.bin / "gke-gcloud-auth-plugin",
        f'#!/bin/sh\nexec "{sys.executable}" -I -S "{script}" "{region.root}"\n',
        0o755,
    )


def _same_file(place: Path, source: Path) -> None:
    """The program itself, not a link to it: a hard link where the disk allows it, else a copy."""
    if place.exists() and not place.is_symlink() and place.stat().st_size == source.stat().st_size:
        return
    place.unlink(missing_ok=True)
    try:
        place.hardlink_to(source)
    except OSError:
        write_atomically(place, source.read_bytes(), 0o755)


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def start(region: RegionFolder, options: StartOptions) -> bool:
    """Start the region's supervisor. False when it already runs with the same options.

    Raises RegionError when it runs with others, or does not come up.
    """
    running = read_json(region.region_json)
    if running_pid(region) is not None:
        asked = (str(options.region_file), options.time_scale, sorted(options.without))
        if (running["regionFile"], running["timeScale"], sorted(running["without"])) != asked:
            raise RegionError(
                f"a region already runs here with other options (region file {running['regionFile']}, time scale "
                f"{running['timeScale']}, without {running['without'] or 'nothing'}): stop it first, with "
                "`make down` or `python -m simulator stop`."
            )
        return False
    region.region_json.unlink(missing_ok=True)
    log = region.logs / "supervisor.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "simulator.supervisor",
                f"--region-dir={region.root}",
                f"--region-file={options.region_file}",
                f"--time-scale={options.time_scale}",
                *(f"--without={name}" for name in options.without),
            ],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RegionError(
                f"the region's supervisor ended at once (exit {process.returncode}):\n{_end_of(log)}"
            )
        if (read_json(region.region_json) or {}).get("isReady"):
            return True
        time.sleep(POLL_SECONDS)
    stop(region)
    raise RegionError(
        f"the simulated cloud did not answer within {START_DEADLINE_SECONDS:.0f} s:\n"
        f"{_end_of(region.logs / 'cloud.log')}"
    )


def stop(region: RegionFolder) -> bool:
    """Stop the region and all it started. False when none ran."""
    pid = running_pid(region)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_DEADLINE_SECONDS
    while running_pid(region) is not None:
        if time.monotonic() > deadline:
            # Its children end with it: each asked the kernel for that.
            os.kill(pid, signal.SIGKILL)
            break
        time.sleep(POLL_SECONDS)
    return True


def reset(region: RegionFolder) -> None:
    """Stop the region and forget all of its state: clusters, inventory, stacks, logs."""
    stop(region)
    shutil.rmtree(region.root, ignore_errors=True)


def status(region: RegionFolder) -> dict[str, Any]:
    """What runs, for a person or a program."""
    said = read_json(region.region_json) or {}
    return {
        "running": running_pid(region) is not None,
        "folder": str(region.root),
        "regionFile": said.get("regionFile"),
        "timeScale": said.get("timeScale"),
        "without": said.get("without", []),
        "cloudPort": (read_json(region.cloud_json) or {}).get("port"),
        "kubeconfig": str(region.kubeconfig) if region.kubeconfig.exists() else None,
        "clusters": {
            path.parent.name: {
                key: value for key, value in (read_json(path) or {}).items() if key != "caCertificate"
            }
            for path in sorted(region.clusters.glob("*/status.json"))
        },
        "events": said.get("events", []),
    }


def _end_of(log: Path, line_count: int = 15) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join([*lines[-line_count:], f"(all of it: {log})"])
