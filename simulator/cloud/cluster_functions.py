"""What GKE says of a cluster and its node pools, as the provider's `getCluster` shows it.

Only what somebody asks for: version and pools. The provider's function nests every message in a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import CONTAINER_ADDRESS, ProviderDefaults
from simulator.cloud.kinds.clusters import CLUSTER, cluster_id
from simulator.cloud.kinds.workload_policies import NODE_POOL


def cluster(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    """`getCluster`."""
    project = arguments.get("project") or defaults.project or ""
    location = arguments.get("location") or defaults.region or ""
    cloud.require_api(project, "container.googleapis.com")
    wanted = cluster_id(project, location, str(arguments.get("name")))
    record = next((item for item in cloud.inventory.of_type(CLUSTER) if item.id == wanted), None)
    if record is None:
        # Wording: GKE's answer for a cluster that is not there, widely quoted.
        raise GoogleRefusal(f"Not found: {wanted}.", 404, "notFound")
    pools = [
        item for item in cloud.inventory.of_type(NODE_POOL) if item.id.startswith(f"{wanted}/nodePools/")
    ]
    return {
        "id": wanted,
        "name": record.name,
        "project": project,
        "location": location,
        "selfLink": CONTAINER_ADDRESS + wanted,
        "masterVersion": record.computed.get("version", ""),
        "nodePools": [_pool(item) for item in pools],
    }


def _pool(record: Record) -> dict[str, Any]:
    config = record.inputs.get("nodeConfig") or {}
    affinity = config.get("reservationAffinity")
    count = record.inputs.get("nodeCount") or record.inputs.get("initialNodeCount") or 0
    return {
        "name": record.name,
        "initialNodeCount": record.inputs.get("initialNodeCount") or count,
        "nodeCount": count,
        "nodeLocations": record.inputs.get("nodeLocations") or [],
        "version": record.computed.get("version", ""),
        "nodeConfigs": [
            {
                "machineType": config.get("machineType", ""),
                "reservationAffinities": [affinity] if affinity else [],
            }
        ],
    }
