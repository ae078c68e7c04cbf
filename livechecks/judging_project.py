"""Judging the project: credentials, number, billing, rights, zone, version, quota.

Pure. Owns what each answer means for the stack. Refuses only on Google's own word; anything else is for a person.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from facts import gke, versions
from livechecks import gathering, permissions
from livechecks import provider_questions as questions
from livechecks.answers import Answer, Outcome
from livechecks.findings import Finding, caution, manual, passed, refused
from livechecks.gathering import Gathered
from settings import Settings

TPU_FAMILY = "CT6E"


def findings(settings: Settings, found: Gathered) -> Iterator[Finding]:
    """Everything about the project."""
    yield from _credentials(settings, found.of(questions.PROJECT))
    yield from _billing(settings, found)
    yield from _permissions(settings, found)
    yield from _zone(settings, found)
    yield from _version(settings, found)
    yield from _quota(settings, found)


def has_credentials(found: Gathered) -> bool:
    """False when Google has refused the provider's credentials: no other answer says anything then."""
    return found.of(questions.PROJECT).outcome is not Outcome.UNAUTHENTICATED


def cluster_version(found: Gathered) -> str | None:
    """The running cluster's version; None without a cluster, or without an answer."""
    version = (found.of(questions.CLUSTER).document or {}).get("masterVersion")
    return str(version) if version else None


def shows_zone(settings: Settings, found: Gathered) -> bool | None:
    """Whether the project sees the stack's zone; None without an answer."""
    document = found.of(questions.ZONES).document
    return None if document is None else settings.zone in (document.get("names") or [])


def _credentials(settings: Settings, answer: Answer) -> Iterator[Finding]:
    if answer.outcome is Outcome.UNAUTHENTICATED:
        yield refused(
            "gcp:project",
            "must be deployed with credentials that Google takes",
            got=answer.detail,
            reason="the provider's own credentials were refused, or there are none",
            way_out="Run `gcloud auth application-default login`, or give the provider a service account's.",
        )
    elif answer.document is None:
        yield manual(
            f"project {settings.project}", answer, f"Look at `gcloud projects describe {settings.project}`."
        )
    else:
        number = str(answer.document.get("number") or "")
        if settings.project_number and number and settings.project_number != number:
            yield refused(
                "tpu-slices:projectNumber",
                f"must be {number}",
                got=settings.project_number,
                reason=f"Google gives project {settings.project} that number",
                way_out="Correct it, or remove the key: it is looked up.",
            )
        else:
            yield passed(f"credentials reach project {settings.project}")


def _billing(settings: Settings, found: Gathered) -> Iterator[Finding]:
    answer = found.by_rest("billing")
    if answer.document is not None:
        # A field that is false is left out of Google's answers.
        if answer.document.get("billingEnabled"):
            yield passed("billing is on")
            return
        yield refused(
            "gcp:project",
            "must have billing enabled",
            got=settings.project,
            reason="without it Google enables none of the APIs",
            way_out=f"Run `gcloud billing projects link {settings.project} --billing-account=…`.",
        )
    elif (found.of(questions.PROJECT).document or {}).get("billingAccount"):
        yield passed("a billing account is linked")
    else:
        yield manual(
            "billing",
            answer,
            f"Look at `gcloud billing projects describe {settings.project}`: billingEnabled.",
        )


def _permissions(settings: Settings, found: Gathered) -> Iterator[Finding]:
    answer = found.by_rest("permissions")
    if answer.document is None:
        yield manual(
            "the deployer's permissions",
            answer,
            "docs/live-checks.md lists those needed and the roles that hold them.",
        )
        return
    held = set(answer.document.get("permissions") or [])
    missing = [name for name in permissions.needed(settings) if name not in held]
    if not missing:
        yield passed("the deployer holds every permission")
    elif found.of(questions.CLUSTER).document is not None:
        yield caution(
            f"the deployer lacks {', '.join(missing)} in {settings.project}: what exists may be updated, and what "
            "needs them anew will fail."
        )
    else:
        for name in missing:
            yield refused(
                "gcp:project",
                f"must grant {name} to the deployer",
                got=settings.project,
                reason="a resource of this stack cannot be made without it",
                way_out="Grant a role that has it; docs/live-checks.md lists them.",
            )


def _zone(settings: Settings, found: Gathered) -> Iterator[Finding]:
    answer, is_shown = found.of(questions.ZONES), shows_zone(settings, found)
    feature = found.by_rest("preview_feature")
    is_on = (feature.document or {}).get("activationStatus") in ("ENABLED", "ACTIVATION_STATE_ENABLED")
    if is_shown:
        yield passed(f"the project sees {settings.zone}")
    elif settings.is_ai_zone and is_on:
        yield caution(
            f"preview feature {gathering.AI_ZONES_FEATURE} is on, yet {settings.project} does not see "
            f"{settings.zone}: it may still be spreading, or the zone is spelt otherwise."
        )
    elif settings.is_ai_zone and (is_shown is False or feature.document is not None):
        yield caution(
            f"{settings.project} does not see {settings.zone} yet: this deployment switches on preview feature "
            f"{gathering.AI_ZONES_FEATURE} and waits for it. Nothing inside the zone could be checked."
        )
    elif is_shown is None:
        yield manual(
            f"zone {settings.zone}",
            answer,
            f"Look at `gcloud compute zones list --project={settings.project}`.",
        )
    else:
        names = ", ".join((answer.document or {}).get("names") or []) or "none"
        yield refused(
            "tpu-slices:zone",
            "must be a zone that the project sees",
            got=settings.zone,
            reason=f"in {settings.region} Google shows {names}",
            way_out="Correct the zone.",
        )


def _version(settings: Settings, found: Gathered) -> Iterator[Finding]:
    wanted, channel = settings.cluster.version, versions.GKE_RELEASE_CHANNEL
    look = f"Look at `gcloud container get-server-config --region={settings.region}`, channel {channel}."
    config, by_provider = found.by_rest("server_config"), found.of(questions.ENGINE_VERSIONS)
    if wanted == cluster_version(found):
        yield passed(f"GKE {wanted} is what the cluster runs")
        return
    offered = _offered_by_channel(config.document, channel)
    if offered is None and by_provider.document is not None:
        document = by_provider.document
        listed = {*(document.get("validMasterVersions") or [])}
        for key in ("releaseChannelDefaultVersion", "releaseChannelLatestVersion"):
            listed |= {version for name, version in (document.get(key) or {}).items() if name == channel}
        if wanted in listed:
            yield passed(f"GKE {wanted} is offered")
            return
        latest = (document.get("releaseChannelLatestVersion") or {}).get(channel)
        if not latest or gke.at_least(latest, wanted):
            # A channel offers more versions than the provider's function lists.
            yield manual(f"that GKE offers {wanted}", config, look)
            return
        offered = [latest]
    if offered is None:
        yield manual(f"that GKE offers {wanted}", by_provider, look)
    elif wanted in offered:
        yield passed(f"GKE {wanted} is offered")
    else:
        yield refused(
            "tpu-slices:cluster.version",
            f"must be one that GKE offers in {settings.region}, channel {channel}",
            got=wanted,
            reason=f"it offers {', '.join(offered[:6])}{' and others' if len(offered) > 6 else ''}",
            way_out="Choose one of them; docs/live-checks.md says which command lists all.",
        )


def _offered_by_channel(document: Mapping[str, Any] | None, channel: str) -> list[str] | None:
    for entry in (document or {}).get("channels") or []:
        if entry.get("channel") == channel:
            return list(entry.get("validVersions") or [])
    return None


def _quota(settings: Settings, found: Gathered) -> Iterator[Finding]:
    wanted, wanted_spot = (gathering.on_demand_chips(settings, spot=spot) for spot in (False, True))
    look = f"Look at quota TPUS_PER_TPU_FAMILY, family {TPU_FAMILY}, in {settings.region}."
    if wanted:
        answer = found.by_rest("quota")
        limit = _limit(answer, settings.region)
        if limit is None:
            yield manual(f"v6e quota for {wanted} chips", _without_limit(answer), look)
        elif limit < wanted:
            yield refused(
                "tpu-slices:multihostPools",
                f"must ask for at most {limit} v6e chips on demand",
                got=wanted,
                reason=f"that is the quota of {settings.project} in {settings.region}",
                way_out=f"Ask for more (TPUS_PER_TPU_FAMILY, {TPU_FAMILY}), use fewer pools, or a reservation.",
            )
        else:
            yield passed(f"v6e quota of {limit} chips")
    if wanted_spot:
        limits = [
            limit
            for name in ("spot_quota", "quota")
            if (limit := _limit(found.by_rest(name), settings.region)) is not None
        ]
        if not limits:
            yield manual(
                f"v6e quota for {wanted_spot} spot chips", _without_limit(found.by_rest("spot_quota")), look
            )
        elif max(limits) < wanted_spot:
            # Which of the two quotas a spot host draws on is told differently: no reason to refuse.
            yield caution(
                f"`multihostPools` asks for {wanted_spot} v6e chips on spot, and neither quota allows more than "
                f"{max(limits)} in {settings.region}."
            )
        else:
            yield passed(f"v6e spot quota of {max(limits)} chips")


def _without_limit(answer: Answer) -> Answer:
    if answer.document is None:
        return answer
    return Answer(outcome=Outcome.FAILED, detail="the answer names no limit for this region and family")


def _limit(answer: Answer, region: str) -> int | None:
    """The limit of the most exact bucket that covers region and family; Google's -1 has no end."""
    here = {"region": region, "tpu_family": TPU_FAMILY}
    best: tuple[int, int] | None = None
    for limit in (answer.document or {}).get("consumerQuotaLimits") or []:
        for bucket in limit.get("quotaBuckets") or []:
            dimensions: Mapping[str, str] = bucket.get("dimensions") or {}
            if any(here.get(name) != value for name, value in dimensions.items()):
                continue
            # A field that is zero is left out of Google's answers.
            found = (len(dimensions), int(bucket.get("effectiveLimit") or 0))
            if best is None or found[0] > best[0]:
                best = found
    if best is None:
        return None
    return 10**9 if best[1] < 0 else best[1]
