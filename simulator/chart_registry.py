"""The registry of charts as seen from the region: what `charts.source: oci` is pulled from on this machine.

A stack that takes its charts from their published addresses runs here unchanged: the Kubernetes provider's HTTPS goes
through this proxy, which answers for the charts' hosts itself, with the charts of the built modules, packed as OCI
artifacts. Refuses every other host: nothing on the region reaches the internet behind a person's back.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import re
import ssl
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from facts import versions
from simulator.free_ports import keep_ports
from simulator.public_names import PublicNames
from simulator.region_folder import RegionFolder

_LOG = logging.getLogger(__name__)
PUBLISHED = {
    versions.KUEUE_CHART: versions.KUEUE,
    versions.JOBSET_CHART: versions.JOBSET,
    versions.LWS_CHART: versions.LWS,
}
# Helm's and the OCI image specification's media types.
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
LAYER_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


@dataclass(frozen=True)
class Blob:
    """Something that a registry gives out under its digest."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """What it is found by."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    def descriptor(self) -> dict[str, str | int]:
        """How a manifest names it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


def artifacts(charts: Path) -> dict[str, Blob]:
    """`host/repository:reference` → what is there, for every published chart that lies in `charts`.

    References are the version for a manifest, and digests for all. A chart in a source tree may carry a version of
    its own; published, it has that of the release.
    """
    found: dict[str, Blob] = {}
    for address, version in PUBLISHED.items():
        repository = address.removeprefix("oci://")
        folder = charts / repository.rpartition("/")[2]
        if not folder.exists():
            continue
        chart = re.sub(r"(?m)^version:.*$", f"version: {version}", (folder / "Chart.yaml").read_text())
        name = folder.name
        config = Blob(
            CONFIG_TYPE, json.dumps({"apiVersion": "v2", "name": name, "version": version}).encode()
        )
        layer = Blob(LAYER_TYPE, _packed(folder, {"Chart.yaml": chart.encode()}))
        manifest = Blob(
            MANIFEST_TYPE,
            json.dumps(
                {
                    "schemaVersion": 2,
                    "mediaType": MANIFEST_TYPE,
                    "config": config.descriptor(),
                    "layers": [layer.descriptor()],
                }
            ).encode(),
        )
        found[f"{repository}:{version}"] = manifest
        found |= {f"{repository}:{blob.digest}": blob for blob in (config, layer, manifest)}
    return found


def _packed(folder: Path, replaced: Mapping[str, bytes]) -> bytes:
    """The folder as `helm package` packs it; the same bytes each time, so that digests stay."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            if not path.is_file():
                continue
            name = str(path.relative_to(folder))
            content = replaced.get(name, path.read_bytes())
            entry = tarfile.TarInfo(f"{folder.name}/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        _LOG.info(format, *arguments)


class _Registry(_Handler):
    """The part of the OCI distribution API by which a chart is pulled, at one host."""

    host: str
    artifacts: Mapping[str, Blob]

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def _answer(self, *, with_content: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/v2/":
            self._send(200, Blob("application/json", b"{}"), with_content=with_content)
            return
        parsed = re.fullmatch(r"/v2/(?P<repository>.+)/(?:manifests|blobs)/(?P<reference>[^/]+)", path)
        key = f"{self.host}/{parsed['repository']}:{parsed['reference']}" if parsed else path
        if (blob := self.artifacts.get(key)) is not None:
            self._send(200, blob, with_content=with_content)
            return
        code = "MANIFEST_UNKNOWN"
        message = (
            f"the simulated region has no {key}; it has {', '.join(tagged(self.artifacts)) or 'nothing'}"
        )
        error = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self._send(404, Blob("application/json", error), with_content=with_content)

    def _send(self, status: int, blob: Blob, *, with_content: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", blob.media_type)
        self.send_header("Content-Length", str(len(blob.content)))
        self.send_header("Docker-Content-Digest", blob.digest)
        self.end_headers()
        if with_content:
            self.wfile.write(blob.content)


def tagged(found: Mapping[str, Blob]) -> list[str]:
    """The charts among the artifacts, with their versions."""
    return sorted(key for key in found if ":sha256:" not in key)


def server_of(port: int, found: Mapping[str, Blob], names: PublicNames) -> ThreadingHTTPServer:
    """The proxy, bound to a loopback port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(names.server_certificate, names.server_key)
    hosts = {key.partition("/")[0] for key in found}

    class Proxy(_Handler):
        def do_CONNECT(self) -> None:
            host = self.path.partition(":")[0]
            self.close_connection = True
            if host not in hosts:
                self.send_error(
                    403, f"{host} is not part of the simulated region (it answers for {', '.join(hosts)})"
                )
                return
            self.send_response(200)
            self.end_headers()
            registry = type("Registry", (_Registry,), {"host": host, "artifacts": found})
            try:
                with context.wrap_socket(self.connection, server_side=True) as connection:
                    registry(connection, self.client_address, self.server)
            except OSError as error:
                _LOG.info("%s ended the connection: %s", host, error)

    return ThreadingHTTPServer(("127.0.0.1", port), Proxy)


def port_of(region: RegionFolder) -> int:
    """The port of the region's registry, the same at every start."""
    return keep_ports(region.root / "registry-ports.json", ["registry"])["registry"]


def main(arguments: list[str]) -> int:
    """`python -m simulator.chart_registry REGION_FOLDER`: not for people; the supervisor starts it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    region = RegionFolder(Path(arguments[0]))
    found = artifacts(region.charts)
    _LOG.info("charts: %s", ", ".join(tagged(found)))
    server_of(port_of(region), found, PublicNames(region.public_names)).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
