"""What the real provider shows of a cluster: its inputs, Google's defaults for the rest, and its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.cloud.identifiers import opaque
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import CONTAINER_ADDRESS

# Where the program gives nothing: defaults of the GKE API and of the provider (Terraform google-beta, read 2026-12-01).
_DEFAULTS: Mapping[str, Any] = {
    "deletionPolicy": "DELETE",
    "deletionProtection": True,
    "defaultMaxPodsPerNode": 110,
    "enableShieldedNodes": True,
    "enableIntranodeVisibility": False,
    "enableL4IlbSubsetting": False,
    "enableTpu": False,
    "labelFingerprint": "a9dc16a7",
    "loggingService": "logging.googleapis.com/kubernetes",
    "monitoringService": "monitoring.googleapis.com/kubernetes",
    "networkingMode": "VPC_NATIVE",
    "operation": "",
    "tpuIpv4CidrBlock": "",
}


def cluster_outputs(record: Record, zones: list[str], first_pool: Record | None) -> dict[str, Any]:
    """Every output of the cluster; `first_pool` is the oldest node pool that it has."""
    inputs, computed = record.inputs, record.computed
    status = computed.get("status", {})
    endpoint = status.get("endpoint", "")
    version = computed.get("version", "")
    labels = inputs.get("resourceLabels") or {}
    outputs = {
        **_DEFAULTS,
        **inputs,
        "nodeLocations": zones,
        "selfLink": CONTAINER_ADDRESS + record.id,
        "endpoint": endpoint,
        "masterVersion": version,
        "nodeVersion": inputs.get("nodeVersion") or version,
        "masterAuth": {
            "clientCertificate": "",
            "clientCertificateConfig": {"issueClientCertificate": False},
            "clientKey": "",
            "clusterCaCertificate": status.get("caCertificate", ""),
        },
        "privateClusterConfig": {
            **(inputs.get("privateClusterConfig") or {}),
            # On one machine the private and the public address are the same one.
            "privateEndpoint": endpoint,
            "publicEndpoint": endpoint,
            "peeringName": "",
        },
        "controlPlaneEndpointsConfig": _endpoints(inputs, record, status),
        "clusterIpv4Cidr": computed.get("podCidr") or "",
        "servicesIpv4Cidr": computed.get("serviceCidr") or "",
        "pulumiLabels": labels,
        "effectiveLabels": {"goog-pulumi-provisioned": "true", **labels},
    }
    if first_pool is not None:
        # The API reports the first pool's configuration as the cluster's own once the default pool is gone.
        outputs["nodeConfig"] = first_pool.inputs.get("nodeConfig", {})
    return outputs


def _endpoints(inputs: Mapping[str, Any], record: Record, status: Mapping[str, Any]) -> dict[str, Any]:
    given = inputs.get("controlPlaneEndpointsConfig") or {}
    name = f"gke-{opaque(record.computed.get('uid'), length=40)}.{inputs['location']}.gke.goog"
    return {
        "dnsEndpointConfig": {
            "allowExternalTraffic": False,
            **(given.get("dnsEndpointConfig") or {}),
            "endpoint": status.get("dnsEndpoint", name),
        },
        "ipEndpointsConfig": {"enabled": True, **(given.get("ipEndpointsConfig") or {})},
    }
