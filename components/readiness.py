"""Waiting for what no output carries: a webhook that answers, an API that has just been enabled.

Owns the one gate of the program: the engine makes the real request, and while the answer is the one that we expect
from something still starting, an error hook lets the engine ask again, until a deadline. So nothing sleeps for a
guessed time, no second client is needed, and the question is exactly the one that matters.
Measured on the engine's source (3.276): hooks run for creates and updates, in preview too; a destroy that runs
without the program skips them and reports the provider's own error. The engine asks at most 100 times.
Refuses to swallow an error that it does not know.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pulumi

_ENGINE_ATTEMPTS = 100


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What is not ready yet, how it shows, and how long it may take."""

    subject: str
    """Ends the sentence "waiting for …"."""
    signs: str
    """Regular expression: errors that only mean "not yet"."""
    way_out: str
    """What a person looks at when the deadline has passed."""
    deadline_seconds: float
    interval_seconds: float

    def __post_init__(self) -> None:
        if self.deadline_seconds / self.interval_seconds >= _ENGINE_ATTEMPTS:
            raise ValueError(
                f"`interval_seconds` must be longer than {self.deadline_seconds / _ENGINE_ATTEMPTS:g} (got "
                f"{self.interval_seconds:g}): the engine asks an error hook at most {_ENGINE_ATTEMPTS} times, so the "
                "deadline would never be reached. Ask less often."
            )


# "failed calling webhook" and "conversion webhook for … failed" are the API server's words for a webhook that it
# cannot reach, whose certificate it does not know yet, or which has no endpoints (apiserver, webhook errors).
KUEUE_WEBHOOK = Expectation(
    subject="Kueue's webhooks to answer",
    signs=r"failed calling webhook|conversion webhook for .* failed",
    way_out="Look at `kubectl -n kueue-system get pods` and at the log of kueue-controller-manager.",
    deadline_seconds=180,
    interval_seconds=2,
)
# Service Usage: "If you enabled this API recently, wait a few minutes for the action to propagate".
ENABLED_API = Expectation(
    subject="a Google API that was enabled a moment ago",
    signs=r"has not been used in project|SERVICE_DISABLED|accessNotConfigured",
    way_out="Look at `gcloud services list --enabled`, and whether the deployer may use the API.",
    deadline_seconds=300,
    interval_seconds=5,
)
# Assumed: no source shows what an AI zone answers before the preview feature has reached it; the words are those
# that Compute Engine has for any zone that a project cannot see.
VISIBLE_ZONE = Expectation(
    subject="the AI zone to become visible to the project",
    signs=r"(?i)(unknown|invalid|unrecognized) (zone|location)|(zone|location)\S* \S+ (was not found|not found|does not exist)",
    way_out="Look at `gcloud beta compute preview-features describe ai-zones-visibility`.",
    deadline_seconds=300,
    interval_seconds=5,
)


@dataclass(kw_only=True)
class Patience:
    """Decides, error by error, whether to ask again: one clock a resource."""

    expectation: Expectation
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _since: dict[str, float] = field(default_factory=dict)

    async def try_again(self, urn: str, error: str) -> bool:
        """True after a pause when the error means "not yet" and there is time left."""
        expected = self.expectation
        if not re.search(expected.signs, error):
            return False
        now = self.clock()
        started = self._since.setdefault(urn, now)
        if now - started >= expected.deadline_seconds:
            self.say(
                f"waited {expected.deadline_seconds:g} s for {expected.subject}, in vain. {expected.way_out}"
            )
            return False
        if now == started:
            self.say(f"waiting for {expected.subject}, at most {expected.deadline_seconds:g} s")
        await self.pause(expected.interval_seconds)
        return True


def ask_until(name: str, expectation: Expectation) -> pulumi.ResourceHookBinding:
    """The `hooks` option of resources whose creation asks for something that may not be ready yet."""
    patience = Patience(expectation=expectation, say=pulumi.log.info)

    async def hook(args: pulumi.ErrorHookArgs) -> bool:
        # Only asking again is ours: a delete that fails is told as it is.
        return args.failed_operation != "delete" and await patience.try_again(args.urn, args.errors[0])

    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(name, hook)])
