"""How live checks ask: deadlines, tokens, exact requests, and the answers of a simulated region."""

import asyncio
import copy
import json
from datetime import UTC, datetime

import pytest
from googleapiclient import http as google_http

from livechecks import answers, checking, gathering, google_rest
from livechecks import provider_questions as questions
from livechecks.answers import Outcome
from livechecks.findings import Verdict, notes_of, refusal_of, texts
from tests.fakes import google_answers as fake
from tests.fakes.cloud_region import in_region, tpu_pool
from tests.fakes.google_answers import google_of

COMPUTE = "https://compute.googleapis.com/compute/v1"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("googleapi: Error 404: The resource 'x' was not found, notFound", Outcome.NOT_FOUND),
        ("googleapi: Error 403: X API has not been used in project 1 before", Outcome.API_OFF),
        ("googleapi: Error 403: …, accessNotConfigured", Outcome.API_OFF),
        ("googleapi: Error 403: Required 'compute.reservations.get' permission for 'x'", Outcome.FORBIDDEN),
        ("rpc error: code = PermissionDenied desc = PERMISSION_DENIED", Outcome.FORBIDDEN),
        ("google: could not find default credentials", Outcome.UNAUTHENTICATED),
        ('oauth2: "invalid_grant" "reauth related error (invalid_rapt)"', Outcome.UNAUTHENTICATED),
        ("context deadline exceeded", Outcome.SILENT),
        ("something else", Outcome.FAILED),
    ],
)
def test_googles_words_are_understood(text, outcome):
    assert answers.failed(f"invoke of gcp:a/b:c failed: {text}").outcome is outcome


def test_a_reason_is_short_plain_and_without_secrets():
    text = (
        "invoke of gcp:a/b:c failed: invocation of gcp:a/b:c returned an error: no  way\n ya29.secret "
        + "x" * 500
    )
    reason = answers.failed(text).reason
    assert reason.startswith("failed: no way [hidden]")
    assert len(reason) < 220


def test_without_a_token_no_request_leaves_and_every_rest_check_is_for_a_person():
    google = google_of(
        "prod", lambda made: made.functions.update({questions.CLIENT_CONFIG: {"accessToken": ""}})
    )
    text = google.said(Verdict.MANUAL)
    assert google.requests == []
    assert google.refused() == []
    for subject in (
        "billing",
        "the deployer's permissions",
        "that reservation tpu7x-shared is in All Capacity mode",
    ):
        assert f"not checked: {subject} (not asked: the provider has no access token to share)" in text


def test_a_token_that_is_refused_is_no_refusal_of_the_stack():
    def change(google):
        google.rest = {part: fake.error(401, "Invalid Credentials") for part in google.rest}

    google = google_of("dev", change)
    assert google.refused() == []
    assert "no valid credentials: Invalid Credentials" in google.said(Verdict.MANUAL)


@pytest.mark.parametrize("hanging", [{questions.RESERVATION, questions.CLUSTER}, {"billingInfo"}])
def test_what_hangs_is_left_behind_at_the_deadline(hanging):
    google = google_of("dev", lambda made: setattr(made, "hangs", hanging))
    found = []
    seconds = fake.elapsed(lambda: found.extend(google.findings(deadline_seconds=1.5)))
    assert seconds < 6
    assert refusal_of(found) is None
    assert "no answer in time" in "\n".join(texts(found, Verdict.MANUAL))


def test_requests_are_the_ones_that_google_documents():
    google = google_of("prod")
    google.findings()
    sent = {
        (method, uri.partition("?")[0]): (body, headers) for uri, method, body, headers in google.requests
    }
    assert set(sent) == {
        ("GET", "https://cloudbilling.googleapis.com/v1/projects/example-prod/billingInfo"),
        ("POST", "https://cloudresourcemanager.googleapis.com/v1/projects/example-prod:testIamPermissions"),
        (
            "GET",
            "https://container.googleapis.com/v1/projects/example-prod/locations/us-central1/serverConfig",
        ),
        (
            "GET",
            f"{COMPUTE}/projects/example-prod/global/previewFeatures/ai-zones-visibility",
        ),
        (
            "GET",
            f"{COMPUTE}/projects/example-capacity/zones/us-central1-ai1a/reservations/tpu7x-shared",
        ),
    }
    for body, headers in sent.values():
        assert headers["authorization"] == "Bearer not-a-real-token"
        assert headers["x-goog-user-project"] == "example-prod"
        assert body is None or json.loads(body)["permissions"]


def test_the_quota_is_asked_by_its_metric():
    google = google_of("pathways")
    google.findings()
    assert any(
        uri.startswith(
            "https://serviceusage.googleapis.com/v1beta1/projects/example-pathways/services/compute.googleapis.com/"
            "consumerQuotaMetrics/compute.googleapis.com%2Ftpus_per_tpu_family?"
        )
        for uri, *_ in google.requests
    )


def test_the_library_of_google_is_what_sends_the_request():
    transport = google_http.HttpMockSequence([({"status": "200"}, "echo_request_headers_as_json")])
    answer = google_rest.GoogleRest("not-a-real-token", "p", transport=lambda: transport).billing()
    assert answer.document["authorization"] == "Bearer not-a-real-token"


def test_a_server_that_cannot_be_reached_is_no_refusal():
    class Unreachable:
        def request(self, *_args, **_kwargs):
            raise ConnectionRefusedError("nobody is there")

    answer = google_rest.GoogleRest("token", "p", transport=Unreachable).billing()
    assert answer.outcome is Outcome.FAILED
    assert "nobody is there" in answer.reason


def test_the_real_transport_gives_up_by_itself():
    assert google_rest.default_transport().timeout == google_rest.REQUEST_TIMEOUT_SECONDS
    assert google_rest.REQUEST_TIMEOUT_SECONDS < gathering.DEADLINE_SECONDS


def test_many_refusals_are_one_error():
    def change(google):
        google.rest["billingInfo"] = (200, {})
        google.reservation["status"] = "DELETING"

    text = refusal_of(google_of("dev", change).findings())
    assert text.startswith("2 live checks refuse this stack; nothing was changed.")
    assert "`tpu-slices:safety.liveChecks: false` switches live checks off." in text
    assert text.count("\n  - ") == 2


async def asked_of(region) -> list:
    """The live checks of stack `local` against a region."""

    async def ask(token, arguments):
        return copy.deepcopy(region.provider.invoke(region.session, token, dict(arguments)))

    def no_rest(*_):
        raise AssertionError("the region has no access token")

    stack = fake.settings_of("local")
    found = await gathering.gather(stack, ask, no_rest)
    return list(checking.judge(stack, found, datetime.now(UTC)))


@in_region()
async def test_an_untouched_region_refuses_nothing(region):
    found = await asked_of(region)
    assert refusal_of(found) is None
    assert "its API is not enabled in the project yet" in notes_of(found)[0]


@in_region()
async def test_a_region_with_its_apis_passes(region):
    await region.apis()
    found = await asked_of(region)
    passed = texts(found, Verdict.PASSED)
    assert refusal_of(found) is None
    assert "the project sees us-central1-ai1a" in passed
    assert "GKE 1.36.0-gke.3712000 is offered" in passed
    assert "2 free cubes in block block-0, 2 wanted" in passed
    assert "a billing account is linked" in passed


@in_region()
async def test_the_pools_of_the_stack_itself_do_not_stand_in_its_way(region):
    await region.cubes()
    await region.create("NodePool", tpu_pool())
    await region.create("NodePool", tpu_pool(2), "other")
    found = await asked_of(region)
    assert refusal_of(found) is None
    assert "2 free cubes in block block-0, 2 wanted" in texts(found, Verdict.PASSED)
    assert "GKE 1.36.0-gke.3712000 is what the cluster runs" in texts(found, Verdict.PASSED)


def taken(document):
    document["reservations"][0]["blocks"][0]["subBlocks"][1]["inUseHostCount"] = 16


@in_region(taken)
async def test_hosts_that_others_hold_in_the_region_are_refused(region):
    await region.apis()
    text = refusal_of(await asked_of(region))
    assert "`tpu-slices:slicePools[0].cubes` must find 2 free cubes in block block-0 (got 1)" in text


def another(document):
    document["reservations"][0]["name"] = "another"


@in_region(another)
async def test_a_reservation_that_the_region_does_not_have_is_refused(region):
    await region.apis()
    assert "must be a reservation of project sim-project" in refusal_of(await asked_of(region))


def test_a_question_that_raises_is_an_answer():
    async def ask(_token, _arguments):
        raise RuntimeError("the provider is gone")

    answer = asyncio.run(questions.answer(ask, questions.PROJECT, {}))
    assert answer.outcome is Outcome.FAILED
