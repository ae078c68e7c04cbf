"""The one secret setting: closed values that are carried and never read.

Owns `Sealed` and the check of the Hugging Face token. Refuses a token in plain text, and never repeats it.
"""

from dataclasses import dataclass, field
from typing import Any

from facts.refusal import Refusal

SECRET_COMMAND = "pulumi config set --secret tpu-slices:hfToken"  # noqa: S105 (a command)


@dataclass(frozen=True)
class Sealed:
    """A secret: its content is never printed."""

    content: Any = field(repr=False)


def check_token(value: Any) -> Sealed:
    """The token, if it is a secret."""
    if isinstance(value, Sealed):
        if isinstance(value.content, str) and (not value.content or value.content.split() != [value.content]):
            raise Refusal(
                "must be one word",
                reason="the secret is empty or holds white space, as a pasted line does",
                way_out=f"Run: {SECRET_COMMAND}",
            )
        return value
    if isinstance(value, dict) and set(value) == {"secure"} and isinstance(value["secure"], str):
        return Sealed(value["secure"])
    if value in (None, "", "null"):
        raise Refusal("must be a secret", reason="it is empty", way_out=f"Run: {SECRET_COMMAND}")
    raise Refusal(
        "must be a secret",
        reason="it stands here in plain text, and so in every copy of this file",
        way_out=f"Revoke the token if the file was shared. Run: {SECRET_COMMAND}",
    )
