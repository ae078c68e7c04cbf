"""Numbers, hashes and times that the cloud chooses by itself."""

from __future__ import annotations

import datetime
import hashlib


def opaque(*parts: object, length: int = 32) -> str:
    """A stable number of the cloud's own choosing, as lower-case hexadecimal digits."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:length]


def numeric_id(*parts: object) -> str:
    """A stable decimal id, nineteen digits as Compute's are."""
    return str(10**18 + int(opaque(*parts, length=15), 16) % (8 * 10**18))


def now() -> str:
    """The time as Google writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
