"""Service accounts and IAM members.

Owns who exists and which role was given to whom on what; nothing here decides whether a call is allowed. Refuses a
role, a member or a resource that Google would not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.projects import IAMMember as ProjectIAMMember
from pulumi_gcp.projects import IAMMemberArgs as ProjectIAMMemberArgs
from pulumi_gcp.serviceaccount import Account, AccountArgs
from pulumi_gcp.serviceaccount import IAMMember as AccountIAMMember
from pulumi_gcp.serviceaccount import IAMMemberArgs as AccountIAMMemberArgs
from pulumi_gcp.storage import BucketIAMMember, BucketIAMMemberArgs

from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, Refusal
from simulator.cloud.identifiers import numeric_id, opaque
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import Kind, Place, ProviderDefaults
from simulator.cloud.sdk_schema import Problem, ResourceSchema

ACCOUNT = "gcp:serviceaccount/account:Account"
BUCKET = "gcp:storage/bucket:Bucket"

_ACCOUNT_ID = re.compile(r"^[a-z]([-a-z0-9]{4,28}[a-z0-9])$")  # IAM API: 6 to 30 characters
_MEMBER = re.compile(
    r"^(allUsers|allAuthenticatedUsers|(user|group|serviceAccount):[^\s@]+@[^\s@]+|domain:[^\s@]+"
    r"|serviceAccount:[^\s\[\]]+\[[^\s/]+/[^\s/]+\]|principal(Set)?://iam\.googleapis\.com/\S+)$"
)
_ROLE = re.compile(r"^(roles/[A-Za-z0-9_.]+|(projects|organizations)/[^/]+/roles/[A-Za-z0-9_.]+)$")


class AccountKind(Kind):
    """`gcp.serviceaccount.Account`."""

    token = ACCOUNT
    schema = ResourceSchema(Account, AccountArgs)
    api = "iam.googleapis.com"
    noun = "service account"
    is_autonamed = False
    defaults = MappingProxyType(
        {"disabled": False, "deletionPolicy": "DELETE", "displayName": "", "description": ""}
    )

    def place(self, inputs: Mapping[str, Any]) -> Place:
        project = inputs["project"]
        email = _email(project, inputs["accountId"])
        return Place(f"projects/{project}/serviceAccounts/{email}", project, email)

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        account = inputs.get("accountId")
        if isinstance(account, str) and _ACCOUNT_ID.match(account) is None:
            yield Problem(
                "accountId",
                f"must have 6 to 30 lower-case letters, digits and hyphens and begin with a letter (got {account!r}): "
                "IAM's rule",
            )

    def refuse_conflict(self, place: Place) -> Refusal:
        # Wording: IAM API, widely quoted.
        return GoogleRefusal(
            f"Service account {place.name.split('@')[0]} already exists within project projects/{place.project}.",
            409,
            "alreadyExists",
        )

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "email": place.name,
            "member": f"serviceAccount:{place.name}",
            "name": place.id,
            "uniqueId": numeric_id(place.id),
        }

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        if resource_id.startswith("projects/"):
            return resource_id
        email = resource_id if "@" in resource_id else _email(str(defaults.project), resource_id)
        return f"projects/{defaults.project}/serviceAccounts/{email}"


def _email(project: str, account: str) -> str:
    return f"{account}@{project}.iam.gserviceaccount.com"


class MemberKind(Kind):
    """What IAM members of all resources have in common."""

    is_autonamed = False
    scope = ()
    noun = "IAM Member"

    def parent(self, inputs: Mapping[str, Any]) -> str:
        """The id of what the role is given on."""
        raise NotImplementedError

    def project_of(self, inputs: Mapping[str, Any]) -> str:
        """The project that the request goes to; empty where the request names none."""
        raise NotImplementedError

    def place(self, inputs: Mapping[str, Any]) -> Place:
        name = f"{inputs['role']}/{inputs['member']}"
        condition = (inputs.get("condition") or {}).get("title")
        name = f"{name}/{condition}" if condition else name
        return Place(f"{self.parent(inputs)}/{name}", self.project_of(inputs), name)

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        role, member = inputs.get("role"), inputs.get("member")
        if isinstance(role, str) and _ROLE.match(role) is None:
            yield Problem("role", f"must be roles/… or a custom role's full name (got {role!r})")
        if isinstance(member, str) and _MEMBER.match(member) is None:
            yield Problem(
                "member", f"must be a member such as serviceAccount:EMAIL or principal://… (got {member!r})"
            )

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self.require_parent(cloud, inputs)
        match = re.fullmatch(r"serviceAccount:([^@\[]+)@([^.]+)\.iam\.gserviceaccount\.com", inputs["member"])
        if match is not None and cloud.region.project(match[2]) is not None:
            email = inputs["member"].split(":", 1)[1]
            if cloud.inventory.get(f"projects/{match[2]}/serviceAccounts/{email}", ACCOUNT) is None:
                # Wording: IAM API, widely quoted.
                raise GoogleRefusal(f"Service account {email} does not exist.", 400, "badRequest")
        return {"etag": opaque(place.id, length=12)}

    def require_parent(self, cloud: Cloud, inputs: Mapping[str, Any]) -> None:
        """Raise if the resource is not there."""
        raise NotImplementedError


class ProjectMemberKind(MemberKind):
    """`gcp.projects.IAMMember`."""

    token = "gcp:projects/iAMMember:IAMMember"  # noqa: S105 - a type token
    schema = ResourceSchema(ProjectIAMMember, ProjectIAMMemberArgs)
    api = "cloudresourcemanager.googleapis.com"

    def parent(self, inputs: Mapping[str, Any]) -> str:
        return str(inputs["project"])

    def project_of(self, inputs: Mapping[str, Any]) -> str:
        return str(inputs["project"]).removeprefix("projects/")

    def require_parent(self, cloud: Cloud, inputs: Mapping[str, Any]) -> None:
        cloud.project(self.project_of(inputs))


class AccountMemberKind(MemberKind):
    """`gcp.serviceaccount.IAMMember`."""

    token = "gcp:serviceaccount/iAMMember:IAMMember"  # noqa: S105 - a type token
    schema = ResourceSchema(AccountIAMMember, AccountIAMMemberArgs)
    api = "iam.googleapis.com"

    def parent(self, inputs: Mapping[str, Any]) -> str:
        return str(inputs["serviceAccountId"])

    def project_of(self, inputs: Mapping[str, Any]) -> str:
        return str(inputs["serviceAccountId"]).split("/")[1]

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        account = inputs.get("serviceAccountId")
        if isinstance(account, str) and re.match(r"^projects/[^/]+/serviceAccounts/[^/]+$", account) is None:
            yield Problem(
                "serviceAccountId",
                f"must be an account's full name, projects/P/serviceAccounts/E (got {account!r})",
            )

    def require_parent(self, cloud: Cloud, inputs: Mapping[str, Any]) -> None:
        if cloud.inventory.get(self.parent(inputs), ACCOUNT) is None:
            # Wording: IAM API, widely quoted.
            raise GoogleRefusal(f"Unknown service account: {self.parent(inputs)}", 404, "notFound")


class BucketMemberKind(MemberKind):
    """`gcp.storage.BucketIAMMember`."""

    token = "gcp:storage/bucketIAMMember:BucketIAMMember"  # noqa: S105 - a type token
    schema = ResourceSchema(BucketIAMMember, BucketIAMMemberArgs)
    api = "storage.googleapis.com"

    def parent(self, inputs: Mapping[str, Any]) -> str:
        return f"b/{str(inputs['bucket']).removeprefix('b/')}"

    def project_of(self, inputs: Mapping[str, Any]) -> str:
        return ""

    def require_parent(self, cloud: Cloud, inputs: Mapping[str, Any]) -> None:
        name = self.parent(inputs).removeprefix("b/")
        is_known = any(bucket.name == name for bucket in cloud.region.buckets)
        if not is_known and cloud.inventory.get(name, BUCKET) is None:
            # Wording: Cloud Storage API, widely quoted.
            raise GoogleRefusal("The specified bucket does not exist.", 404, "notFound")


def members_of(cloud: Cloud, parent: str) -> list[Record]:
    """IAM members given on a resource."""
    return [
        record for record in cloud.inventory.resources.values() if record.id.startswith(f"{parent}/roles/")
    ]
