"""The HTTPS server that answers the API server's admission reviews, on loopback, with a certificate of its own.

The certificate and the port are kept in the cluster's folder, so that a restart answers where, and as whom, the
webhook configurations say. Refuses every path but the one it registers, and says nothing about other objects.
"""

from __future__ import annotations

import datetime
import errno
import ipaddress
import json
import logging
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from simulator.addon.admission import review
from simulator.files import write_atomically
from simulator.free_ports import keep_ports

log = logging.getLogger(__name__)

PATH = "/review"
_VALIDITY = datetime.timedelta(days=365)
_MAX_BODY = 8 << 20


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if self.path.partition("?")[0] != PATH or not 0 < length <= _MAX_BODY:
            self.close_connection = True
            self._answer(404, {"error": f"POST an AdmissionReview to {PATH}"})
            return
        try:
            answer = review(json.loads(self.rfile.read(length)))
        except (ValueError, KeyError, TypeError) as error:
            log.exception("an admission review could not be answered")
            self._answer(400, {"error": f"{type(error).__name__}: {error}"})
            return
        self._answer(200, answer)

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        log.debug(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("connection of %s ended", client_address)


class WebhookServer:
    """Serves from start() to stop(); `url` and `certificate` are what the API server must be told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        key, certificate = folder / "webhook.key", folder / "webhook.crt"
        if not (key.exists() and certificate.exists()):
            _make_certificate(key, certificate)
        self.certificate = certificate.read_bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = self._listen()
        # The handshake is done by the connection's own thread, at its first read: a client that hangs in it
        # holds up nobody else.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhooks", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}{PATH}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _listen(self) -> _Server:
        ports = self._folder / "ports.json"
        try:
            return _Server(("127.0.0.1", keep_ports(ports, ("webhook",))["webhook"]), _Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        log.warning("the webhooks' port is taken by someone else: choosing another")
        ports.unlink()
        return _Server(("127.0.0.1", keep_ports(ports, ("webhook",))["webhook"]), _Handler)


def _make_certificate(key_path: Path, certificate_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "simulated GKE admission webhooks")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    write_atomically(
        key_path,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
    write_atomically(certificate_path, certificate.public_bytes(serialization.Encoding.PEM))
