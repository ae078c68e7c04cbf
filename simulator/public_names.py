"""What stands for the public internet's certificates on this machine.

In the cloud a cluster's DNS endpoint and a chart registry answer with certificates that every machine trusts. On the
region an authority of its own signs for those names, and what a person or the engine runs trusts it beside the
machine's roots. Refuses any other name than those that the region answers itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from facts import versions
from simulator.cluster.pki import CertificateFolder
from simulator.files import write_atomically

DNS_ENDPOINT = "localhost"
"""Name at which a cluster's control plane answers as GKE's DNS endpoint does."""
REGISTRY_HOSTS = sorted(
    {
        address.removeprefix("oci://").partition("/")[0]
        for address in (versions.KUEUE_CHART, versions.JOBSET_CHART, versions.LWS_CHART)
    }
)
_SERVER = "server"


class PublicNames(CertificateFolder):
    """The authority, one certificate for all names, and the bundle that trusts it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._authority("authority", "tpu-slices simulated public authority")
        self._leaf(_SERVER, "authority", DNS_ENDPOINT, names=[DNS_ENDPOINT, *REGISTRY_HOSTS], server=True)

    @property
    def server_certificate(self) -> Path:
        """What the region's servers show at those names."""
        return self.certificate(_SERVER)

    @property
    def server_key(self) -> Path:
        """Its private key."""
        return self.key(_SERVER)

    def write_bundle(self, bundle: Path) -> None:
        """Write the machine's roots and this authority to `bundle`."""
        roots = _machine_roots(bundle)
        write_atomically(bundle, f"{roots.read_text()}\n{self.certificate('authority').read_text()}", 0o644)


def _machine_roots(bundle: Path) -> Path:
    """The person's own roots; a shell that has the region's exports already names our bundle."""
    import certifi

    named = Path(os.environ.get("SSL_CERT_FILE") or certifi.where())
    return named if named.is_file() and named.absolute() != bundle else Path(certifi.where())
