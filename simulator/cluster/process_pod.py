"""One pod that runs as a local process, from its volumes to its end."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import client

from simulator.child_process import die_with_parent
from simulator.cluster import probes, volumes
from simulator.cluster.mirror import Mirror, Object
from simulator.cluster.programs import Program, program_for
from simulator.cluster.streams import Connection, connect_unix
from simulator.files import write_json
from simulator.region_folder import CHECKOUT

_LOG = logging.getLogger(__name__)
RECHECK_SECONDS = 0.25
TOKEN_LIFETIME_SECONDS = 3607
FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 10.0, 300.0
"""The kubelet's own CrashLoopBackOff, divided by the time scale."""
SHORTEST_BACK_OFF_SHARE = 0.05
"""However fast time runs, a program that keeps ending must not take the machine from the others."""


@dataclass(frozen=True)
class PodHost:
    """What every process pod of a cluster shares."""

    folder: Path
    programs: Path
    api_server_ip: str
    api_server_socket: Path
    cluster_ca: str
    time_scale: float
    secrets: Mirror
    config_maps: Mirror
    give_address: Callable[[], str]
    left_out: frozenset[str]
    """Image names whose program somebody else runs on this machine (`start --without …`)."""
    outside_ports: dict[str, int]
    """For each image name left out: the loopback port on which the outside process serves its webhooks."""


class ProcessPod:
    """Runs one pod. `pod` is kept current by the owner; `run` ends when the pod has gone."""

    def __init__(
        self, pod: Object, host: PodHost, core: client.CoreV1Api, say: Callable[[str], None]
    ) -> None:
        self.pod = pod
        self.namespace: str = pod["metadata"]["namespace"]
        self.name: str = pod["metadata"]["name"]
        self.folder = host.folder / pod["metadata"]["uid"]
        self.log = self.folder / "container.log"
        self.address = host.give_address()
        self._host = host
        self._core = core
        self._say = say
        self._stopping = asyncio.Event()
        self._volume_versions: list[str] | None = None
        self._token = ""
        self._token_expires = 0.0
        self._process: asyncio.subprocess.Process | None = None
        self._started_at = _now()
        self._restart_count = 0
        self._is_ready = False
        self._last_status: dict[str, Any] | None = None
        statuses = pod["status"].get("containerStatuses") or []
        if statuses:
            # The cluster process itself was restarted: to the cluster this is a restart of the container.
            self._restart_count = statuses[0]["restartCount"] + 1

    @property
    def _container(self) -> dict[str, Any]:
        container: dict[str, Any] = self.pod["spec"]["containers"][0]
        return container

    @property
    def _program(self) -> Program:
        program = program_for(self._container["image"], self._host.programs, self._host.time_scale)
        assert program is not None
        return program

    @property
    def _is_outside(self) -> bool:
        return self._program.name in self._host.left_out

    def ask_to_stop(self) -> None:
        """Begin the pod's end; `run` returns when it has ended."""
        self._stopping.set()

    async def open_port(self, port: int) -> Connection:
        """A connection to a port of the pod. Raises ConnectionError where nothing listens."""
        if self._is_outside:
            return await asyncio.open_connection("127.0.0.1", self._host.outside_ports[self._program.name])
        try:
            reader, writer = await connect_unix(self.folder / "in.sock")
        except OSError as error:
            raise ConnectionError(f"pod {self.namespace}/{self.name} is not running") from error
        writer.write(f"{port}\n".encode())
        await writer.drain()
        if await reader.read(1) != b"+":
            writer.close()
            raise ConnectionError(f"pod {self.namespace}/{self.name} does not listen on port {port}")
        return reader, writer

    async def run(self) -> None:
        """Start, probe and restart the program until the pod is deleted."""
        back_off = FIRST_BACK_OFF_SECONDS
        try:
            while not self._stopping.is_set():
                started = time.monotonic()
                if not await self._prepare():
                    break
                code = await self._live()
                if self._stopping.is_set():
                    break
                if time.monotonic() - started > LONGEST_BACK_OFF_SECONDS / 10:
                    back_off = FIRST_BACK_OFF_SECONDS
                self._restart_count += 1
                self._say(f"pod {self.namespace}/{self.name} ended (exit code {code}) and is started again")
                await self._report_waiting(
                    "CrashLoopBackOff", f"back-off restarting {self._program.name}", code
                )
                await self._pause(back_off * max(1 / self._host.time_scale, SHORTEST_BACK_OFF_SHARE))
                back_off = min(2 * back_off, LONGEST_BACK_OFF_SECONDS)
        finally:
            await self._end_process()
            shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(client.ApiException, aiohttp.ClientError):
            await self._core.delete_namespaced_pod(
                self.name,
                self.namespace,
                # In the body: the API server ignores the query's options when there is one.
                body=client.V1DeleteOptions(
                    grace_period_seconds=0,
                    preconditions=client.V1Preconditions(uid=self.pod["metadata"]["uid"]),
                ),
            )

    async def _prepare(self) -> bool:
        """Fill the volumes, waiting for what they need. False when the pod was deleted meanwhile."""
        while not self._stopping.is_set():
            try:
                await self._refresh_volumes()
                return True
            except volumes.VolumeNotReady as error:
                await self._report_waiting("ContainerCreating", f"MountVolume.SetUp failed: {error}", None)
            except (client.ApiException, aiohttp.ClientError, OSError) as error:
                await self._report_waiting("ContainerCreating", f"waiting for the API server: {error}", None)
            await self._pause(RECHECK_SECONDS)
        return False

    async def _refresh_volumes(self) -> None:
        if time.time() > self._token_expires:
            answer = await self._core.create_namespaced_service_account_token(
                self.pod["spec"].get("serviceAccountName") or "default",
                self.namespace,
                client.AuthenticationV1TokenRequest(
                    spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=TOKEN_LIFETIME_SECONDS)
                ),
            )
            self._token = answer.status.token
            self._token_expires = time.time() + 0.8 * TOKEN_LIFETIME_SECONDS
        sources = volumes.Sources(
            self._host.secrets.objects,
            self._host.config_maps.objects,
            self._token,
            self._host.cluster_ca,
        )
        versions = volumes.versions(self.pod, sources)
        if versions != self._volume_versions:
            volumes.fill(self.pod, self.folder / "volumes", sources)
            self._volume_versions = versions

    async def _live(self) -> int:
        """One life of the container, to its end or the pod's. Returns the exit code."""
        self._started_at = _now()
        self._is_ready = False
        if self._is_outside:
            return await self._watch_outside()
        await self._spawn()
        assert self._process is not None
        exited = asyncio.create_task(self._process.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait((exited, stopping, watching), return_when=asyncio.FIRST_COMPLETED)
            if watching.done() and watching.exception() is not None:
                raise watching.exception()  # type: ignore[misc]
            if not exited.done():
                await self._end_process()
            return self._process.returncode if self._process.returncode is not None else -1
        finally:
            for task in (exited, stopping, watching):
                task.cancel()
            await asyncio.gather(exited, stopping, watching, return_exceptions=True)

    async def _spawn(self) -> None:
        program, container = self._program, self._container
        specification = {
            "root": str(self.folder / "root"),
            "podIp": self.address,
            "apiServerIp": self._host.api_server_ip,
            "apiServerPort": 443,
            "apiServerSocket": str(self._host.api_server_socket),
            "socket": str(self.folder / "in.sock"),
            "log": str(self.log),
            "argv": [*program.argv, *[self._expand(each) for each in container.get("args") or []]],
            "env": self._environment(program),
            "hostPaths": [str(path) for path in program.host_paths],
            "mounts": [
                {"source": str(mount.source), "target": mount.target, "readOnly": mount.is_read_only}
                for mount in volumes.mounts(self.pod, container, self.folder / "volumes")
            ],
        }
        path = self.folder / "sandbox.json"
        write_json(path, specification)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "simulator.cluster.sandbox",
            str(path),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=self.log.open("ab"),
            cwd=CHECKOUT,
            preexec_fn=lambda: die_with_parent(signal.SIGTERM),
            start_new_session=True,
        )

    def _environment(self, program: Program) -> dict[str, str]:
        found = {
            "PATH": os.defpath,
            "HOME": "/tmp",  # noqa: S108 - the sandbox's own, empty and gone with it
            "HOSTNAME": self.name,
            "KUBERNETES_SERVICE_HOST": self._host.api_server_ip,
            "KUBERNETES_SERVICE_PORT": "443",
            **dict(program.environment),
        }
        for each in self._container.get("env") or []:
            if "value" in each:
                found[each["name"]] = self._expand(each["value"], found)
            elif reference := each.get("valueFrom", {}).get("fieldRef"):
                pod = {**self.pod, "status": {**self.pod["status"], "podIP": self.address}}
                found[each["name"]] = str(volumes.field(pod, reference["fieldPath"]))
        return found

    def _expand(self, text: str, known: dict[str, str] | None = None) -> str:
        for name, value in (self._environment(self._program) if known is None else known).items():
            text = text.replace(f"$({name})", value)
        return text

    async def _watch(self) -> None:
        """Keep the volumes fresh and ask the probes; returns when liveness has failed for good."""
        container = self._container
        names = {
            port["name"]: port["containerPort"] for port in container.get("ports") or [] if "name" in port
        }
        # Readiness may be found out faster than in life; a program is given as long as in life before it is ended.
        scales = {"readinessProbe": self._host.time_scale, "livenessProbe": 1.0}
        begun = time.monotonic()
        failures = dict.fromkeys(("readinessProbe", "livenessProbe"), 0)
        due = {
            kind: begun
            + (probes.initial_delay_seconds(container[kind], scales[kind]) if container.get(kind) else 0.0)
            for kind in failures
        }
        has_started = False
        while True:
            await self._refresh_quietly()
            now = time.monotonic()
            for kind in failures:
                probe = container.get(kind)
                if probe is None:
                    if kind == "readinessProbe":
                        self._is_ready = True
                    continue
                if now < due[kind]:
                    continue
                due[kind] = now + probes.period_seconds(probe, scales[kind])
                if await probes.answers(probe, names, self.open_port):
                    failures[kind] = 0
                    has_started = True
                    if kind == "readinessProbe":
                        self._is_ready = True
                    continue
                failures[kind] += 1
                is_over = failures[kind] >= int(probe.get("failureThreshold") or 3)
                if kind == "readinessProbe" and is_over:
                    self._is_ready = False
                # A program starts slowly on a busy machine of two cores: until its first good answer a failed
                # liveness probe counts only after a minute.
                if kind == "livenessProbe" and is_over and (has_started or now - begun > 60.0):
                    self._say(f"pod {self.namespace}/{self.name} fails its liveness probe and is restarted")
                    return
            await self._report_running()
            await asyncio.sleep(RECHECK_SECONDS)

    async def _watch_outside(self) -> int:
        """The pod of a program that somebody else runs: Ready while its port accepts connections."""
        while not self._stopping.is_set():
            await self._refresh_quietly()
            try:
                _reader, writer = await self.open_port(0)
                writer.close()
                self._is_ready = True
            except OSError:
                self._is_ready = False
            await self._report_running()
            await self._pause(RECHECK_SECONDS)
        return 0

    async def _refresh_quietly(self) -> None:
        with contextlib.suppress(volumes.VolumeNotReady, client.ApiException, aiohttp.ClientError, OSError):
            await self._refresh_volumes()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _end_process(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        grace = self.pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is None:
            grace = self.pod["spec"].get("terminationGracePeriodSeconds", 30)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), max(float(grace), 1.0))
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _report_running(self) -> None:
        state = {"running": {"startedAt": self._started_at}}
        await self._report("Running", self._is_ready, state)

    async def _report_waiting(self, reason: str, message: str, code: int | None) -> None:
        self._is_ready = False
        phase = "Pending" if code is None and self._restart_count == 0 else "Running"
        state: dict[str, Any] = {"waiting": {"reason": reason, "message": message[:1000]}}
        await self._report(phase, False, state, code)

    async def _report(
        self, phase: str, is_ready: bool, state: dict[str, Any], last_code: int | None = None
    ) -> None:
        container: dict[str, Any] = {
            "name": self._container["name"],
            "image": self._container["image"],
            "imageID": "",
            "ready": is_ready,
            "started": "running" in state,
            "restartCount": self._restart_count,
            "state": state,
        }
        if last_code is not None:
            container["lastState"] = {
                "terminated": {"exitCode": last_code, "reason": "Error", "finishedAt": _now()}
            }
        ready = "True" if is_ready else "False"
        status: dict[str, Any] = {
            "phase": phase,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": "127.0.0.1",
            "startTime": self.pod["status"].get("startTime") or self._started_at,
            "containerStatuses": [container],
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": ready},
                {"type": "ContainersReady", "status": ready},
            ],
        }
        if status == self._last_status:
            return
        stamped = json.loads(json.dumps(status))
        for condition in stamped["conditions"]:
            condition["lastTransitionTime"] = _now()
        # Strategic merge keeps what others own in the list of conditions (the scheduler's PodScheduled), but would
        # also keep an address that this pod had before the cluster process was restarted.
        stamped["podIPs"].append({"$patch": "replace"})
        try:
            await self._core.patch_namespaced_pod_status(
                self.name,
                self.namespace,
                {"metadata": {"uid": self.pod["metadata"]["uid"]}, "status": stamped},
                _content_type="application/strategic-merge-patch+json",
            )
        except (client.ApiException, aiohttp.ClientError, OSError) as error:
            if getattr(error, "status", None) != 404:
                _LOG.warning("status of pod %s/%s: %s", self.namespace, self.name, error)
            return
        self._last_status = status


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
