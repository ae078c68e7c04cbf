"""Cautions: what a stack may do although nobody can promise that it works.

Owns one sentence for each thing that sources contradict, that was never tried, or that people regret. Refuses
nothing: what cannot work is a rule.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from facts import gke, locations, maintenance, networks, tpu, versions

if TYPE_CHECKING:
    from settings import Settings


def of(settings: "Settings") -> list[str]:
    """Every caution of a stack."""
    return [*_pools(settings), *_cluster(settings), *_network(settings), *_serving(settings)]


def _pools(settings: "Settings") -> Iterator[str]:
    documented = tpu.CUBES_PER_SUPER_SLICE_DOCUMENTED
    for index, pool in enumerate(settings.slice_pools):
        path = f"`slicePools[{index}]`"
        if pool.cubes > documented:
            yield (
                f"{path} holds {pool.cubes} cubes: a release note allows {documented} in one super-slice, the guides "
                f"{tpu.CUBES_PER_BLOCK}. Slices above {documented} cubes are unproven."
            )
        if pool.reservation.block is None and pool.cubes > 1:
            yield (
                f"{path} names no block: GKE may spread its cubes over blocks, and a super-slice needs one block. "
                "Name the block if you want super-slices."
            )
    named = {pool.reservation.block for pool in settings.slice_pools if pool.reservation.sub_blocks}
    for index, pool in enumerate(settings.slice_pools):
        if pool.reservation.block in named and not pool.reservation.sub_blocks:
            yield (
                f"`slicePools[{index}]` lets GKE pick sub-blocks of a block in which another entry names its own: GKE "
                "may pick one of those first. Name sub-blocks in both."
            )
    if settings.multihost_pools and settings.is_ai_zone:
        yield (
            f"`multihostPools` asks for v6e hosts in the AI zone {settings.zone}: no source says whether an AI zone "
            "has them."
        )
    if not settings.slice_pools and not settings.multihost_pools:
        yield "Neither `slicePools` nor `multihostPools` is set: the stack is a cluster without TPU hosts."
    for section in ("queues", "slice_controller"):
        if section in settings.model_fields_set and not settings.slice_pools:
            alias = type(settings).model_fields[section].alias
            yield f"`{alias}` is set without `slicePools`: nothing uses it."


def _cluster(settings: "Settings") -> Iterator[str]:
    cluster = settings.cluster
    minor = gke.GkeVersion.parse(cluster.version).minor_version
    if minor not in versions.GKE_TESTED_MINORS:
        yield (
            f"`cluster.version` {cluster.version} is outside the tested set (GKE {', '.join(versions.GKE_TESTED_MINORS)}, "
            f"Kueue {versions.KUEUE}, JobSet {versions.JOBSET}, LWS {versions.LWS}): see docs/upgrades.md."
        )
    if cluster.control_plane_access == "public":
        yield (
            "`cluster.controlPlaneAccess` is public: the control plane answers the whole internet, and only "
            "credentials keep it out. dns needs no open address."
        )
    if not cluster.private_nodes:
        yield "`cluster.privateNodes` is false: every node gets a public address."
    if cluster.deletion_protection and cluster.maintenance_exclusion is None:
        yield (
            "`cluster.maintenanceExclusion` is not set on a protected cluster: an automatic upgrade moves active slices "
            "to FAILED."
        )
    exclusion = cluster.maintenance_exclusion
    if exclusion and exclusion.scope != "NO_UPGRADES":
        length = exclusion.end - exclusion.start
        if length > maintenance.LONGEST_KNOWN_OTHER:
            yield (
                f"`cluster.maintenanceExclusion` lasts {length.days} days: GKE takes it only until the end of support "
                f"of {minor}, which is not in our tables."
            )
    known = locations.ordinary_zones(settings.region)
    for zone in cluster.system_pool.zones:
        if known and zone not in known:
            yield f"`cluster.systemPool.zones`: {zone} is not among the zones of {settings.region} that we know."


def _network(settings: "Settings") -> Iterator[str]:
    network = settings.network
    if network.existing is not None:
        yield (
            f"`network.existing`: the ranges of {network.existing.subnet} are not known here, so neither overlap nor "
            "room was checked."
        )
    else:
        for key, cidr in (("subnetCidr", network.subnet_cidr), ("podCidr", network.pod_cidr)):
            if not networks.is_private(cidr):
                yield f"`network.{key}` {cidr} is public: hosts with those addresses become unreachable from here."
        if network.mtu < networks.MTU_TPU:
            yield f"`network.mtu` is {network.mtu}: TPU hosts move data faster with {networks.MTU_TPU}."


def _serving(settings: "Settings") -> Iterator[str]:
    serving = settings.pd_serving
    if serving is not None and serving.prefill.topology != "2x2x2":
        yield (
            f"`pdServing` on {serving.prefill.topology}: only 2x2x2 slices were shown to serve "
            "(tensor parallelism over 16 devices)."
        )
