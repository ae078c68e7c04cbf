"""Reservation paths: every form that people type, and the one form that GKE is given.

Owns the reading of `RES`, `RES/reservationBlocks/B[/reservationSubBlocks/S]`, `projects/P/reservations/RES…`,
`projects/P/zones/Z/reservations/RES…` and the full address of the Compute API, and the writing of one exact
value a node pool. We always write the long form with the owner's project: the guide and the codelab do so even
inside one project, and it stays right when the reservation is shared later (GKE "custom scheduler" guide,
devrel-demos ai-ml/dynamic-slicing, seen 2026-12-01).
Refuses, with `ValueError`, a path with a part missing, doubled or out of order.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from facts import names
from facts.refusal import Refusal, shown

# Compute API: reservationAffinity.key of a specific reservation.
AFFINITY_KEY: Final = "compute.googleapis.com/reservation-name"
_ADDRESS: Final = re.compile(r"^(https?:)?//[a-z.]+/compute/(v1|beta|alpha)/")
_PARTS: Final = ("projects", "zones", "reservations", "reservationBlocks", "reservationSubBlocks")


@dataclass(frozen=True, kw_only=True)
class ReservationPath:
    """A reservation as read; what the text does not say is None."""

    name: str
    project: str | None = None
    zone: str | None = None
    block: str | None = None
    sub_block: str | None = None

    @classmethod
    def parse(cls, text: str) -> "ReservationPath":
        """Read any of the accepted forms."""
        rest = _ADDRESS.sub("", text.strip())
        if "/" not in rest:
            return cls(name=check_name(rest))
        pieces = rest.split("/")
        if pieces[0] not in _PARTS:
            pieces = ["reservations", *pieces]
        if len(pieces) % 2 or "" in pieces:
            raise _malformed(text, "a part has no name")
        keys, values = pieces[::2], pieces[1::2]
        order = [_PARTS.index(key) if key in _PARTS else -1 for key in keys]
        if -1 in order:
            raise _malformed(text, f"{keys[order.index(-1)]} is no part of a reservation's path")
        if order != sorted(set(order)):
            raise _malformed(text, "its parts are doubled or out of order")
        found = dict(zip(keys, values, strict=True))
        if "reservations" not in found:
            raise _malformed(text, "it names no reservation")
        if "reservationSubBlocks" in found and "reservationBlocks" not in found:
            raise _malformed(text, "a sub-block lies in a block, and none is named")
        return cls(
            name=check_name(found["reservations"]),
            project=found.get("projects"),
            zone=found.get("zones"),
            block=found.get("reservationBlocks"),
            sub_block=found.get("reservationSubBlocks"),
        )


def value(project: str, name: str, block: str | None = None, sub_block: str | None = None) -> str:
    """The one value that a node pool's reservation affinity holds."""
    parts = [f"projects/{project}/reservations/{name}"]
    if block is not None:
        parts.append(f"reservationBlocks/{block}")
    if sub_block is not None:
        parts.append(f"reservationSubBlocks/{sub_block}")
    return "/".join(parts)


def check_name(text: str) -> str:
    """The text, if it is a reservation's bare name."""
    return names.check(
        text,
        pattern=names.GCE_NAME,
        length=names.GCE_NAME_LENGTH,
        what="reservation name",
        reason="Compute Engine names a reservation so",
    )


def _malformed(text: str, reason: str) -> Refusal:
    return Refusal(
        "must be a reservation's name or its path, projects/P/reservations/R[/reservationBlocks/B"
        "[/reservationSubBlocks/S]]",
        got=text,
        reason=reason,
        way_out="Give `name`, and `project`, `block` and `subBlocks` beside it, or the path as Google prints it.",
    )


def taken_apart(value: Any) -> Any:
    """A reservation in any form that people type, as a mapping of its bare parts.

    A text is its path. In a mapping `name`, `block` and each of `subBlocks` may be a path too, whole or from its own
    part on; paths and keys must agree. What is no such form is returned as it is, for the type check to judge.
    """
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return value
    parts: dict[str, Any] = dict(value)
    if "/" in parts["name"]:
        path = ReservationPath.parse(parts["name"])
        parts["name"] = path.name
        _agree(parts, path, value["name"], ("project", "zone", "block"))
        if path.sub_block is not None:
            _set(parts, "subBlocks", [path.sub_block], value["name"])
    block = parts.get("block")
    if isinstance(block, str) and "/" in block:
        path = ReservationPath.parse(f"{parts['name']}/{block}" if block.startswith(_PARTS[3]) else block)
        del parts["block"]
        _agree(parts, path, block, ("name", "project", "zone", "block"))
    if isinstance(parts.get("subBlocks"), list):
        parts["subBlocks"] = [_bare_sub_block(parts, text) for text in parts["subBlocks"]]
    return parts


def _bare_sub_block(parts: dict[str, Any], text: Any) -> Any:
    if not isinstance(text, str) or "/" not in text:
        return text
    whole = text
    if text.startswith(_PARTS[4]) and isinstance(parts.get("block"), str):
        whole = f"{parts['name']}/{_PARTS[3]}/{parts['block']}/{text}"
    elif text.startswith(_PARTS[3]):
        whole = f"{parts['name']}/{text}"
    path = ReservationPath.parse(whole)
    _agree(parts, path, text, ("name", "project", "zone", "block"))
    return path.sub_block if path.sub_block is not None else text


def _agree(parts: dict[str, Any], path: ReservationPath, text: str, keys: tuple[str, ...]) -> None:
    for key in keys:
        if (part := getattr(path, key)) is not None:
            _set(parts, key, part, text)


def _set(parts: dict[str, Any], key: str, part: Any, text: str) -> None:
    if parts.get(key, part) != part:
        raise Refusal(
            "must not say two things",
            got=f"{key} {shown(parts[key])} beside {text}",
            reason=f"the path names {key} {shown(part)}",
            way_out=f"Remove `{key}`, or write bare names.",
        )
    parts[key] = part
