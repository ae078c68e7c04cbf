"""The kubeconfig of a cluster, as a pure function.

Owns its shape: one cluster, one context, and a user whose credentials the plugin `gke-gcloud-auth-plugin` fetches at
each use. Refuses to hold a token or a client certificate: the file opens nothing by itself.
"""

import yaml

AUTH_PLUGIN = "gke-gcloud-auth-plugin"


def kubeconfig(name: str, endpoint: str, certificate_authority: str | None) -> str:
    """YAML for `kubectl` and the provider.

    `certificate_authority` is base64 PEM as GKE gives it. None is right for a DNS endpoint: Google's own public
    certificate answers there, and the cluster's authority does not know it.
    """
    cluster: dict[str, str] = {"server": f"https://{endpoint}"}
    if certificate_authority is not None:
        cluster["certificate-authority-data"] = certificate_authority
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
        "users": [
            {
                "name": name,
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1beta1",
                        "command": AUTH_PLUGIN,
                        "installHint": "gcloud components install gke-gcloud-auth-plugin",
                        "interactiveMode": "Never",
                        "provideClusterInfo": True,
                    }
                },
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)
