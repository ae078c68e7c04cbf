"""What the region puts on PATH as `gke-gcloud-auth-plugin`: prints the credential of the local control plane.

The program's kubeconfig names that plugin, as every GKE kubeconfig does, and holds no credential itself; in the
cloud Google's own plugin answers. Run as `python gke_gcloud_auth_plugin.py REGION_FOLDER`; standard library only.
"""

import json
import os
import sys
from pathlib import Path


def main(region: Path) -> int:
    """Print the ExecCredential of the cluster that the caller talks to."""
    wanted = _server_of_caller()
    clusters = [
        json.loads(path.read_text()) | {"folder": path.parent}
        for path in region.glob("clusters/*/status.json")
    ]
    for cluster in clusters:
        if wanted in (None, cluster["endpoint"], cluster["dnsEndpoint"]) and (wanted or len(clusters) == 1):
            print((cluster["folder"] / "exec-credential.json").read_text())
            return 0
    known = ", ".join(cluster["folder"].name for cluster in clusters) or "none"
    print(f"no cluster of the simulated region answers at {wanted} (running: {known})", file=sys.stderr)
    return 1


def _server_of_caller() -> str | None:
    """host:port that the client connects to, from KUBERNETES_EXEC_INFO (set with provideClusterInfo)."""
    information = json.loads(os.environ.get("KUBERNETES_EXEC_INFO") or "{}")
    server = ((information.get("spec") or {}).get("cluster") or {}).get("server")
    return server.removeprefix("https://").rstrip("/") if server else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
