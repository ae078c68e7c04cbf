"""Maintenance exclusions: what GKE accepts as a time without upgrades.

Owns the reading of instants and GKE's longest exclusions. Refuses, with `ValueError`, a time without a zone, an
end in the past and an exclusion that GKE would refuse. The caller says what time it is now.
"""

import re
from datetime import datetime, timedelta
from typing import Any, Final

from facts.refusal import Refusal

# GKE guide "Maintenance windows and exclusions", seen 2026-12-01. The codelab's own ran 89 days.
LONGEST_NO_UPGRADES: Final = timedelta(days=90)
# The other scopes may last until the minor version's end of support, which no table here knows: 180 days are
# always within it on the Rapid channel, more is only a warning.
LONGEST_KNOWN_OTHER: Final = timedelta(days=180)


# How the engine (3.276) hands over a time that YAML reads as one: Go's own spelling. Seen 2026-12-01.
_FROM_THE_ENGINE: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d(\.\d+)?) (?P<zone>[+-]\d{4}) \S+"
)


def parse_instant(value: Any) -> Any:
    """An RFC 3339 instant with a zone, or a date, which is its midnight in UTC."""
    if isinstance(value, datetime):
        value = value.isoformat()
    if not isinstance(value, str):
        return value
    if spelt := _FROM_THE_ENGINE.fullmatch(value):
        value = f"{spelt['day']}T{spelt['time']}{spelt['zone']}"
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        value = f"{value}T00:00:00Z"
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise Refusal(
            "must be an RFC 3339 time with a zone, such as 2027-01-31T00:00:00Z, or a date",
            got=value,
            reason="it is no time"
            if instant is None
            else "without a zone it means another moment for everyone",
            way_out=f"Write {value}Z for UTC." if instant else "Write the date, T, the time and Z.",
        )
    return instant


def check_exclusion(start: datetime, end: datetime, scope: str, now: datetime) -> None:
    """Refuse an exclusion that GKE would refuse, or that is over."""
    if end <= start:
        raise Refusal(
            "must end after it starts",
            got=f"{_shown(start)} to {_shown(end)}",
            reason="it would exclude nothing",
            way_out="Exchange start and end.",
        )
    if end <= now:
        raise Refusal(
            "must end in the future",
            got=_shown(end),
            reason="GKE keeps a past exclusion and upgrades all the same, so active slices would fail",
            way_out="Move the dates, or remove `maintenanceExclusion`.",
        )
    if scope == "NO_UPGRADES" and end - start > LONGEST_NO_UPGRADES:
        raise Refusal(
            f"must not last longer than {LONGEST_NO_UPGRADES.days} days",
            got=f"{(end - start).days} days",
            reason="GKE refuses a longer exclusion of scope NO_UPGRADES",
            way_out="Shorten it, or use scope NO_MINOR_OR_NODE_UPGRADES.",
        )


def _shown(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
