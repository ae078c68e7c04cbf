"""The live checks of a running program: ask, judge, tell.

Owns the one call that `__main__` makes. Raises one `pulumi.RunError` with every refusal; the rest is logged.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pulumi
from pulumi.runtime.sync_await import _sync_await

from livechecks import (
    findings,
    gathering,
    judging_hosts,
    judging_project,
    judging_reservations,
    provider_questions,
)
from livechecks.findings import Finding, Verdict
from livechecks.gathering import Gathered
from settings import Settings

if TYPE_CHECKING:
    from livechecks.google_rest import GoogleRest


def check(settings: Settings, provider: pulumi.ProviderResource) -> None:
    """Ask through the provider whether the stack can come up; refuse it with all that Google refuses."""
    begun = time.monotonic()
    found = _sync_await(gathering.gather(settings, provider_questions.through(provider), rest))
    results = list(judge(settings, found, datetime.now(UTC)))
    for note in findings.notes_of(results):
        pulumi.log.warn(note)
    if refusal := findings.refusal_of(results):
        raise pulumi.RunError(refusal)
    count = len(findings.texts(results, Verdict.PASSED))
    pulumi.log.info(f"live checks: {count} passed in {time.monotonic() - begun:.1f} s")


def judge(settings: Settings, found: Gathered, now: datetime) -> Iterator[Finding]:
    """What all answers come to."""
    if not judging_project.has_credentials(found):
        # Every other answer would repeat it.
        yield from (
            finding
            for finding in judging_project.findings(settings, found)
            if finding.verdict is Verdict.REFUSED
        )
        return
    yield from judging_project.findings(settings, found)
    yield from judging_reservations.findings(settings, found, now)
    yield from judging_hosts.findings(settings, found)
    yield from unseen(settings)


def unseen(settings: Settings) -> Iterator[Finding]:
    """What no API shows."""
    if any(pool.reservation is None for pool in settings.multihost_pools):
        yield findings.manual_always(
            f"No API shows whether {settings.zone} has v6e hosts to spare now: quota is a permission, not a reservation."
        )
    if settings.pathways_serving:
        yield findings.manual_always(
            "No API shows whether the project may pull the Pathways images: Google allows projects on request."
        )


def rest(token: str, project: str) -> "GoogleRest":
    """The REST client; its libraries take seconds to load and are loaded only for a token."""
    from livechecks.google_rest import GoogleRest

    return GoogleRest(token, project)
