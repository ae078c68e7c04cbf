"""The process of one simulated GKE cluster: it brings the control plane up and plays what surrounds it.

Started by the supervisor for a folder with `cluster.json` (written by the simulated cloud); says how it is in
`status.json`; when `cluster.json` asks for deletion it stops everything and removes the folder.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import logging
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kubernetes.aio import client, config

from simulator.child_process import ChildProcess
from simulator.cluster.control_plane import ControlPlane
from simulator.cluster.egress import EgressProxy
from simulator.cluster.kubelet_server import KubeletServer
from simulator.cluster.mirror import Mirror
from simulator.cluster.nodes import Nodes
from simulator.cluster.process_pod import PodHost
from simulator.cluster.process_pods import ProcessPods
from simulator.cluster.programs import SLICE_CONTROLLER
from simulator.cluster.streams import join, serve_unix
from simulator.files import read_json, write_json
from simulator.free_ports import keep_ports
from simulator.public_names import DNS_ENDPOINT, PublicNames
from simulator.region_folder import CHECKOUT, RegionFolder

_LOG = logging.getLogger(__name__)
POLL_SECONDS = 0.1
ADDON_DEADLINE_SECONDS = 60.0
DEFAULT_SERVICE_CIDR, DEFAULT_POD_CIDR = "34.118.224.0/20", "10.244.0.0/14"
"""GKE takes the Services' range from one that Google manages when none is given."""


class Cluster:
    """Everything of one cluster that runs on this machine."""

    def __init__(
        self, region: RegionFolder, folder: Path, time_scale: float, left_out: frozenset[str]
    ) -> None:
        self.region = region
        self.folder = folder
        self.time_scale = time_scale
        self.left_out = left_out
        self.outside_ports = keep_ports(folder / "outside-ports.json", sorted(left_out))
        self.wish: dict[str, Any] = read_json(folder / "cluster.json")
        service_cidr = ipaddress.ip_network(self.wish.get("serviceCidr") or DEFAULT_SERVICE_CIDR)
        pod_cidr = ipaddress.ip_network(self.wish.get("podCidr") or DEFAULT_POD_CIDR)
        self.api_server_ip = str(service_cidr[1])
        # KWOK hands out addresses from the bottom of the pods' range; processes take theirs from the top.
        self._addresses = iter(int(pod_cidr[-2]) - number for number in range(65536))
        self.control_plane = ControlPlane(
            folder,
            region.bin,
            region.logs,
            service_cidr=str(service_cidr),
            api_server_ip=self.api_server_ip,
            pod_cidr=str(pod_cidr),
            say=self.say,
            public_names=PublicNames(region.public_names),
        )
        self._children: list[ChildProcess] = []

    def say(self, text: str) -> None:
        """Tell the supervisor's log what happened."""
        _LOG.warning("%s", text)

    async def run(self, stopping: asyncio.Event) -> None:
        """Bring the cluster up and keep it until `stopping` or until its deletion is asked for."""
        tasks: list[asyncio.Task[Any]] = []
        try:
            await self.control_plane.start()
            loader = client.Configuration()
            await config.load_kube_config(
                str(self.control_plane.admin_kubeconfig), client_configuration=loader
            )
            async with client.ApiClient(loader) as api, contextlib.AsyncExitStack() as stack:
                tasks = await self._start_parts(api, stack)
                self._report("RUNNING")
                await self._until_end(stopping, tasks)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        except (OSError, TimeoutError) as error:
            self._report("ERROR", str(error))
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*(child.stop(5.0) for child in self._children))
            await self.control_plane.stop()
        if self._is_deleting():
            shutil.rmtree(self.folder)

    async def _start_parts(
        self, api: client.ApiClient, stack: contextlib.AsyncExitStack
    ) -> list[asyncio.Task[Any]]:
        core, discovery = client.CoreV1Api(api), client.DiscoveryV1Api(api)
        secrets, config_maps = (
            Mirror(core.list_secret_for_all_namespaces),
            Mirror(core.list_config_map_for_all_namespaces),
        )
        services, slices = (
            Mirror(core.list_service_for_all_namespaces),
            Mirror(discovery.list_endpoint_slice_for_all_namespaces),
        )
        ports = self.control_plane.ports

        async def to_api_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far = await asyncio.open_connection("127.0.0.1", ports["apiserver"])
            except OSError:
                writer.close()
                return
            await join((reader, writer), far)

        api_socket = self.folder / "apiserver.sock"
        server = await serve_unix(to_api_server, api_socket)
        stack.callback(server.close)
        host = PodHost(
            folder=self.folder / "pods",
            programs=self.region.bin,
            api_server_ip=self.api_server_ip,
            api_server_socket=api_socket,
            cluster_ca=self.control_plane.pki.certificate("ca").read_text(),
            time_scale=self.time_scale,
            secrets=secrets,
            config_maps=config_maps,
            give_address=lambda: str(ipaddress.ip_address(next(self._addresses))),
            left_out=self.left_out,
            outside_ports=self.outside_ports,
        )
        shutil.rmtree(host.folder, ignore_errors=True)
        pods = ProcessPods(host, core, self.say)
        nodes = Nodes(self.folder / "pools", core, pods.mirror)
        egress = EgressProxy(self.folder / "egress.sock", services, slices, pods.dial)
        await egress.start()
        stack.push_async_callback(egress.stop)
        kubelet = KubeletServer(
            ports["kubelet"], self.control_plane.pki, pods.mirror, nodes.mirror, pods.log_of
        )
        await kubelet.start()
        stack.push_async_callback(kubelet.stop)
        await self._start_addon()
        return [
            asyncio.create_task(each.run()) for each in (secrets, config_maps, services, slices, pods, nodes)
        ]

    async def _start_addon(self) -> None:
        """Also without the slice controller: Warden judges TPU pods in every cluster."""
        addon = ChildProcess(
            "gke-addon",
            [
                sys.executable,
                "-m",
                "simulator.addon",
                f"--kubeconfig={self.control_plane.admin_kubeconfig}",
                f"--cluster-folder={self.folder}",
                f"--time-scale={self.time_scale}",
            ],
            log=self.region.logs / "gke-addon.log",
            say=self.say,
            cwd=CHECKOUT,
            parent_death_signal=signal.SIGTERM,
        )
        self._children.append(addon)
        await addon.start()
        deadline = time.monotonic() + ADDON_DEADLINE_SECONDS
        while not self._is_addon_ready(addon):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the GKE add-on was not ready within {ADDON_DEADLINE_SECONDS:.0f} s: see {addon.log}"
                )
            await asyncio.sleep(POLL_SECONDS)

    def _is_addon_ready(self, addon: ChildProcess) -> bool:
        said = read_json(self.folder / "addon" / "status.json") or {}
        return bool(said.get("ready")) and said.get("pid") == addon.pid

    async def _until_end(self, stopping: asyncio.Event, tasks: list[asyncio.Task[Any]]) -> None:
        while not stopping.is_set() and not self._is_deleting():
            for task in tasks:
                if task.done():
                    task.result()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), POLL_SECONDS)

    def _is_deleting(self) -> bool:
        wish = read_json(self.folder / "cluster.json")
        return wish is None or bool(wish.get("deleting"))

    def _report(self, state: str, message: str = "") -> None:
        certificate = self.control_plane.pki.certificate("ca").read_bytes()
        port = self.control_plane.ports["apiserver"]
        if state == "RUNNING":
            self._write_exec_credential()
        write_json(
            self.folder / "status.json",
            {
                "state": state,
                "message": message,
                "endpoint": f"127.0.0.1:{port}",
                "dnsEndpoint": f"{DNS_ENDPOINT}:{port}",
                "caCertificate": base64.b64encode(certificate).decode(),
                "outside": {
                    name: {
                        "port": self.outside_ports[name],
                        "kubeconfig": str(self.control_plane.admin_kubeconfig),
                        "pods": str(self.folder / "pods"),
                    }
                    for name in sorted(self.left_out)
                },
            },
        )

    def _write_exec_credential(self) -> None:
        """What the region's stand-in for gke-gcloud-auth-plugin prints: a certificate, as no token exists."""
        pki = self.control_plane.pki
        write_json(
            self.folder / "exec-credential.json",
            {
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "kind": "ExecCredential",
                "status": {
                    "clientCertificateData": pki.certificate("admin").read_text(),
                    "clientKeyData": pki.key("admin").read_text(),
                },
            },
        )


def main(arguments: list[str]) -> int:
    """`python -m simulator.cluster FOLDER TIME_SCALE [IMAGE_NAME…]`; the names are left out."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    folder = Path(arguments[0])
    region = RegionFolder(folder.parent.parent)
    cluster = Cluster(
        region,
        folder,
        float(arguments[1]),
        frozenset(SLICE_CONTROLLER for name in arguments[2:] if name == "slice-controller"),
    )
    asyncio.run(_run(cluster))
    return 0


async def _run(cluster: Cluster) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    await cluster.run(stopping)
