"""The real Kubernetes control plane of one cluster: etcd, API server, controller manager, scheduler, KWOK.

All listen on loopback, on ports kept in the cluster's folder, so a part that is killed comes back where the
others look for it. The API server runs with RBAC and with front-proxy certificates, so every APIService of a
chart can become Available; its calls to Services and kubelets leave through the egress proxy's unix socket.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from simulator.child_process import ChildProcess
from simulator.cluster import kwok
from simulator.cluster.kubeconfig import write_kubeconfig
from simulator.cluster.pki import Pki
from simulator.files import write_atomically
from simulator.free_ports import keep_ports
from simulator.public_names import DNS_ENDPOINT, PublicNames

_PORT_NAMES = ("etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler", "kwok", "kubelet")
READY_DEADLINE_SECONDS = 90.0


class ControlPlane:
    """The programs of one control plane. `folder` is the cluster's; `programs` holds the built programs.

    With `public_names` it also answers as GKE's DNS endpoint does.
    """

    def __init__(
        self,
        folder: Path,
        programs: Path,
        logs: Path,
        *,
        service_cidr: str,
        api_server_ip: str,
        pod_cidr: str,
        say: Callable[[str], None],
        public_names: PublicNames | None = None,
    ) -> None:
        self.folder = folder
        self.programs = programs
        self.logs = logs
        self.service_cidr = service_cidr
        self.pod_cidr = pod_cidr
        self.pki = Pki(folder / "pki", api_server_ip)
        self.ports = keep_ports(folder / "ports.json", _PORT_NAMES)
        self.server = f"https://127.0.0.1:{self.ports['apiserver']}"
        self._say = say
        self._public_names = public_names
        self.children: dict[str, ChildProcess] = {}

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig of the cluster's administrator."""
        return self.folder / "admin.kubeconfig"

    async def start(self) -> None:
        """Start everything; returns when the API server is ready. Raises TimeoutError at the deadline."""
        for identity in ("admin", "controller-manager", "scheduler"):
            write_kubeconfig(self.folder / f"{identity}.kubeconfig", self.server, self.pki, identity)
        self._write_configurations()
        await self._run("etcd", self._etcd())
        await self._run("kube-apiserver", self._api_server())
        await self.wait_until_ready()
        await asyncio.gather(
            self._run("kube-controller-manager", self._controller_manager()),
            self._run("kube-scheduler", self._scheduler()),
            self._run("kwok", self._kwok()),
        )

    async def stop(self) -> None:
        """Stop everything, clients before servers. Nothing needs to be flushed: the cluster goes with it."""
        for names in (("kwok", "kube-scheduler", "kube-controller-manager"), ("kube-apiserver",), ("etcd",)):
            await asyncio.gather(
                *(self.children[name].stop(deadline_seconds=2.0) for name in names if name in self.children)
            )

    async def wait_until_ready(self, deadline_seconds: float = READY_DEADLINE_SECONDS) -> None:
        """Return when the API server answers /readyz."""
        context = ssl.create_default_context(cafile=str(self.pki.certificate("ca")))
        context.load_cert_chain(self.pki.certificate("admin"), self.pki.key("admin"))
        deadline = time.monotonic() + deadline_seconds
        last = "no answer"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            while time.monotonic() < deadline:
                try:
                    async with session.get(f"{self.server}/readyz") as answer:
                        if answer.status == 200:
                            return
                        last = f"HTTP {answer.status}: {(await answer.text())[-200:]}"
                except aiohttp.ClientError as error:
                    last = str(error)
                await asyncio.sleep(0.1)
        raise TimeoutError(
            f"the API server was not ready within {deadline_seconds:.0f} s ({last}); "
            f"see {self.logs / 'kube-apiserver.log'}"
        )

    async def _run(self, name: str, arguments: list[str]) -> None:
        child = ChildProcess(
            name,
            [str(self.programs / name), *arguments],
            log=self.logs / f"{name}.log",
            say=self._say,
            # The API server finds the egress socket by a path relative to this folder: a unix socket's path
            # may have 107 characters at most, and a checkout can lie deep.
            cwd=self.folder,
        )
        self.children[name] = child
        await child.start()

    def _write_configurations(self) -> None:
        write_atomically(
            self.folder / "egress.yaml",
            """\
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: egress.sock}}}
- {name: controlplane, connection: {proxyProtocol: Direct}}
- {name: etcd, connection: {proxyProtocol: Direct}}
""",
        )
        write_atomically(
            self.folder / "scheduler.yaml",
            f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: "{self.folder / "scheduler.kubeconfig"}", qps: 500, burst: 1000}}
""",
        )
        write_atomically(self.folder / "kwok.yaml", kwok.configuration())

    def _etcd(self) -> list[str]:
        client = f"https://127.0.0.1:{self.ports['etcd']}"
        peer = f"http://127.0.0.1:{self.ports['etcd-peer']}"
        return [
            "--name=region",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=region={peer}",
            "--client-cert-auth",
            f"--trusted-ca-file={self.pki.certificate('etcd-ca')}",
            f"--cert-file={self.pki.certificate('etcd-server')}",
            f"--key-file={self.pki.key('etcd-server')}",
            # Losing power loses the simulation; a killed etcd loses nothing, the page cache outlives it.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _dns_endpoint(self) -> list[str]:
        """Asked by name, the API server shows a certificate of public trust, not one of its own authority."""
        public = self._public_names
        if public is None:
            return []
        return [f"--tls-sni-cert-key={public.server_certificate},{public.server_key}:{DNS_ENDPOINT}"]

    def _api_server(self) -> list[str]:
        certificate, key = self.pki.certificate, self.pki.key
        return [
            f"--etcd-servers=https://127.0.0.1:{self.ports['etcd']}",
            f"--etcd-cafile={certificate('etcd-ca')}",
            f"--etcd-certfile={certificate('etcd-client')}",
            f"--etcd-keyfile={key('etcd-client')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['apiserver']}",
            # Without a default route the API server cannot find an address of its own to advertise.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={certificate('apiserver')}",
            f"--tls-private-key-file={key('apiserver')}",
            *self._dns_endpoint(),
            f"--client-ca-file={certificate('ca')}",
            f"--service-account-key-file={self.pki.service_account_public_key}",
            f"--service-account-signing-key-file={key('service-account')}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=Node,RBAC",
            f"--service-cluster-ip-range={self.service_cidr}",
            f"--egress-selector-config-file={self.folder / 'egress.yaml'}",
            f"--requestheader-client-ca-file={certificate('front-proxy-ca')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={certificate('front-proxy-client')}",
            f"--proxy-client-key-file={key('front-proxy-client')}",
            f"--kubelet-client-certificate={certificate('apiserver-kubelet')}",
            f"--kubelet-client-key={key('apiserver-kubelet')}",
            f"--kubelet-certificate-authority={certificate('ca')}",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged",
            "--profiling=false",
            "--shutdown-delay-duration=0s",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.folder / 'controller-manager.kubeconfig'}",
            f"--authentication-kubeconfig={self.folder / 'controller-manager.kubeconfig'}",
            f"--authorization-kubeconfig={self.folder / 'controller-manager.kubeconfig'}",
            f"--service-account-private-key-file={self.pki.key('service-account')}",
            f"--root-ca-file={self.pki.certificate('ca')}",
            f"--cluster-signing-cert-file={self.pki.certificate('ca')}",
            f"--cluster-signing-key-file={self.pki.key('ca')}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['controller-manager']}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--profiling=false",
        ]

    def _scheduler(self) -> list[str]:
        return [
            f"--config={self.folder / 'scheduler.yaml'}",
            f"--authentication-kubeconfig={self.folder / 'scheduler.kubeconfig'}",
            f"--authorization-kubeconfig={self.folder / 'scheduler.kubeconfig'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['scheduler']}",
        ]

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self.admin_kubeconfig}",
            f"--config={self.folder / 'kwok.yaml'}",
            "--manage-all-nodes=true",
            f"--cidr={self.pod_cidr}",
            "--node-ip=127.0.0.1",
            f"--node-port={self.ports['kubelet']}",
            f"--server-address=127.0.0.1:{self.ports['kwok']}",
            f"--tls-cert-file={self.pki.certificate('kubelet')}",
            f"--tls-private-key-file={self.pki.key('kubelet')}",
            "--node-lease-duration-seconds=40",
        ]
