"""A Google that says yes to a stack, for tests to spoil: the provider's functions, and REST behind a transport.

Shapes: the functions' as the provider's SDK declares them, REST's as Google's discovery documents do.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httplib2

import settings as stack_settings
from livechecks import checking, gathering, permissions
from livechecks import provider_questions as questions
from livechecks.findings import Finding, Verdict, texts
from livechecks.google_rest import GoogleRest
from preflight import stackfile

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 12, 1, tzinfo=UTC)
OFFERED = ["1.36.1-gke.1204000", "1.36.0-gke.3712000"]


def settings_of(stack: str, **sections: Any) -> stack_settings.Settings:
    """A committed stack, with whole sections replaced."""
    path = ROOT / f"Pulumi.{stack}.yaml"
    config = stackfile.config_of(path.read_text(encoding="utf-8"), path.name)
    config |= {f"tpu-slices:{key}": value for key, value in sections.items()}
    return stack_settings.load(config)


class GoogleError(Exception):
    """What a provider's function raises."""

    def __init__(self, code: int, message: str, reason: str) -> None:
        super().__init__(
            "invoke of gcp:x/y:z failed: invocation of gcp:x/y:z returned an error: "
            f"googleapi: Error {code}: {message}, {reason}"
        )


NOT_FOUND = GoogleError(404, "The resource 'projects/p/…' was not found", "notFound")
FORBIDDEN = GoogleError(403, "Required 'compute.reservations.get' permission for 'projects/p/…'", "forbidden")
API_OFF = GoogleError(403, "Compute Engine API has not been used in project 1 before", "accessNotConfigured")
NO_CREDENTIALS = Exception("invoke of gcp:x/y:z failed: google: could not find default credentials")


class Google:
    """Answers that a test may change before it asks."""

    def __init__(self, stack: stack_settings.Settings) -> None:
        self.stack = stack
        self.functions: dict[str, Any] = {
            questions.PROJECT: {"projectId": stack.project, "number": "100000000001", "billingAccount": ""},
            questions.CLIENT_CONFIG: {"accessToken": "not-a-real-token"},
            questions.ZONES: {"names": [f"{stack.region}-a", stack.zone]},
            questions.ENGINE_VERSIONS: {
                "validMasterVersions": OFFERED,
                "releaseChannelLatestVersion": {"RAPID": OFFERED[0]},
            },
            questions.CLUSTER: NOT_FOUND,
        }
        self.reservation: Any = {
            "status": "READY",
            "specificReservationRequired": True,
            "blockNames": ["block-0"],
            "deleteAtTime": "",
            "shareSettings": [
                {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": "100000000001"}]},
            ],
            "specificReservations": [
                {
                    "count": "64",
                    "inUseCount": "0",
                    "instanceProperties": [{"machineType": _machine_type(stack)}],
                }
            ],
        }
        self.block: Any = {
            "reservationSubBlockCount": 4,
            "reservationSubBlockInUseCount": 0,
            "subBlockNames": [f"sub-{number}" for number in range(4)],
        }
        self.sub_blocks: dict[str, Any] = {}
        self.rest: dict[str, tuple[int, Any]] = {
            "billingInfo": (200, {"billingEnabled": True}),
            ":testIamPermissions": (200, {"permissions": permissions.needed(stack)}),
            "serverConfig": (200, {"channels": [{"channel": "RAPID", "validVersions": OFFERED}]}),
            "previewFeatures": (200, {"activationStatus": "ENABLED"}),
            "/reservations/": (
                200,
                {
                    "deploymentType": "DENSE",
                    "advancedDeploymentControl": {"reservationOperationalMode": "ALL_CAPACITY"},
                },
            ),
            "%2Ftpus_per_tpu_family": (200, quota(256)),
            "%2Fpreemptible_tpus_per_tpu_family": (200, quota(256)),
        }
        self.hangs: set[str] = set()
        self.released = threading.Event()
        self.requests: list[tuple[str, str, Any, Mapping[str, str]]] = []

    async def ask(self, token: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """A provider's function."""
        if token in self.hangs:
            await asyncio.sleep(60)
        answers = {
            questions.RESERVATION: lambda: self.reservation,
            questions.BLOCK: lambda: self.block,
            questions.SUB_BLOCK: lambda: self.sub_blocks.get(arguments["name"], sub_block()),
        }
        found = answers[token]() if token in answers else self.functions[token]
        if isinstance(found, Exception):
            raise found
        return found

    def request(
        self, uri: str, method: str = "GET", body: Any = None, headers: Any = None, **_: Any
    ) -> tuple[httplib2.Response, bytes]:
        """The transport of the REST client."""
        self.requests.append((uri, method, body, headers or {}))
        part = next(part for part in self.rest if part in uri)
        if part in self.hangs:
            self.released.wait(60)
        status, document = self.rest[part]
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        return httplib2.Response({"status": str(status), "content-type": "application/json"}), content

    def make_rest(self, token: str, project: str) -> GoogleRest:
        """The REST client, over the transport."""
        return GoogleRest(token, project, transport=lambda: self)

    def findings(self, deadline_seconds: float = 20.0) -> list[Finding]:
        """All checks, asked and judged."""

        async def asked() -> gathering.Gathered:
            return await gathering.gather(self.stack, self.ask, self.make_rest, deadline_seconds)

        loop = asyncio.new_event_loop()
        try:
            found = loop.run_until_complete(asked())
            for task in asyncio.all_tasks(loop):
                task.cancel()
        finally:
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
            self.released.set()
        return list(checking.judge(self.stack, found, NOW))

    def refused(self) -> list[str]:
        """The refusals alone."""
        return texts(self.findings(), Verdict.REFUSED)

    def said(self, verdict: Verdict) -> str:
        """The texts of one verdict, in one."""
        return "\n".join(texts(self.findings(), verdict))


def google_of(stack: str, change: Callable[[Google], object] | None = None, **sections: Any) -> Google:
    """A Google that says yes to a committed stack, but for one change."""
    made = Google(settings_of(stack, **sections))
    if change is not None:
        change(made)
    return made


def sub_block(*, in_use: int = 0, healthy: int = 16, pending: int = 0, infra: int = 0) -> dict[str, Any]:
    """A sub-block of sixteen hosts."""
    return {
        "subBlockCount": 16,
        "inUseCount": in_use,
        "healthInfos": [
            {"healthyHostCount": healthy, "degradedHostCount": 16 - healthy, "degradedInfraCount": infra}
        ],
        "reservationSubBlockMaintenances": [{"maintenancePendingCount": pending}],
    }


def quota(chips: int, **dimensions: str) -> dict[str, Any]:
    """A quota with a default of nothing, and a limit in the region of stack `pathways`."""
    here = {"region": "us-east1", "tpu_family": "CT6E", **dimensions}
    buckets = [
        {"dimensions": {"tpu_family": "CT6E"}},
        {"dimensions": {"region": "us-east1", "tpu_family": "CT5P"}, "effectiveLimit": "9999"},
        {"dimensions": here, "effectiveLimit": str(chips)},
    ]
    return {"consumerQuotaLimits": [{"quotaBuckets": buckets}]}


def cluster_with(*values: str, hosts: int = 16, version: str = OFFERED[0]) -> dict[str, Any]:
    """A cluster that has a pool on each reservation value."""
    return {
        "masterVersion": version,
        "nodePools": [
            {
                "name": f"pool-{index}",
                "nodeCount": hosts,
                "nodeConfigs": [{"reservationAffinities": [{"values": [value]}]}],
            }
            for index, value in enumerate(values)
        ]
        + [{"name": "system", "nodeCount": 1, "nodeConfigs": [{"reservationAffinities": []}]}],
    }


def error(status: int, message: str, reason: str = "") -> tuple[int, Any]:
    """A REST error as Google writes it."""
    details = [{"reason": reason}] if reason else []
    return status, {"error": {"code": status, "message": message, "details": details}}


def elapsed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def _machine_type(stack: stack_settings.Settings) -> str:
    return "tpu7x-standard-4t" if stack.slice_pools else "ct6e-standard-4t"
