"""GKE versions as GKE orders them, and the floors that a stack must reach.

Owns the comparison of `1.36.0-gke.3712000` forms. Refuses, with `ValueError`, anything that is not one exact
version: `1.36`, `latest` and `1.36.0` move under us. Whether a version is offered today is asked live.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from facts.refusal import Refusal

VERSION: Final = r"^[1-9][0-9]*\.[0-9]+\.[0-9]+-gke\.[0-9]+$"


@dataclass(frozen=True, order=True)
class GkeVersion:
    """An exact GKE version; ordered by major, minor, patch and GKE build."""

    major: int
    minor: int
    patch: int
    build: int

    @classmethod
    def parse(cls, text: str) -> "GkeVersion":
        """Read one exact version."""
        match = re.fullmatch(r"([1-9]\d{0,3})\.(\d{1,4})\.(\d{1,4})-gke\.(\d{1,12})", text)
        if match is None:
            raise Refusal(
                "must be one exact GKE version such as 1.36.0-gke.3712000",
                got=text,
                reason=_why_not(text),
                way_out="Take one that `gcloud container get-server-config` lists, without a leading v.",
            )
        return cls(*(int(part) for part in match.groups()))

    @property
    def minor_version(self) -> str:
        """`1.36`."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}-gke.{self.build}"


def _why_not(text: str) -> str:
    if text in ("latest", "-"):
        return "an alias lets GKE choose, and two runs differ"
    if re.fullmatch(r"v?\d+(\.\d+){0,2}", text):
        return "without its GKE build it is a prefix, and GKE picks what it means today"
    return "GKE spells no version like that"


def check_is_text(value: Any) -> Any:
    """Refuse what YAML made a number of: the digits after the second dot would not be there."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Refusal(
            "must be one exact GKE version such as 1.36.0-gke.3712000",
            got=value,
            reason="YAML reads it as a number, and as a version it would be a prefix that GKE fills in",
            way_out="Take one that `gcloud container get-server-config` lists.",
        )
    return value


def check_version(text: str) -> str:
    """The text, if it is one exact version."""
    GkeVersion.parse(text)
    return text


def at_least(version: str, floor: str) -> bool:
    """True when a version reaches a floor."""
    return GkeVersion.parse(version) >= GkeVersion.parse(floor)
