"""Kubeconfig documents of the simulated control plane: one for each identity that a local process uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simulator.cluster.pki import Pki
from simulator.files import write_atomically


def write_kubeconfig(path: Path, server: str, pki: Pki, identity: str) -> None:
    """Write a kubeconfig for the client certificate `identity`; it names files and holds no key itself."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "region",
                "cluster": {"server": server, "certificate-authority": str(pki.certificate("ca"))},
            }
        ],
        "users": [
            {
                "name": identity,
                "user": {
                    "client-certificate": str(pki.certificate(identity)),
                    "client-key": str(pki.key(identity)),
                },
            }
        ],
        "contexts": [{"name": "region", "context": {"cluster": "region", "user": identity}}],
        "current-context": "region",
    }
    write_atomically(path, json.dumps(document, indent=1))
