"""The rules that join sections, each with the sections that it reads.

Owns the list. A rule is a generator of (path, refusal); it runs when every section it names is sound, so a rule
never has to doubt a value. Refuses a rule that names no section: it would run on stand-ins.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from facts.refusal import Refusal
from preflight import rules_cluster, rules_network, rules_pools, rules_serving

if TYPE_CHECKING:
    from settings import Settings

Rule = Callable[["Settings", datetime], Iterator[tuple[str, Refusal]]]

ALL: tuple[tuple[frozenset[str], Rule], ...] = tuple(
    (frozenset(sections.split()), rule)
    for sections, rule in (
        ("network", rules_network.ranges_overlap_nothing),
        ("network cluster slicePools multihostPools", rules_network.ranges_are_large_enough),
        ("network", rules_network.existing_networks_are_not_described_twice),
        ("zone cluster", rules_cluster.system_zones_are_ordinary_zones_of_the_region),
        ("zone cluster slicePools pdServing", rules_cluster.controllers_fit_the_system_pool),
        ("cluster slicePools multihostPools pdServing", rules_cluster.version_reaches_the_floors),
        ("cluster", rules_cluster.exclusion_is_one_that_gke_takes),
        ("slicePools", rules_pools.sub_blocks_match_cubes),
        ("slicePools", rules_pools.blocks_are_shared_without_overlap),
        ("zone slicePools multihostPools", rules_pools.reservations_lie_in_the_zone),
        ("slicePools multihostPools", rules_pools.pool_names_are_unique_and_fit),
        ("multihostPools", rules_pools.static_slices_have_one_source),
        ("queues", rules_serving.queues_are_distinct_and_ours),
        ("pdServing slicePools queues", rules_serving.prefill_and_decode_have_a_home),
        ("pdServing", rules_serving.prefill_and_decode_match),
        ("pdServing slicePools", rules_serving.prefill_and_decode_fit_the_cubes),
        ("pathwaysServing multihostPools", rules_serving.pathways_fills_its_pools),
        ("pathwaysServing", rules_serving.pathways_variants_are_distinct),
        ("pathwaysServing pdServing", rules_serving.scratch_buckets_hold_nothing_else),
        ("pathwaysServing queues", rules_serving.pathways_stays_out_of_kueue),
    )
)
