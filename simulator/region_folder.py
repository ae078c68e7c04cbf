"""Where a region keeps what on disk, and the environment in which a person drives it.

One folder (`.region/` in the checkout, or `TPU_SLICES_REGION`) holds all state and logs of a region, so
that two checkouts never meet and removing the folder removes everything.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from simulator.files import read_json

CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class RegionFolder:
    """Paths inside one region's folder."""

    root: Path

    @classmethod
    def of_checkout(cls) -> RegionFolder:
        """The region of this checkout: `TPU_SLICES_REGION`, else `.region`."""
        return cls(Path(os.environ.get("TPU_SLICES_REGION") or CHECKOUT / ".region").absolute())

    @property
    def region_json(self) -> Path:
        """What the supervisor says of itself: pid, start, time scale, events."""
        return self.root / "region.json"

    @property
    def logs(self) -> Path:
        """One log file a process."""
        return self.root / "logs"

    @property
    def clusters(self) -> Path:
        """One folder a simulated GKE cluster."""
        return self.root / "clusters"

    @property
    def bin(self) -> Path:
        """Links to the toolchain's programs, and the stand-in for gke-gcloud-auth-plugin."""
        return self.root / "bin"

    @property
    def charts(self) -> Path:
        """Links to the charts of the built modules."""
        return self.root / "charts"

    @property
    def cloud_json(self) -> Path:
        """What the simulated gcp provider says of itself: its port."""
        return self.root / "cloud.json"

    @property
    def inventory_json(self) -> Path:
        """The simulated Google Cloud's state."""
        return self.root / "inventory.json"

    @property
    def kubeconfig(self) -> Path:
        """A person's kubeconfig for the region's cluster, kept by the supervisor."""
        return self.root / "kubeconfig"

    @property
    def pulumi_backend(self) -> Path:
        """The local file backend of the stacks that run on this region."""
        return self.root / "pulumi"

    @property
    def pulumi_home(self) -> Path:
        """The engine's plugins and credentials: none of the person's own are touched."""
        return self.root / "pulumi-home"

    @property
    def public_names(self) -> Path:
        """Certificates for names that the whole world trusts in the cloud."""
        return self.root / "public-names"

    @property
    def trusted_roots(self) -> Path:
        """The machine's roots and the region's authority for public names."""
        return self.public_names / "bundle.pem"

    def environment(self) -> dict[str, str]:
        """What a person's shell needs to drive the region with `pulumi` and `kubectl`.

        Ambient Google credentials are blanked: a stack on the region must never reach the real cloud.
        """
        cloud = read_json(self.cloud_json) or {}
        virtual_environment = Path(sys.prefix)
        path = [str(self.bin), str(virtual_environment / "bin"), os.environ.get("PATH", os.defpath)]
        return {
            "PATH": os.pathsep.join(path),
            "VIRTUAL_ENV": str(virtual_environment),
            "PULUMI_BACKEND_URL": f"file://{self.pulumi_backend}",
            "PULUMI_HOME": str(self.pulumi_home),
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # The engine writes the whole state at every step; a backup of each would double that work.
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
            "PULUMI_DEBUG_PROVIDERS": f"gcp:{cloud.get('port', 0)}",
            "KUBECONFIG": str(self.kubeconfig),
            # A kubeconfig with GKE's DNS endpoint names no authority: the world's own is trusted.
            "SSL_CERT_FILE": str(self.trusted_roots),
            "GOOGLE_APPLICATION_CREDENTIALS": "",
            "GOOGLE_CREDENTIALS": "",
            "TPU_SLICES_REGION": str(self.root),
        }
