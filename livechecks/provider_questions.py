"""Questions to Google through the provider that the program uses anyway.

Owns the tokens and arguments of the provider's functions. So the checks speak with the very credentials of the
deployment, and what answers the provider's resources answers them too. Refuses to raise: every end is an `Answer`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pulumi
from pulumi.runtime import invoke_async

from livechecks.answers import Answer, failed, given

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""`(token, arguments)` → the function's result; raises what the provider raises."""

PROJECT = "gcp:organizations/getProject:getProject"
CLIENT_CONFIG = "gcp:organizations/getClientConfig:getClientConfig"
ZONES = "gcp:compute/getZones:getZones"
ENGINE_VERSIONS = "gcp:container/getEngineVersions:getEngineVersions"
CLUSTER = "gcp:container/getCluster:getCluster"
RESERVATION = "gcp:compute/getReservation:getReservation"
BLOCK = "gcp:compute/getReservationBlock:getReservationBlock"
SUB_BLOCK = "gcp:compute/getReservationSubBlock:getReservationSubBlock"


def through(provider: pulumi.ProviderResource) -> Ask:
    """Questions to that provider."""

    async def ask(token: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        found = await invoke_async(token, dict(arguments), pulumi.InvokeOptions(provider=provider))
        return found or {}

    return ask


async def answer(ask: Ask, token: str, arguments: Mapping[str, Any]) -> Answer:
    """The answer of one function."""
    try:
        return given(await ask(token, arguments))
    except Exception as error:  # noqa: BLE001 (the SDK raises bare Exception for whatever a provider says)
        return failed(str(error))
