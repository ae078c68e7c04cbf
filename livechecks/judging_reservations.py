"""Judging reservations: that each is there, is ours to use, fits the pool, and lasts.

Pure. Owns what a reservation says of itself; its blocks and hosts are `judging_hosts`.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from livechecks import judging_project
from livechecks import provider_questions as questions
from livechecks.answers import Answer, Outcome, not_asked
from livechecks.findings import Finding, caution, manual, passed, refused
from livechecks.gathering import NO_TOKEN, Gathered, Place
from settings import MultihostPool, Settings, SlicePool

SOON: Final = timedelta(days=30)


def findings(settings: Settings, found: Gathered, now: datetime) -> Iterator[Finding]:
    """Everything that reservations say of themselves."""
    for path, pool, place in reserved_pools(settings):
        document = found.at(place).document
        if document is None:
            yield from _unseen(settings, found, path, place)
            continue
        before = list(_problems(settings, found, f"{path}.reservation", pool, place, now))
        yield from before
        if not any(finding.verdict.value == "refused" for finding in before):
            yield passed(f"reservation {place.reservation} fits {path}")


def reserved_pools(settings: Settings) -> Iterator[tuple[str, SlicePool | MultihostPool, Place]]:
    """Path, pool and reservation of every pool that has one."""
    for index, slice_pool in enumerate(settings.slice_pools):
        place = Place.of(slice_pool.reservation, settings.project)
        yield f"tpu-slices:slicePools[{index}]", slice_pool, place
    for index, pool in enumerate(settings.multihost_pools):
        if pool.reservation is not None:
            yield (
                f"tpu-slices:multihostPools[{index}]",
                pool,
                Place.of(pool.reservation, settings.project),
            )


def may_be_hidden(settings: Settings, found: Gathered) -> bool:
    """True when the project may not see the zone yet: then "not found" says nothing."""
    return settings.is_ai_zone and judging_project.shows_zone(settings, found) is not True


def _unseen(settings: Settings, found: Gathered, path: str, place: Place) -> Iterator[Finding]:
    answer = found.at(place)
    if answer.outcome is Outcome.NOT_FOUND and not may_be_hidden(settings, found):
        yield refused(
            f"{path}.reservation",
            f"must be a reservation of project {place.project} in {settings.zone}",
            got=place.reservation,
            reason="Google finds none of that name there",
            way_out=f"Look at `gcloud compute reservations list --project={place.project}`, or correct `zone`.",
        )
        return
    yield manual(
        f"reservation {place.reservation} of {place.project}",
        answer,
        f"Look at `gcloud compute reservations describe {place.reservation} --project={place.project} "
        f"--zone={settings.zone}`: machine type, free and healthy hosts of its sub-blocks, end, maintenance.",
    )


def _problems(
    settings: Settings,
    found: Gathered,
    path: str,
    pool: SlicePool | MultihostPool,
    place: Place,
    now: datetime,
) -> Iterator[Finding]:
    document = found.at(place).document or {}
    properties = _first(_first(document, "specificReservations"), "instanceProperties")
    machine_type, interval = properties.get("machineType"), properties.get("maintenanceInterval")
    if machine_type and machine_type != pool.machine_type:
        yield refused(
            path,
            f"must hold {pool.machine_type}",
            got=machine_type,
            reason=f"the hosts of reservation {place.reservation} are of another machine type",
            way_out="Name another reservation, or the machine type that it holds.",
        )
    asked = pool.host_maintenance if isinstance(pool, SlicePool) else None
    if asked and interval and asked != interval:
        yield refused(
            path.replace(".reservation", ".hostMaintenance"),
            f"must be {interval}",
            got=asked,
            reason=f"reservation {place.reservation} has that maintenance interval, and GKE takes no other",
            way_out="Correct it, or remove the key.",
        )
    if (status := document.get("status")) and status != "READY":
        yield refused(
            path,
            "must be READY",
            got=status,
            reason=f"no host of reservation {place.reservation} can be taken in that state",
            way_out="Wait until Google has made it, or name another.",
        )
    if document.get("specificReservationRequired") is False:
        yield caution(
            f"reservation {place.reservation} is open to any VM (specificReservationRequired is false): others of the "
            "project may take its hosts without naming it."
        )
    yield from _end(path, place, str(document.get("deleteAtTime") or ""), now)
    yield from _sharing(settings, found, path, place)
    yield from _maintenance(place, document)
    if isinstance(pool, SlicePool):
        yield from _mode(path, place, found.rest_places.get(place, not_asked(NO_TOKEN)))


def _end(path: str, place: Place, text: str, now: datetime) -> Iterator[Finding]:
    try:
        end = datetime.fromisoformat(text)
    except ValueError:
        return
    end = end if end.tzinfo else end.replace(tzinfo=UTC)
    if end <= now:
        yield refused(
            path,
            "must not be over",
            got=text,
            reason=f"reservation {place.reservation} ended then, and its hosts are no longer held",
            way_out="Name a reservation that lasts.",
        )
    elif end - now < SOON:
        yield caution(
            f"reservation {place.reservation} ends in {(end - now).days} days ({text}): its hosts go away then."
        )


def _sharing(settings: Settings, found: Gathered, path: str, place: Place) -> Iterator[Finding]:
    if place.project == settings.project:
        return
    shared = _first(found.at(place).document or {}, "shareSettings")
    kind = shared.get("shareType")
    # Google names projects by id or by number.
    number = settings.project_number or (found.of(questions.PROJECT).document or {}).get("number")
    ours = {settings.project, str(number)}
    consumers = {str(item.get("projectId") or item.get("id")) for item in shared.get("projectMaps") or []}
    consumers |= set(map(str, shared.get("projects") or []))
    if kind == "LOCAL" or (kind == "SPECIFIC_PROJECTS" and consumers and not consumers & ours):
        yield refused(
            path,
            f"must be shared with {settings.project}",
            got=f"shared with {', '.join(sorted(consumers)) or 'no project'}",
            reason=f"{place.project} owns reservation {place.reservation}",
            way_out="Ask its owner to share it: `gcloud compute reservations update … --add-share-with=…`.",
        )


def _maintenance(place: Place, document: Mapping[str, Any]) -> Iterator[Finding]:
    group = _first(_first(document, "resourceStatuses"), "reservationMaintenances")
    start = _first(group, "upcomingGroupMaintenances").get("windowStartTime")
    if start:
        yield caution(
            f"reservation {place.reservation} has maintenance that starts at {start}: slices on its hosts go to FAILED "
            "then."
        )


def _mode(path: str, place: Place, answer: Answer) -> Iterator[Finding]:
    document = answer.document or {}
    mode = (document.get("advancedDeploymentControl") or {}).get("reservationOperationalMode")
    if mode == "HIGHLY_AVAILABLE_CAPACITY":
        yield refused(
            path,
            "must be in All Capacity mode",
            got=mode,
            reason="the slice controller works on no other",
            way_out="Ask Google's account team to change the mode, or name another reservation.",
        )
    elif mode != "ALL_CAPACITY":
        silent = (
            answer
            if answer.document is None
            else Answer(outcome=Outcome.FAILED, detail="Google names no mode")
        )
        yield manual(
            f"that reservation {place.reservation} is in All Capacity mode",
            silent,
            f"Look at `gcloud beta compute reservations describe {place.reservation} --project={place.project}`: "
            "reservationOperationalMode; else ask Google's account team.",
        )
    if (kind := document.get("deploymentType")) and kind != "DENSE":
        yield caution(f"reservation {place.reservation} is {kind}, not DENSE: cubes need dense hosts.")


def _first(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The first of a nested list of the provider, which holds at most one."""
    found = document.get(key)
    if isinstance(found, list):
        found = found[0] if found else None
    return found if isinstance(found, Mapping) else {}
