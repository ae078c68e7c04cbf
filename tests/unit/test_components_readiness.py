"""The gate asks again only for what means "not yet", and only until its deadline."""

import asyncio

import pytest

from components import readiness
from components.readiness import Expectation, Patience

WEBHOOK_DOWN = (
    'resource "urn:…" was not successfully created by the Kubernetes API server: Internal error occurred: failed '
    'calling webhook "mresourceflavor.kb.io": failed to call webhook: Post "https://kueue-webhook-service.kueue-system'
    '.svc:443/mutate-kueue-x-k8s-io-v1beta2-resourceflavor?timeout=10s": dial tcp 10.96.0.9:443: connect: connection '
    "refused"
)


class World:
    """A clock that only the gate's pauses move, and what it says."""

    def __init__(self, expectation: Expectation) -> None:
        self.now = 0.0
        self.said: list[str] = []
        self.patience = Patience(
            expectation=expectation, say=self.said.append, clock=lambda: self.now, pause=self.pause
        )

    async def pause(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, error: str, urn: str = "urn:a") -> bool:
        return asyncio.run(self.patience.try_again(urn, error))


def test_a_webhook_that_does_not_answer_yet_is_asked_again():
    assert World(readiness.KUEUE_WEBHOOK).ask(WEBHOOK_DOWN)


@pytest.mark.parametrize(
    "error",
    [
        'admission webhook "vclusterqueue.kb.io" denied the request: spec.resourceGroups is too long',
        'ClusterQueue.kueue.x-k8s.io "cq" is invalid: spec.namespaceSelector: Required value',
        "Forbidden: User cannot create resource",
    ],
)
def test_a_refusal_is_final_at_once(error):
    world = World(readiness.KUEUE_WEBHOOK)
    assert not world.ask(error)
    assert (world.now, world.said) == (0, [])


def test_the_gate_says_what_it_waits_for_once_and_gives_up_at_the_deadline():
    world = World(readiness.KUEUE_WEBHOOK)
    attempts = 0
    while world.ask(WEBHOOK_DOWN):
        attempts += 1
        assert attempts < 100, "the engine would have stopped asking"
    assert world.now == readiness.KUEUE_WEBHOOK.deadline_seconds
    assert [line.split(",")[0] for line in world.said] == [
        "waiting for Kueue's webhooks to answer",
        "waited 180 s for Kueue's webhooks to answer",
    ]


def test_each_resource_has_its_own_deadline():
    world = World(readiness.KUEUE_WEBHOOK)
    while world.ask(WEBHOOK_DOWN, "urn:first"):
        pass
    assert world.ask(WEBHOOK_DOWN, "urn:second")


@pytest.mark.parametrize(
    ("expectation", "error"),
    [
        # Service Usage's and Compute Engine's sentence for an API that is off, or not on everywhere yet.
        (
            readiness.ENABLED_API,
            "googleapi: Error 403: Compute Engine API has not been used in project 123 before or it is disabled.",
        ),
        (readiness.ENABLED_API, "reason: SERVICE_DISABLED, domain: googleapis.com"),
        (readiness.VISIBLE_ZONE, "Unknown zone: us-central1-ai1a"),
        (readiness.VISIBLE_ZONE, "zone projects/p/zones/us-central1-ai1a was not found"),
    ],
)
def test_what_google_says_of_something_that_is_not_there_yet_is_asked_again(expectation, error):
    assert World(expectation).ask(error)


@pytest.mark.parametrize(
    "error",
    [
        'reservation "R/reservationBlocks/B" not found for node pool "P" at zone "us-central1-ai1a".',
        "Reservation does not have enough resources for the request",
        'Insufficient regional quota to satisfy request: resource "X"',
    ],
)
def test_a_missing_or_full_reservation_is_not_taken_for_a_hidden_zone(error):
    assert not World(readiness.VISIBLE_ZONE).ask(error)


def test_an_interval_that_the_engine_would_cut_short_is_refused():
    with pytest.raises(ValueError, match="must be longer than 3"):
        Expectation(subject="x", signs="x", way_out="x", deadline_seconds=300, interval_seconds=2)
