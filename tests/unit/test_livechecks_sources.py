"""Every field that a live check reads exists: in the provider's SDK, or in Google's discovery documents."""

import importlib
import json

import pytest
from googleapiclient import discovery_cache

COMPUTE, CONTAINER = "pulumi_gcp.compute", "pulumi_gcp.container"

FUNCTION_FIELDS = {
    f"{COMPUTE}.get_zones.GetZonesResult": ["names"],
    f"{CONTAINER}.get_engine_versions.GetEngineVersionsResult": [
        "validMasterVersions",
        "releaseChannelDefaultVersion",
        "releaseChannelLatestVersion",
    ],
    f"{CONTAINER}.get_cluster.GetClusterResult": ["masterVersion", "nodePools"],
    f"{CONTAINER}.outputs.GetClusterNodePoolResult": ["nodeCount", "initialNodeCount", "nodeConfigs"],
    f"{CONTAINER}.outputs.GetClusterNodePoolNodeConfigResult": ["reservationAffinities"],
    f"{CONTAINER}.outputs.GetClusterNodePoolNodeConfigReservationAffinityResult": ["values"],
    "pulumi_gcp.organizations.get_project.GetProjectResult": ["number", "billingAccount"],
    "pulumi_gcp.organizations.get_client_config.GetClientConfigResult": ["accessToken"],
    f"{COMPUTE}.get_reservation.GetReservationResult": [
        "blockNames",
        "deleteAtTime",
        "resourceStatuses",
        "shareSettings",
        "specificReservationRequired",
        "specificReservations",
        "status",
    ],
    f"{COMPUTE}.outputs.GetReservationSpecificReservationResult": [
        "count",
        "inUseCount",
        "instanceProperties",
    ],
    f"{COMPUTE}.outputs.GetReservationSpecificReservationInstancePropertyResult": [
        "machineType",
        "maintenanceInterval",
    ],
    f"{COMPUTE}.outputs.GetReservationShareSettingResult": ["shareType", "projectMaps", "projects"],
    f"{COMPUTE}.outputs.GetReservationShareSettingProjectMapResult": ["id", "projectId"],
    f"{COMPUTE}.outputs.GetReservationResourceStatusResult": ["reservationMaintenances"],
    f"{COMPUTE}.outputs.GetReservationResourceStatusReservationMaintenanceResult": [
        "upcomingGroupMaintenances"
    ],
    f"{COMPUTE}.outputs.GetReservationResourceStatusReservationMaintenanceUpcomingGroupMaintenanceResult": [
        "windowStartTime"
    ],
    f"{COMPUTE}.get_reservation_block.GetReservationBlockResult": [
        "healthInfos",
        "reservationMaintenances",
        "reservationSubBlockCount",
        "reservationSubBlockInUseCount",
        "subBlockNames",
    ],
    f"{COMPUTE}.outputs.GetReservationBlockHealthInfoResult": ["degradedSubBlockCount"],
    f"{COMPUTE}.get_reservation_sub_block.GetReservationSubBlockResult": [
        "healthInfos",
        "inUseCount",
        "reservationSubBlockMaintenances",
        "subBlockCount",
    ],
    f"{COMPUTE}.outputs.GetReservationSubBlockHealthInfoResult": [
        "healthyHostCount",
        "degradedHostCount",
        "degradedInfraCount",
    ],
    f"{COMPUTE}.outputs.GetReservationSubBlockReservationSubBlockMaintenanceResult": [
        f"{part}{state}Count"
        for part in ("maintenance", "instanceMaintenance", "subblockInfraMaintenance")
        for state in ("Ongoing", "Pending")
    ],
}

REST_FIELDS = {
    ("cloudbilling.v1", "ProjectBillingInfo"): ["billingEnabled"],
    ("cloudresourcemanager.v1", "TestIamPermissionsResponse"): ["permissions"],
    ("container.v1", "ServerConfig"): ["channels"],
    ("container.v1", "ReleaseChannelConfig"): ["channel", "validVersions"],
    ("compute.v1", "PreviewFeature"): ["activationStatus"],
    ("compute.v1", "Reservation"): ["advancedDeploymentControl", "deploymentType"],
    ("compute.v1", "ReservationAdvancedDeploymentControl"): ["reservationOperationalMode"],
    ("serviceusage.v1beta1", "ConsumerQuotaMetric"): ["consumerQuotaLimits"],
    ("serviceusage.v1beta1", "ConsumerQuotaLimit"): ["quotaBuckets"],
    ("serviceusage.v1beta1", "QuotaBucket"): ["dimensions", "effectiveLimit"],
}

ENUMS = [
    (
        "Reservation.deploymentType",
        ["DENSE"],
    ),
    ("Reservation.status", ["READY"]),
    (
        "ReservationAdvancedDeploymentControl.reservationOperationalMode",
        ["ALL_CAPACITY", "HIGHLY_AVAILABLE_CAPACITY"],
    ),
    ("ShareSettings.shareType", ["LOCAL", "SPECIFIC_PROJECTS"]),
    ("PreviewFeature.activationStatus", ["ENABLED"]),
]


def schemas(document: str) -> dict:
    api, version = document.split(".", 1)
    return json.loads(discovery_cache.get_static_doc(api, version))["schemas"]


def names_in(path: str) -> set[str]:
    module, _, name = path.rpartition(".")
    properties = vars(getattr(importlib.import_module(module), name)).items()
    return {
        getattr(value.fget, "_pulumi_name", attribute)
        for attribute, value in properties
        if isinstance(value, property)
    }


@pytest.mark.parametrize("path", FUNCTION_FIELDS)
def test_the_provider_answers_with_the_fields_that_are_read(path):
    assert set(FUNCTION_FIELDS[path]) - names_in(path) == set()


@pytest.mark.parametrize(("document", "schema"), REST_FIELDS)
def test_google_answers_with_the_fields_that_are_read(document, schema):
    assert set(REST_FIELDS[document, schema]) - set(schemas(document)[schema]["properties"]) == set()


@pytest.mark.parametrize(("field", "values"), ENUMS)
def test_google_knows_the_values_that_are_judged(field, values):
    schema, name = field.split(".")
    assert set(values) <= set(schemas("compute.v1")[schema]["properties"][name]["enum"])


def test_a_field_that_is_not_there_would_be_seen():
    assert "freeHosts" not in names_in(f"{COMPUTE}.get_reservation_sub_block.GetReservationSubBlockResult")
    assert "freeHosts" not in schemas("compute.v1")["Reservation"]["properties"]
