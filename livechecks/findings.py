"""Findings: what a check came to, and how a person reads all of them.

Owns the three ends of a check (passed, refused, or for a person to look at) and the report's text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from facts.refusal import Refusal, hidden
from livechecks.answers import Answer

_SWITCH = "`tpu-slices:safety.liveChecks: false` switches live checks off."


class Verdict(Enum):
    """The end of a check."""

    PASSED = "passed"
    REFUSED = "refused"
    CAUTION = "caution"
    """Google answered, and a person should know."""
    MANUAL = "manual"
    """Nothing answered: a person has to look."""


@dataclass(frozen=True)
class Finding:
    """What one check came to, in one or two sentences."""

    verdict: Verdict
    text: str


def passed(text: str) -> Finding:
    """The check holds."""
    return Finding(Verdict.PASSED, text)


def refused(path: str, rule: str, *, got: object, reason: str, way_out: str) -> Finding:
    """The check does not hold: `path` as a person types it, `rule` from "must" on."""
    return Finding(
        Verdict.REFUSED, hidden(f"`{path}` {Refusal(rule, got=got, reason=reason, way_out=way_out)}")
    )


def caution(text: str) -> Finding:
    """Google answered, and a person should know."""
    return Finding(Verdict.CAUTION, hidden(text))


def manual(subject: str, answer: Answer, look: str) -> Finding:
    """A check without an answer; `look` tells a person how to see for himself."""
    return Finding(Verdict.MANUAL, f"not checked: {subject} ({answer.reason}). {look}")


def manual_always(text: str) -> Finding:
    """Something that no API shows."""
    return Finding(Verdict.MANUAL, text)


def texts(findings: Iterable[Finding], verdict: Verdict) -> list[str]:
    """The texts of one verdict, each said once, in order."""
    return list(dict.fromkeys(finding.text for finding in findings if finding.verdict is verdict))


def refusal_of(findings: Iterable[Finding]) -> str | None:
    """The one error that holds every refusal; None without any."""
    lines = texts(findings, Verdict.REFUSED)
    if not lines:
        return None
    count = "1 live check refuses" if len(lines) == 1 else f"{len(lines)} live checks refuse"
    return "\n".join(
        [f"{count} this stack; nothing was changed. {_SWITCH}", *(f"  - {line}" for line in lines)]
    )


def notes_of(findings: Iterable[Finding]) -> list[str]:
    """The warnings: cautions first, then one list of manual items."""
    kept = list(findings)
    notes = [f"live check: {text}" for text in texts(kept, Verdict.CAUTION)]
    if items := texts(kept, Verdict.MANUAL):
        head = "1 item" if len(items) == 1 else f"{len(items)} items"
        notes.append(
            "\n".join([f"live checks leave {head} to a person:", *(f"  - {item}" for item in items)])
        )
    return notes
