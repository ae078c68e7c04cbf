"""`python -m simulator.slice_controller <flags of the manifest>`: the stand-in as its pod runs it.

Reads --kubeconfig or KUBECONFIG, else the service account that a pod has; serves probes at once, webhooks when the
certificates are in place, and reconciles when it leads. Ends with 0 on SIGTERM or SIGINT, with 1 when it loses the lead, with 2 on wrong flags.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from simulator.reconcile import Api, Informer
from simulator.slice_controller import check_controller, flags
from simulator.slice_controller.certificates import NAMESPACE, CertificateController
from simulator.slice_controller.check_controller import CheckController
from simulator.slice_controller.leadership import Leadership
from simulator.slice_controller.server import HealthServer, WebhookServer
from simulator.slice_controller.states import Policy
from simulator.slice_controller.timing import Timing, time_scale
from simulator.slice_controller.webhooks import Rules
from simulator.slice_controller.workload_controller import WorkloadController

log = logging.getLogger("simulator.slice_controller")

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Program:
    """All parts of the process, started in the order in which each may work."""

    def __init__(self, api: Api, given: flags.Flags, scale: float, *, namespace: str = NAMESPACE) -> None:
        timing = Timing.of(
            activation_timeout=given.activation_timeout_seconds,
            retry_delay=given.retry_delay_seconds,
            scale=scale,
        )
        from_selectors = given.gates["TopologyFromNodeSelectorOrAffinity"]
        policy = Policy(
            activation_timeout_seconds=timing.activation_timeout,
            retry_delay_seconds=timing.retry_delay,
            retry_on_failure=given.gates["UseRetryMechanismForSliceCreation"],
            fail_on_untolerated_degraded=given.gates["FailOnUntoleratedDegradedSlice"],
            topology_from_selectors=from_selectors,
        )
        rules = Rules(healthy_values=given.healthy_values, topology_from_selectors=from_selectors)
        checks = Informer(api, check_controller.COLLECTION)
        self.exit_code = 0
        self.ended = threading.Event()
        self._leads_at_once = not given.leader_elect
        self._certified = threading.Event()
        self._started: list[WorkloadController | CheckController] = []
        self._reconcilers = (
            CheckController(api, checks),
            WorkloadController(api, checks=checks, policy=policy, timing=timing),
        )
        self._webhooks = WebhookServer(rules)
        self._health = HealthServer(given.health_probe_bind_address, self._is_ready)
        self._certificates = CertificateController(
            api, serve=self._webhooks.use, announced=self._certified.set
        )
        self._leadership = Leadership(
            api,
            namespace=namespace,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            timing=timing,
            lead=self._lead,
            lost=self._lose,
        )

    def run(self) -> int:
        """Work until told to end; the exit code."""
        self._health.start()
        self._certificates.start()
        while not self.ended.is_set() and not self._certified.wait(0.2):
            pass
        if not self.ended.is_set():
            if self._leads_at_once:
                self._lead()
            else:
                self._leadership.start()
        self.ended.wait()
        self._stop()
        return self.exit_code

    def _is_ready(self) -> bool:
        return self._certified.is_set() and self._webhooks.is_serving

    def _lead(self) -> None:
        for reconciler in self._reconcilers:
            reconciler.start()
            self._started.append(reconciler)

    def _lose(self) -> None:
        self.exit_code = 1
        self.ended.set()

    def _stop(self) -> None:
        for reconciler in self._started:
            reconciler.stop()
        self._leadership.stop()
        self._certificates.stop()
        self._webhooks.stop()
        self._health.stop()


def main(arguments: Sequence[str]) -> int:
    """Parse, wire and run."""
    try:
        given = flags.parse(arguments)
        scale = time_scale(os.environ)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logging.basicConfig(
        level=logging.DEBUG if given.verbosity >= 3 else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    for noisy in ("urllib3", "kubernetes"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    namespace = _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else NAMESPACE
    kubeconfig = given.kubeconfig or os.environ.get("KUBECONFIG")
    api = Api.from_kubeconfig(kubeconfig) if kubeconfig else Api.in_cluster()
    program = Program(api, given, scale, namespace=namespace)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: program.ended.set())
    log.info("starting, timers divided by %g", scale)
    return program.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
