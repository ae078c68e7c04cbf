"""Zones, regions and AI zones.

Owns how a zone names its region, which zones are AI zones (`us-central1-ai1a`), and the ordinary zones of the
regions where TPUs are offered. Refuses, with `ValueError`, what is not shaped like a zone; whether a zone
exists and sells TPUs today is asked live, not here.
"""

import re
from typing import Final

from facts.refusal import Refusal

_ZONE: Final = re.compile(r"^(?P<region>[a-z]+-[a-z]+[0-9]+)-(?P<suffix>ai[0-9]+[a-z]|[a-z])$")
ZONE: Final = r"^[a-z]+-[a-z]+[0-9]+-(ai[0-9]+[a-z]|[a-z])$"

# Ordinary zones of regions with TPUs (Compute Engine's list of regions and zones, seen 2026-12-01).
_ORDINARY_ZONES: Final = {
    "asia-northeast1": "abc",
    "asia-south1": "abc",
    "asia-southeast1": "abc",
    "europe-west1": "bcd",
    "europe-west4": "abc",
    "us-central1": "abcf",
    "us-central2": "b",
    "us-east1": "bcd",
    "us-east4": "abc",
    "us-east5": "abc",
    "us-south1": "abc",
    "us-west1": "abc",
    "us-west4": "abc",
}


def check_zone(zone: str) -> str:
    """The zone, if it is shaped like one."""
    if _ZONE.match(zone):
        return zone
    is_region = re.fullmatch(r"[a-z]+-[a-z]+[0-9]+", zone) is not None
    raise Refusal(
        "must be a zone such as us-central1-ai1a or us-east5-b",
        got=zone,
        reason="that is a region, and TPU hosts live in one zone"
        if is_region
        else "no zone is spelt like that",
        way_out="Give the zone of the reservation or of the TPU quota.",
    )


def region_of(zone: str) -> str:
    """`us-central1-ai1a` and `us-central1-a` → `us-central1`."""
    match = _ZONE.match(check_zone(zone))
    assert match is not None
    return match["region"]


def is_ai_zone(zone: str) -> bool:
    """True for an AI zone, where only accelerator hosts and what serves them are at home."""
    return "-ai" in check_zone(zone)


def default_system_zones(region: str) -> list[str]:
    """Three ordinary zones of the region (fewer where it has fewer); empty when the region is not in the table."""
    return [f"{region}-{letter}" for letter in _ORDINARY_ZONES.get(region, "")[:3]]


def ordinary_zones(region: str) -> list[str]:
    """Every ordinary zone of the region that the table knows."""
    return [f"{region}-{letter}" for letter in _ORDINARY_ZONES.get(region, "")]
