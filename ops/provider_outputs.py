"""What Google's provider would add to a resource's inputs, as far as the program reads it.

Owns outputs of the right shape for runs without a cloud (`recording.record(outputs=google)`). Refuses to be a
simulator: it refuses nothing and remembers nothing.
"""

from typing import Any

_COMPUTE = "https://www.googleapis.com/compute/v1"
CERTIFICATE_AUTHORITY = "Y2VydGlmaWNhdGU="
PUBLIC_ENDPOINT = "203.0.113.10"
PRIVATE_ENDPOINT = "10.10.0.2"
DNS_ENDPOINT = "gke-0123456789abcdef.us-central1.gke.goog"


def google(resource_type: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of one resource."""
    project, name = inputs.get("project"), inputs.get("name")
    if resource_type == "gcp:compute/network:Network":
        return {"selfLink": f"{_COMPUTE}/projects/{project}/global/networks/{name}"}
    if resource_type == "gcp:compute/subnetwork:Subnetwork":
        return {"selfLink": f"{_COMPUTE}/projects/{project}/regions/{inputs['region']}/subnetworks/{name}"}
    if resource_type == "gcp:serviceaccount/account:Account":
        email = f"{inputs['accountId']}@{project}.iam.gserviceaccount.com"
        return {"email": email, "member": f"serviceAccount:{email}"}
    if resource_type == "gcp:container/cluster:Cluster":
        return {
            "endpoint": PUBLIC_ENDPOINT,
            "masterAuth": {"clusterCaCertificate": CERTIFICATE_AUTHORITY},
            "privateClusterConfig": {**inputs["privateClusterConfig"], "privateEndpoint": PRIVATE_ENDPOINT},
            "controlPlaneEndpointsConfig": {
                **inputs["controlPlaneEndpointsConfig"],
                "dnsEndpointConfig": {"endpoint": DNS_ENDPOINT},
            },
        }
    return {}
