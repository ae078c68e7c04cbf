"""The one form in which pure code says no.

Owns the sentence "must … (got …): reason. Way out." that every refused value gets; the edge puts the path in
front. Refuses to print what looks like a credential: `shown` is the only way a value enters a message.
"""

import re
from typing import Any, Final

NOT_GIVEN: Final = object()
"""For `got` when there is no value to show."""

_CREDENTIAL: Final = re.compile(
    r"hf_[A-Za-z0-9]{6,}|ya29\.\S*|AIza[\w-]{20,}|-----BEGIN.*|gh[pousr]_\w{20,}|\"private_key\".*"
    r"|[?&](Signature|Policy)=\S*",
    re.DOTALL,
)
_LONGEST_SHOWN: Final = 80


def looks_like_credential(value: object) -> bool:
    """True when a text holds something shaped like a token, a key or a signed address."""
    return isinstance(value, str) and _CREDENTIAL.search(value) is not None


def hidden(text: str) -> str:
    """The text with everything shaped like a credential left out."""
    return _CREDENTIAL.sub("[hidden]", text)


def shown(value: Any) -> str:
    """The value as a message may show it: short, on one line, and never a credential."""
    if looks_like_credential(str(value)):
        return "[hidden: looks like a credential]"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"a mapping of {', '.join(map(str, value)) or 'nothing'}"[:_LONGEST_SHOWN]
    if isinstance(value, list):
        value = f"[{', '.join(shown(item) for item in value)}]"
    text = " ".join(str(value).split())
    if not text:
        return "an empty text"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


class Refusal(ValueError):
    """A refused value: the rule, the value got, the reason and the way out."""

    def __init__(self, rule: str, *, got: Any = NOT_GIVEN, reason: str, way_out: str) -> None:
        """`rule` starts with "must"; `reason` is a clause, `way_out` one or two sentences."""
        self.rule = rule
        self.reason = reason
        self.way_out = way_out
        value = "" if got is NOT_GIVEN else f" (got {shown(got)})"
        super().__init__(f"{rule}{value}: {reason}. {way_out}")
