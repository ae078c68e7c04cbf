"""What a question brought back: a document, or why there is none.

Owns the reading of Google's error texts, from the provider's functions and from REST alike. Refuses to guess: a text
that it does not know is `FAILED`, which no check takes for a no.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from facts.refusal import hidden

_LONGEST_DETAIL: Final = 200


class Outcome(Enum):
    """How a question ended."""

    GIVEN = "answered"
    NOT_FOUND = "not found"
    FORBIDDEN = "not permitted"
    API_OFF = "its API is not enabled in the project yet"
    UNAUTHENTICATED = "no valid credentials"
    SILENT = "no answer in time"
    NOT_ASKED = "not asked"
    FAILED = "failed"


# First match decides. Wordings: every Google API's accessNotConfigured answer; google-auth and oauth2 libraries;
# IAM's answers in the Compute API; Terraform's data sources ("… not found").
_SIGNS: Final = (
    (
        Outcome.API_OFF,
        r"accessNotConfigured|SERVICE_DISABLED|has not been used in project|requires a quota project",
    ),
    (
        Outcome.UNAUTHENTICATED,
        r"could not find default credentials|UNAUTHENTICATED|Error 401|cannot fetch token",
    ),
    (Outcome.UNAUTHENTICATED, r"invalid_grant|invalid_rapt|invalid_client|reauth|\b401\b.*[Uu]nauthorized"),
    (Outcome.FORBIDDEN, r"Error 403|PERMISSION_DENIED|Required '[^']+' permission|[Ff]orbidden"),
    (Outcome.NOT_FOUND, r"Error 404|notFound|NOT_FOUND|[Nn]ot found"),
    (Outcome.SILENT, r"[Dd]eadline [Ee]xceeded|DEADLINE_EXCEEDED|timed out|[Tt]imeout"),
)
# What engine and SDK put around a provider's words.
_WRAPPING: Final = re.compile(r"^invoke of \S+ failed: (invocation of \S+ returned an error: )?")
_STATUS_OUTCOMES: Final = {
    401: Outcome.UNAUTHENTICATED,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    504: Outcome.SILENT,
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The end of one question."""

    outcome: Outcome
    document: Mapping[str, Any] | None = None
    """What was answered, when something was."""
    detail: str = ""
    """Google's words, shortened, without anything shaped like a credential."""

    @property
    def reason(self) -> str:
        """Why there is no document, as a clause."""
        if self.outcome is Outcome.API_OFF:
            return str(self.outcome.value)  # Google's words are about a console and a link
        return f"{self.outcome.value}: {self.detail}" if self.detail else self.outcome.value


def given(document: Mapping[str, Any]) -> Answer:
    """An answer."""
    return Answer(outcome=Outcome.GIVEN, document=document)


def not_asked(why: str) -> Answer:
    """A question that could not be put."""
    return Answer(outcome=Outcome.NOT_ASKED, detail=why)


SILENT: Final = Answer(outcome=Outcome.SILENT)


def failed(text: str, status: int | None = None) -> Answer:
    """An error, by its words and, where there is one, by its HTTP status."""
    outcome = next((outcome for outcome, signs in _SIGNS if re.search(signs, text)), None)
    by_status = _STATUS_OUTCOMES.get(status or 0)
    if outcome is not Outcome.API_OFF and by_status is not None:
        outcome = by_status
    return Answer(outcome=outcome or Outcome.FAILED, detail=_shortened(text))


def _shortened(text: str) -> str:
    line = _WRAPPING.sub("", " ".join(hidden(text).split()))
    return line if len(line) <= _LONGEST_DETAIL else f"{line[: _LONGEST_DETAIL - 1]}…"
