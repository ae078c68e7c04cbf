"""Switches of a project: enabled APIs and Compute preview features.

Both outlive the resource that switched them: a Service with `disableOnDestroy` false leaves its API on, and a preview
feature cannot be deleted at all (the real provider only forgets it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_gcp.compute import PreviewFeature, PreviewFeatureArgs
from pulumi_gcp.projects import Service, ServiceArgs

from simulator.cloud.cloud import SERVICE, Cloud
from simulator.cloud.errors import GoogleRefusal
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import ComputeKind, Kind, Place
from simulator.cloud.sdk_schema import Problem, ResourceSchema

KNOWN_APIS = frozenset(
    f"{name}.googleapis.com"
    for name in (
        "artifactregistry",
        "autoscaling",
        "cloudbilling",
        "cloudresourcemanager",
        "compute",
        "container",
        "containerfilesystem",
        "file",
        "iam",
        "iamcredentials",
        "logging",
        "monitoring",
        "networkconnectivity",
        "networkservices",
        "secretmanager",
        "serviceusage",
        "storage",
        "sts",
    )
)

KNOWN_PREVIEW_FEATURES = frozenset({"ai-zones-visibility", "alpha-api-access"})


class ServiceKind(Kind):
    """`gcp.projects.Service`: an API of a project."""

    token = SERVICE
    is_switch = True
    schema = ResourceSchema(Service, ServiceArgs)
    api = "serviceusage.googleapis.com"
    noun = "ProjectService"
    is_autonamed = False

    def place(self, inputs: Mapping[str, Any]) -> Place:
        return Place(f"{inputs['project']}/{inputs['service']}", inputs["project"], inputs["service"])

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        service = inputs.get("service")
        if isinstance(service, str) and re.match(r"^[a-z0-9.-]+\.googleapis\.com$", service) is None:
            yield Problem(
                "service", f"must be an API's full name, such as compute.googleapis.com (got {service!r})"
            )

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if place.name not in KNOWN_APIS:
            # Wording: Service Usage API, widely quoted.
            raise GoogleRefusal(
                f"Not found or permission denied for service(s): {place.name}.", 403, "forbidden"
            )
        return {}

    async def provision(self, cloud: Cloud, record: Record) -> None:
        project, service = record.inputs["project"], record.inputs["service"]
        disabled = cloud.inventory.disabled_apis.get(project, [])
        cloud.inventory.disabled_apis[project] = [api for api in disabled if api != service]

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        if not record.inputs.get("disableOnDestroy"):
            return
        service = record.inputs["service"]
        user = next((other for other in cloud.inventory.resources.values() if _uses(other, record)), None)
        if user is not None:
            # Wording assumed; Service Usage refuses to disable a service that has resources (FAILED_PRECONDITION).
            raise GoogleRefusal(
                f"Could not disable {service}: it is used by {user.id}", 400, "failedPrecondition"
            )

    async def release(self, cloud: Cloud, record: Record) -> None:
        if not record.inputs.get("disableOnDestroy"):
            return
        project, service = record.inputs["project"], record.inputs["service"]
        cloud.inventory.switches.pop(record.id, None)
        disabled = cloud.inventory.disabled_apis.setdefault(project, [])
        if service not in disabled:
            disabled.append(service)


def _uses(other: Record, service: Record) -> bool:
    family = service.inputs["service"].split(".")[0]
    return other.type.startswith(f"gcp:{family}/") and f"projects/{service.inputs['project']}/" in other.id


class PreviewFeatureKind(ComputeKind):
    """`gcp.compute.PreviewFeature`: a Compute preview feature of a project."""

    token = "gcp:compute/previewFeature:PreviewFeature"  # noqa: S105 - a type token
    is_switch = True
    schema = ResourceSchema(PreviewFeature, PreviewFeatureArgs)
    collection = "previewFeatures"
    noun = "PreviewFeature"

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if place.name not in KNOWN_PREVIEW_FEATURES:
            raise GoogleRefusal(f"The resource '{place.id}' was not found", 404, "notFound")
        return {}
