"""The provider functions (`get…`) that a program may ask: facts of the region, never a way around the resources.

An unknown function is refused by name. What a function answers is what Google's API would answer to this project:
zones that it does not see are left out, a reservation of another project is found only where it is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from facts.gke import GkeVersion
from simulator.cloud import cluster_functions, reservation_functions
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import ProviderRefusal, not_found
from simulator.cloud.kinds.base import ProviderDefaults

Function = Callable[[Cloud, Mapping[str, Any], ProviderDefaults], dict[str, Any]]


def call(
    cloud: Cloud, token: str, arguments: Mapping[str, Any], defaults: ProviderDefaults
) -> dict[str, Any]:
    """The answer of a function."""
    function = FUNCTIONS.get(token)
    if function is None:
        raise ProviderRefusal(
            f"the simulated region knows no function {token}: it answers {', '.join(sorted(FUNCTIONS))}. Add it to "
            "simulator/cloud/functions.py, with what Google answers."
        )
    return function(cloud, arguments, defaults)


def _project(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    project_id = arguments.get("projectId") or defaults.project or ""
    project = cloud.project(project_id)
    return {
        "id": f"projects/{project.id}",
        "projectId": project.id,
        "number": project.number,
        "name": project.id,
        "autoCreateNetwork": False,
        "billingAccount": "000000-000000-000000",
        "deletionPolicy": "PREVENT",
        "folderId": "",
        "orgId": "",
        "labels": {},
        "effectiveLabels": {},
        "pulumiLabels": {},
        "tags": {},
    }


def _client_config(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    return {
        "id": f"projects/{defaults.project}/regions/{defaults.region}/zones/{defaults.zone}",
        "project": defaults.project or "",
        "region": defaults.region or "",
        "zone": defaults.zone or "",
        # There is no account to speak for, and nobody must send a token of the region to Google.
        "accessToken": "",
        "defaultLabels": {},
    }


def _zones(cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults) -> dict[str, Any]:
    project = arguments.get("project") or defaults.project or ""
    region = arguments.get("region") or defaults.region
    cloud.require_api(project, "compute.googleapis.com")
    if region != cloud.region.region:
        raise not_found(f"projects/{project}/regions/{region}")
    return {
        "id": f"projects/{project}/regions/{region}",
        "names": cloud.visible_zones(project),
        "project": project,
        "region": region,
    }


def _engine_versions(
    cloud: Cloud, arguments: Mapping[str, Any], defaults: ProviderDefaults
) -> dict[str, Any]:
    project = arguments.get("project") or defaults.project or ""
    location = arguments.get("location") or defaults.zone or defaults.region or ""
    cloud.require_api(project, "container.googleapis.com")
    if location != cloud.region.region:
        cloud.require_zones(project, [location])
    prefix = arguments.get("versionPrefix") or ""
    offered = sorted(
        (version for version in cloud.region.offered_versions if version.startswith(prefix)),
        key=GkeVersion.parse,
        reverse=True,
    )
    channels = cloud.region.gke_channels
    default = next((item.default for item in channels if item.name == "REGULAR"), channels[0].default)
    newest = offered[0] if offered else ""
    return {
        "id": f"projects/{project}/locations/{location}",
        "project": project,
        "location": location,
        "defaultClusterVersion": default,
        "latestMasterVersion": newest,
        "latestNodeVersion": newest,
        "validMasterVersions": offered,
        "validNodeVersions": offered,
        "releaseChannelDefaultVersion": {item.name: item.default for item in channels},
        "releaseChannelLatestVersion": {
            item.name: max(item.versions, key=GkeVersion.parse) for item in channels
        },
        "releaseChannelUpgradeTargetVersion": {item.name: item.default for item in channels},
    }


FUNCTIONS: Mapping[str, Function] = {
    "gcp:organizations/getProject:getProject": _project,
    "gcp:organizations/getClientConfig:getClientConfig": _client_config,
    "gcp:compute/getZones:getZones": _zones,
    "gcp:compute/getReservation:getReservation": reservation_functions.reservation,
    "gcp:compute/getReservationBlock:getReservationBlock": reservation_functions.block,
    "gcp:compute/getReservationSubBlock:getReservationSubBlock": reservation_functions.sub_block,
    "gcp:container/getEngineVersions:getEngineVersions": _engine_versions,
    "gcp:container/getCluster:getCluster": cluster_functions.cluster,
}
