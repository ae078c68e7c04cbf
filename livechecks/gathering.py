"""Putting all questions of a stack, within one deadline.

Owns which questions a stack raises and their order: the provider's functions first, then what depends on their
answers (sub-blocks of a block, REST requests with the provider's token). Refuses to wait past the deadline: what is
late counts as silent.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from facts import locations
from livechecks import permissions
from livechecks import provider_questions as questions
from livechecks.answers import SILENT, Answer, Outcome, not_asked
from settings import Reservation, Settings

if TYPE_CHECKING:
    from livechecks.google_rest import GoogleRest

DEADLINE_SECONDS: Final = 20.0
SUB_BLOCKS_ASKED_AT_MOST: Final = 32
"""Of a block whose sub-blocks the stack does not name; a larger one is judged by its totals."""
AI_ZONES_FEATURE: Final = "ai-zones-visibility"

NO_TOKEN: Final = "the provider has no access token to share"  # noqa: S105 (a sentence)

MakeRest = Callable[[str, str], "GoogleRest"]
"""`(token, project)` → the REST client."""


@dataclass(frozen=True)
class Place:
    """A reservation, one of its blocks, or one of its sub-blocks."""

    project: str
    reservation: str
    block: str | None = None
    sub_block: str | None = None

    @classmethod
    def of(cls, reservation: Reservation, project: str) -> "Place":
        """The reservation itself, in a stack of that project."""
        return cls(reservation.project or project, reservation.name)

    def inside(self, block: str | None, sub_block: str | None = None) -> "Place":
        """A part of it."""
        return Place(self.project, self.reservation, block, sub_block)

    def question(self, zone: str) -> tuple[str, dict[str, str]]:
        """The provider's function and its arguments."""
        where = {"project": self.project, "zone": zone}
        if self.block is None:
            return questions.RESERVATION, {**where, "name": self.reservation}
        where["reservation"] = self.reservation
        if self.sub_block is None:
            return questions.BLOCK, {**where, "name": self.block}
        return questions.SUB_BLOCK, {**where, "reservationBlock": self.block, "name": self.sub_block}


@dataclass(kw_only=True)
class Gathered:
    """Every answer; a question that the stack does not raise is `NOT_ASKED`."""

    provider: dict[str, Answer] = field(default_factory=dict)
    """By the token of the function."""
    places: dict[Place, Answer] = field(default_factory=dict)
    rest: dict[str, Answer] = field(default_factory=dict)
    """By the name of the request."""
    rest_places: dict[Place, Answer] = field(default_factory=dict)
    """Reservations as the REST API shows them."""

    def of(self, token: str) -> Answer:
        """The answer of a provider's function."""
        return self.provider.get(token, not_asked("no question of this stack"))

    def at(self, place: Place) -> Answer:
        """The answer for a reservation or a part of it."""
        return self.places.get(place, not_asked("no question of this stack"))

    def by_rest(self, name: str) -> Answer:
        """The answer of a REST request."""
        return self.rest.get(name, not_asked(NO_TOKEN))


def on_demand_chips(settings: Settings, *, spot: bool) -> int:
    """v6e chips that the stack takes from quota."""
    pools = [pool for pool in settings.multihost_pools if pool.reservation is None and pool.spot is spot]
    return sum(pool.chip_count for pool in pools)


async def gather(
    settings: Settings,
    ask: questions.Ask,
    make_rest: MakeRest,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Gathered:
    """Put every question; never raises, never takes longer."""
    ends_at = time.monotonic() + deadline_seconds
    region, zone, project = settings.region, settings.zone, settings.project
    functions: dict[str, Mapping[str, Any]] = {
        questions.PROJECT: {"projectId": project},
        questions.CLIENT_CONFIG: {},
        questions.ZONES: {"project": project, "region": region},
        questions.ENGINE_VERSIONS: {"project": project, "location": region},
        questions.CLUSTER: {"project": project, "location": region, "name": settings.cluster.name},
    }
    named = list(_named_places(settings))
    first = await _all(
        {
            **{key: questions.answer(ask, key, arguments) for key, arguments in functions.items()},
            **{place: questions.answer(ask, *place.question(zone)) for place in named},
        },
        ends_at,
    )
    found = Gathered(
        provider={key: first[key] for key in functions}, places={place: first[place] for place in named}
    )
    later: dict[Any, Awaitable[Answer]] = {
        place: questions.answer(ask, *place.question(zone)) for place in _unnamed_sub_blocks(settings, found)
    }
    token = (found.of(questions.CLIENT_CONFIG).document or {}).get("accessToken")
    if token:
        later |= _rest_questions(settings, make_rest(str(token), project))
    for key, answered in (await _all(later, ends_at)).items():
        if isinstance(key, Place):
            found.places[key] = answered
        elif isinstance(key, str):
            found.rest[key] = answered
        else:
            found.rest_places[key[1]] = answered
    return found


async def _all(asked: Mapping[Any, Awaitable[Answer]], ends_at: float) -> dict[Any, Answer]:
    tasks = {key: asyncio.ensure_future(awaitable) for key, awaitable in asked.items()}
    if tasks:
        # What is late is left alone, not cancelled: the SDK takes a cancelled call for a failure of the program.
        await asyncio.wait(tasks.values(), timeout=max(0.0, ends_at - time.monotonic()))
    return {key: task.result() if task.done() else SILENT for key, task in tasks.items()}


def _named_places(settings: Settings) -> list[Place]:
    places: dict[Place, None] = {}
    reserved = [pool.reservation for pool in settings.slice_pools]
    reserved += [pool.reservation for pool in settings.multihost_pools if pool.reservation is not None]
    for reservation in reserved:
        whole = Place.of(reservation, settings.project)
        places[whole] = None
        if reservation.block is not None:
            places[whole.inside(reservation.block)] = None
        for sub_block in reservation.sub_blocks:
            places[whole.inside(reservation.block, sub_block)] = None
    return list(places)


def _unnamed_sub_blocks(settings: Settings, found: Gathered) -> list[Place]:
    places: dict[Place, None] = {}
    for pool in settings.slice_pools:
        reservation = pool.reservation
        block = Place.of(reservation, settings.project).inside(reservation.block)
        if reservation.block is None or reservation.sub_blocks or found.at(block).document is None:
            continue
        names = (found.at(block).document or {}).get("subBlockNames") or []
        if len(names) <= SUB_BLOCKS_ASKED_AT_MOST:
            places |= {block.inside(reservation.block, name): None for name in names}
    return [place for place in places if found.at(place).outcome is Outcome.NOT_ASKED]


def _rest_questions(settings: Settings, rest: "GoogleRest") -> dict[Any, Awaitable[Answer]]:
    from livechecks import google_rest

    blocking: dict[Any, Callable[[], Answer]] = {
        "billing": rest.billing,
        "permissions": lambda: rest.permissions(permissions.needed(settings)),
        "server_config": lambda: rest.server_config(settings.region),
    }
    if locations.is_ai_zone(settings.zone):
        blocking["preview_feature"] = lambda: rest.preview_feature(AI_ZONES_FEATURE)
    if on_demand_chips(settings, spot=False) or on_demand_chips(settings, spot=True):
        blocking["quota"] = lambda: rest.quota(google_rest.V6E_QUOTA)
    if on_demand_chips(settings, spot=True):
        blocking["spot_quota"] = lambda: rest.quota(google_rest.V6E_SPOT_QUOTA)
    for place in {Place.of(pool.reservation, settings.project): None for pool in settings.slice_pools}:
        blocking["reservation", place] = _reservation_question(rest, place, settings.zone)
    return {key: google_rest.in_thread(question) for key, question in blocking.items()}


def _reservation_question(rest: "GoogleRest", place: Place, zone: str) -> Callable[[], Answer]:
    return lambda: rest.reservation(place.project, zone, place.reservation)
