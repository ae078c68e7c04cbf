"""The two servers of the pod: probes in clear, webhooks over TLS.

The webhook server takes new certificates while it runs, and keeps private keys off the disk.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from simulator.slice_controller import json_patch, webhooks

log = logging.getLogger(__name__)

WEBHOOK_PORT = 9443
_IDLE_SECONDS = 120.0
_HANDSHAKE_SECONDS = 10.0


def review(path: str, request: dict[str, Any], rules: webhooks.Rules) -> dict[str, Any]:
    """The answer to an AdmissionReview: a patch, a refusal in the controller's words, or plain consent."""
    asked = request["request"]
    answer: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
    if asked.get("operation") == "CREATE":
        try:
            mutated = webhooks.MUTATIONS[path](asked["object"], rules)
        except webhooks.Refused as refusal:
            log.info("%s: refused: %s", path, refusal)
            answer |= {
                "allowed": False,
                "status": {"code": 403, "reason": "Forbidden", "message": str(refusal)},
            }
        else:
            if operations := json_patch.difference(asked["object"], mutated):
                patch = base64.b64encode(json.dumps(operations).encode()).decode()
                answer |= {"patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "slice-controller"
    sys_version = ""
    timeout = _IDLE_SECONDS
    wbufsize = 1 << 16

    def answer(self, status: int, content: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Say nothing a request: probes come several times a second, refusals say themselves."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("connection from %s ended badly", client_address)


def _address(bind: str) -> tuple[str, int]:
    """`:8081` or `127.0.0.1:8081` as Go reads it."""
    host, _, port = bind.rpartition(":")
    if not port.isdigit():
        raise ValueError(f"a bind address must be host:port or :port (got {bind!r})")
    return host or "0.0.0.0", int(port)  # noqa: S104 - a pod's network is its own


class HealthServer:
    """/healthz answers as long as the process does; /readyz once `is_ready` says so."""

    def __init__(self, bind: str, is_ready: Callable[[], bool]) -> None:
        class Handler(_Handler):
            def do_GET(self) -> None:
                name = self.path.split("?")[0].strip("/")
                if name not in {"healthz", "readyz"}:
                    self.answer(404, b"404 page not found\n")
                elif name == "readyz" and not is_ready():
                    self.answer(500, b"[-]readyz failed: reason withheld\nhealthz check failed\n")
                else:
                    self.answer(200, b"ok")

        self._server = _Server(_address(bind), Handler)

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class WebhookServer:
    """Serves the mutating webhooks from the moment it has its first certificate."""

    def __init__(self, rules: webhooks.Rules, port: int = WEBHOOK_PORT) -> None:
        self._rules = rules
        self._port = port
        self._context: ssl.SSLContext | None = None
        self._server: _Server | None = None

    @property
    def is_serving(self) -> bool:
        return self._server is not None

    @property
    def port(self) -> int:
        """The port it listens on; differs from the one asked for when that was 0."""
        return self._server.server_port if self._server is not None else self._port

    def use(self, certificate: bytes, key: bytes) -> None:
        """Serve new connections with this pair; the first call opens the port."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        descriptor = os.memfd_create("serving-certificate")
        try:
            os.write(descriptor, certificate + key)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        self._context = context
        if self._server is None:
            self._server = self._open()
            threading.Thread(target=self._server.serve_forever, name="webhooks", daemon=True).start()
            log.info("webhooks are served on port %d", self.port)

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _open(self) -> _Server:
        rules = self._rules
        webhook_server = self

        class Handler(_Handler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.split("?")[0]  # the API server adds ?timeout=10s
                if path not in webhooks.MUTATIONS:
                    self.answer(404, b"404 page not found\n")
                    return
                try:
                    content = json.dumps(review(path, json.loads(body), rules)).encode()
                except Exception:
                    log.exception("%s: could not answer", path)
                    self.answer(500, b"the webhook failed; its log says why\n")
                    return
                self.answer(200, content, "application/json")

        class Server(_Server):
            def process_request_thread(self, request: Any, client_address: Any) -> None:
                context = webhook_server._context
                assert context is not None
                try:
                    request.settimeout(_HANDSHAKE_SECONDS)
                    request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    wrapped = context.wrap_socket(request, server_side=True)
                except OSError as error:
                    # Whoever only looks whether the port is open ends here too, several times a second.
                    log.debug("TLS handshake with %s failed: %s", client_address, error)
                    self.shutdown_request(request)
                    return
                super().process_request_thread(wrapped, client_address)

        return Server(("0.0.0.0", self._port), Handler)  # noqa: S104 - a pod's network is its own
