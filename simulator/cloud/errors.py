"""What Google says when it refuses, in the form in which the real provider passes it on.

A refusal carries the HTTP code and reason of the Google API, so that a test (and a person) sees the same words as
on the real cloud. `ProviderRefusal` is what the provider itself refuses without asking Google.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Refusal(Exception):
    """Anything that ends an operation with a message for a person."""

    message: str

    def __str__(self) -> str:
        return self.message


@dataclass
class ProviderRefusal(Refusal):
    """The provider refuses by itself; no Google API was asked."""


@dataclass
class GoogleRefusal(Refusal):
    """A Google API answered with an error: `googleapi: Error CODE: MESSAGE, REASON`."""

    code: int = 400
    reason: str = "invalid"

    def __str__(self) -> str:
        return f"googleapi: Error {self.code}: {self.message}, {self.reason}"


@dataclass
class OperationFailed(Refusal):
    """Google accepted the request and its long-running operation failed later.

    `leaves_resource` says whether Google keeps the failed thing (a node pool in state ERROR) or not.
    """

    leaves_resource: bool = False


def not_found(path: str) -> GoogleRefusal:
    """Compute's answer for something that is not there (wording: Compute API, widely quoted)."""
    return GoogleRefusal(f"The resource '{path}' was not found", 404, "notFound")


def already_exists(path: str) -> GoogleRefusal:
    """Compute's answer for a name that is taken (wording: Compute API, widely quoted)."""
    return GoogleRefusal(f"The resource '{path}' already exists", 409, "alreadyExists")


def in_use(what: str, path: str, user: str) -> GoogleRefusal:
    """Compute's answer for something that another resource needs (wording: Compute API, widely quoted)."""
    return GoogleRefusal(
        f"The {what} resource '{path}' is already being used by '{user}'",
        400,
        "resourceInUseByAnotherResource",
    )


def invalid_value(field: str, value: object, why: str) -> GoogleRefusal:
    """Compute's answer for a value it cannot take (wording: Compute API, widely quoted)."""
    return GoogleRefusal(f"Invalid value for field '{field}': '{value}'. {why}", 400, "invalid")
