"""Questions to Google's REST APIs, where the provider has no function.

Owns the six requests, built from the discovery documents that google-api-python-client ships, so that a method or a
parameter that Google does not have fails before it is sent. The access token is the one that the provider gives for
its own credentials (`getClientConfig`); nothing here looks for others: no file, no metadata server. Without a token
nothing is asked. Each request runs in a daemon thread: one that hangs holds up neither the deadline nor the exit.
Refuses to raise, to retry, and to write.
"""

import asyncio
import contextlib
import functools
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from googleapiclient import discovery, discovery_cache
from googleapiclient import http as google_http
from googleapiclient.errors import HttpError

from livechecks.answers import Answer, failed, given

REQUEST_TIMEOUT_SECONDS: Final = 8.0
V6E_QUOTA: Final = "tpus_per_tpu_family"
"""Compute Engine's quota metric for v5p and later TPUs, by region and family (GKE and Cloud TPU guides)."""
V6E_SPOT_QUOTA: Final = "preemptible_tpus_per_tpu_family"

Build = Callable[[], Any]
Transport = Callable[[], Any]
"""Makes an HTTP client with `request(uri, method, body, headers)`; one a request, as httplib2 shares none."""


def default_transport() -> Any:
    """The client that google-api-python-client uses, with our timeout."""
    client = google_http.build_http()
    client.timeout = REQUEST_TIMEOUT_SECONDS
    return client


class GoogleRest:
    """Google's APIs for one project, with one access token."""

    def __init__(self, token: str, project: str, transport: Transport = default_transport) -> None:
        self._token = token
        self._project = project
        self._transport = transport

    def billing(self) -> Answer:
        """Whether the project is billed."""
        name = f"projects/{self._project}"
        return self._ask("cloudbilling", "v1", lambda api: api.projects().getBillingInfo(name=name))

    def permissions(self, wanted: list[str]) -> Answer:
        """Which of the permissions the deployer holds on the project."""
        body = {"permissions": wanted}
        return self._ask(
            "cloudresourcemanager",
            "v1",
            lambda api: api.projects().testIamPermissions(resource=self._project, body=body),
        )

    def server_config(self, region: str) -> Answer:
        """The versions that GKE offers, by channel."""
        name = f"projects/{self._project}/locations/{region}"
        return self._ask("container", "v1", lambda api: api.projects().locations().getServerConfig(name=name))

    def preview_feature(self, feature: str) -> Answer:
        """Whether a preview feature of Compute Engine is on."""
        return self._ask(
            "compute",
            "v1",
            lambda api: api.previewFeatures().get(project=self._project, previewFeature=feature),
        )

    def reservation(self, owner: str, zone: str, name: str) -> Answer:
        """A reservation as Compute Engine has it; the provider's function leaves fields out."""
        return self._ask(
            "compute",
            "v1",
            lambda api: api.reservations().get(project=owner, zone=zone, reservation=name),
        )

    def quota(self, metric: str) -> Answer:
        """The limits of a Compute Engine quota."""
        name = (
            f"projects/{self._project}/services/compute.googleapis.com/consumerQuotaMetrics/"
            f"compute.googleapis.com%2F{metric}"
        )
        return self._ask(
            "serviceusage", "v1beta1", lambda api: api.services().consumerQuotaMetrics().get(name=name)
        )

    def _ask(self, api: str, version: str, request_of: Callable[[Any], Any]) -> Answer:
        try:
            request = request_of(_service(api, version))
            request.headers["authorization"] = f"Bearer {self._token}"
            # A person's credentials have no project of their own to count requests against.
            request.headers["x-goog-user-project"] = self._project
            document = request.execute(http=self._transport(), num_retries=0)
        except HttpError as error:
            return failed(_words(error), error.status_code)
        except Exception as error:  # noqa: BLE001 (sockets, TLS and proxies fail in their own ways)
            return failed(f"{type(error).__name__}: {error}")
        if not isinstance(document, Mapping):
            return failed(f"the answer is no JSON object, but {str(document)!r}")
        return given(document)


def in_thread(question: Callable[[], Answer]) -> "asyncio.Future[Answer]":
    """The answer of a blocking question, which a daemon thread waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Answer] = loop.create_future()

    def finish(found: Answer) -> None:
        if not future.done():
            future.set_result(found)

    def run() -> None:
        found = question()
        # After the deadline the loop may be gone, and nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, found)

    threading.Thread(target=run, daemon=True, name="live-check").start()
    return future


@functools.cache
def _document(api: str, version: str) -> Mapping[str, Any]:
    text = discovery_cache.get_static_doc(api, version)
    if text is None:
        raise LookupError(f"google-api-python-client carries no discovery document of {api} {version}")
    document: Mapping[str, Any] = json.loads(text)
    return document


_building = threading.Lock()


def _service(api: str, version: str) -> Any:
    # Given a client, the library looks for no credentials; this one is never used.
    with _building:
        return discovery.build_from_document(_document(api, version), http=google_http.HttpMock())


def _words(error: HttpError) -> str:
    """Google's own sentence, with the reason that tells an API that is off from a right that is missing."""
    content = error.content.decode(errors="replace") if error.content else ""
    try:
        described = json.loads(content)["error"]
        reasons = [str(item.get("reason", "")) for item in described.get("details", [])]
        reasons += [str(item.get("reason", "")) for item in described.get("errors", [])]
        return " ".join([*filter(None, reasons), str(described.get("message", ""))]).strip()
    except (ValueError, LookupError, AttributeError, TypeError):
        return content or str(error)
