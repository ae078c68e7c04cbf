"""How long operations last, and the clock that shortens them.

Seconds are what an operation takes in the cloud when all goes well. Sources: GKE and Compute documentation where it
gives a figure, else what people report in public issues and runbooks; all of them are `assumed` in the sense that no
service level promises them. A region started without a time scale waits for nothing.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final, Literal

OperationKind = Literal["create", "update", "delete"]

_COMPUTE: Final = {"create": 15.0, "update": 10.0, "delete": 15.0}
_AT_ONCE: Final = {"create": 2.0, "update": 2.0, "delete": 2.0}

OPERATION_SECONDS: Final[dict[str, dict[OperationKind, float]]] = {
    # assumed: enabling an API takes some seconds, its effect up to a few minutes (Service Usage guide: "wait a few
    # minutes for the action to propagate").
    "gcp:projects/service:Service": {"create": 30.0, "update": 1.0, "delete": 30.0},
    # The codelab waits 10 s after switching the feature on; assumed.
    "gcp:compute/previewFeature:PreviewFeature": {"create": 10.0, "update": 10.0, "delete": 0.0},
    "gcp:compute/network:Network": {"create": 30.0, "update": 10.0, "delete": 40.0},  # assumed
    "gcp:compute/subnetwork:Subnetwork": {"create": 25.0, "update": 20.0, "delete": 20.0},  # assumed
    "gcp:compute/firewall:Firewall": _COMPUTE,  # assumed
    "gcp:compute/router:Router": _COMPUTE,  # assumed
    "gcp:compute/routerNat:RouterNat": _COMPUTE,  # assumed
    "gcp:compute/resourcePolicy:ResourcePolicy": {"create": 5.0, "update": 5.0, "delete": 5.0},  # assumed
    # A regional control plane: 5 to 10 minutes is what GKE's quickstarts and runbooks tell people to expect.
    "gcp:container/cluster:Cluster": {"create": 420.0, "update": 300.0, "delete": 240.0},
    # A pool of 16 TPU hosts: some minutes when the capacity is reserved; assumed.
    "gcp:container/nodePool:NodePool": {"create": 180.0, "update": 240.0, "delete": 180.0},
    "gcp:serviceaccount/account:Account": _AT_ONCE,  # assumed
    "gcp:serviceaccount/iAMMember:IAMMember": _AT_ONCE,  # assumed
    "gcp:projects/iAMMember:IAMMember": _AT_ONCE,  # assumed
    "gcp:storage/bucket:Bucket": _AT_ONCE,  # assumed
    "gcp:storage/bucketIAMMember:BucketIAMMember": _AT_ONCE,  # assumed
}


class Clock:
    """Waits as long as the cloud would, divided by the time scale."""

    def __init__(self, time_scale: float = math.inf) -> None:
        """`time_scale` 1 is real time, 60 a minute in a second; infinity waits for nothing."""
        if not time_scale > 0:
            raise ValueError(
                f"--time-scale must be above 0 (got {time_scale:g}): it divides what operations last in the cloud. "
                "Leave it out for as fast as possible."
            )
        self.time_scale = time_scale

    async def operation(self, token: str, kind: OperationKind) -> None:
        """Wait as long as that operation lasts."""
        await asyncio.sleep(OPERATION_SECONDS[token][kind] / self.time_scale)

    def scaled(self, seconds: float) -> float:
        """A delay that a knob asks for; "as fast as possible" does not take it away."""
        return seconds if math.isinf(self.time_scale) else seconds / self.time_scale
