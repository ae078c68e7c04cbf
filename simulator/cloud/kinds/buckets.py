"""Cloud Storage buckets.

Owns names, which are unique in the world, and whether a bucket holds objects. Buckets that the region file brings hold
what nobody here made: their names are taken. Nothing reads or writes objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.storage import Bucket, BucketArgs

from facts import names
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, Refusal
from simulator.cloud.identifiers import now
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import Kind, Place, ProviderDefaults
from simulator.cloud.kinds.iam import BUCKET, members_of
from simulator.cloud.sdk_schema import ResourceSchema


class BucketKind(Kind):
    """`gcp.storage.Bucket`."""

    token = BUCKET
    schema = ResourceSchema(Bucket, BucketArgs)
    api = "storage.googleapis.com"
    noun = "Bucket"
    name_pattern = names.BUCKET
    # Cloud Storage and provider defaults (Terraform google-beta, read 2026-12-01).
    defaults = MappingProxyType(
        {
            "deletionPolicy": "DELETE",
            "forceDestroy": False,
            "publicAccessPrevention": "inherited",
            "rpo": "DEFAULT",
            "softDeletePolicy": {"retentionDurationSeconds": 604800},
            "storageClass": "STANDARD",
            "uniformBucketLevelAccess": False,
            "versioning": {"enabled": False},
            "website": {},
        }
    )

    def place(self, inputs: Mapping[str, Any]) -> Place:
        return Place(inputs["name"], inputs["project"], inputs["name"], inputs["location"])

    def refuse_conflict(self, place: Place) -> Refusal:
        # Wording: Cloud Storage API, widely quoted.
        return GoogleRefusal(
            "Your previous request to create the named bucket succeeded and you already own it.",
            409,
            "conflict",
        )

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        taken = next((bucket for bucket in cloud.region.buckets if bucket.name == place.name), None)
        if taken is not None and taken.project == place.project:
            raise self.refuse_conflict(place)
        if taken is not None:
            raise GoogleRefusal(
                "The requested bucket name is not available. The bucket namespace is shared by all users of the "
                "system. Please select a different name and try again.",
                409,
                "conflict",
            )
        labels = inputs.get("labels") or {}
        return {
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{place.name}",
            "url": f"gs://{place.name}",
            "projectNumber": int(cloud.project(place.project).number),
            "timeCreated": now(),
            "updated": now(),
            "pulumiLabels": labels,
            "effectiveLabels": {"goog-pulumi-provisioned": "true", **labels},
        }

    async def release(self, cloud: Cloud, record: Record) -> None:
        for member in members_of(cloud, f"b/{record.name}"):
            cloud.inventory.remove(member)

    def outputs(self, cloud: Cloud, record: Record) -> dict[str, Any]:
        # The API answers in capitals, and the provider shows the API's spelling.
        return {**super().outputs(cloud, record), "location": record.inputs["location"].upper()}

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        return resource_id.rsplit("/", 1)[-1]
