"""The hosts that this stack's own cluster holds already.

Pure. Owns the reading of a cluster's node pools: what they hold is in use in the reservation, and yet free for the
stack. Refuses to guess: without an answer the holdings are unknown, and a shortage is then a caution.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from facts.reservations import ReservationPath
from livechecks.answers import Answer, Outcome
from livechecks.gathering import Place


@dataclass(frozen=True)
class Holdings:
    """Host counts by the place that a pool's reservation affinity names."""

    is_known: bool
    host_counts: Mapping[Place, int] = field(default_factory=dict)
    pool_counts: Mapping[Place, int] = field(default_factory=dict)

    def hosts_in(self, place: Place) -> int:
        """Hosts bound to the place or to a part of it."""
        return sum(count for held, count in self.host_counts.items() if _covers(place, held))

    def pools_in(self, place: Place) -> int:
        """Node pools bound to the place or to a part of it."""
        return sum(count for held, count in self.pool_counts.items() if _covers(place, held))

    def pools_that_may_reach(self, place: Place) -> int:
        """Node pools bound to something larger that holds the place: Google chose their sub-blocks."""
        return sum(
            count for held, count in self.pool_counts.items() if held != place and _covers(held, place)
        )


def of(cluster: Answer, project: str) -> Holdings:
    """What the cluster that was found (or not) holds."""
    if cluster.document is None:
        return Holdings(cluster.outcome in (Outcome.NOT_FOUND, Outcome.API_OFF))
    hosts: dict[Place, int] = {}
    pools: dict[Place, int] = {}
    for pool in cluster.document.get("nodePools") or []:
        place = _place(pool, project)
        if place is not None:
            hosts[place] = hosts.get(place, 0) + _host_count(pool)
            pools[place] = pools.get(place, 0) + 1
    return Holdings(is_known=True, host_counts=hosts, pool_counts=pools)


def _place(pool: Mapping[str, Any], project: str) -> Place | None:
    for config in pool.get("nodeConfigs") or []:
        for affinity in config.get("reservationAffinities") or []:
            for value in affinity.get("values") or []:
                try:
                    path = ReservationPath.parse(value)
                except ValueError:
                    continue  # a pool of somebody else's, in a form that ours never have
                return Place(path.project or project, path.name, path.block, path.sub_block)
    return None


def _host_count(pool: Mapping[str, Any]) -> int:
    return int(pool.get("nodeCount") or pool.get("initialNodeCount") or 0)


def _covers(outer: Place, inner: Place) -> bool:
    return (
        (outer.project, outer.reservation) == (inner.project, inner.reservation)
        and outer.block in (None, inner.block)
        and outer.sub_block in (None, inner.sub_block)
    )
