"""v6e multi-host slices: one node pool is one slice of a fixed size.

Owns pools whose chips are wired when they are made. A pool is replaced whole: its size follows from its topology.
Refuses autoscaling, and COMPACT where it is not asked for.
"""

from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from components import node_pools


@dataclass(frozen=True, kw_only=True)
class MultihostPoolArgs:
    """A static slice."""

    pool_name: str
    """Name of the node pool, which is its logical name too."""
    machine_type: str
    topology: str
    host_count: int
    compact: bool
    """True: hosts next to each other."""
    spot: bool
    reservation: str | None
    """The exact value of the reservation affinity; None on demand."""
    protect: bool
    """True: the engine refuses to delete or replace the pool."""


@dataclass(frozen=True, kw_only=True)
class MultihostNodePoolsArgs:
    """What `MultihostNodePools` is told."""

    project: str
    region: str
    zone: str
    pools: tuple[MultihostPoolArgs, ...]
    cluster_name: pulumi.Input[str]
    node_service_account: pulumi.Input[str]


class MultihostNodePools(pulumi.ComponentResource):
    """Static multi-host slices."""

    pool_names: pulumi.Output[list[str]]
    """Names of the node pools; available once all their hosts are there."""

    def __init__(
        self, name: str, args: MultihostNodePoolsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("tpu-slices:index:MultihostNodePools", name, {}, opts)

        pools = [
            gcp.container.NodePool(
                f"{name}-{pool.pool_name}",
                project=args.project,
                cluster=args.cluster_name,
                location=args.region,
                name=pool.pool_name,
                node_locations=[args.zone],
                node_count=pool.host_count,
                # GKE_METADATA where the tutorial has GCE_METADATA: with the latter its annotated service account
                # does nothing, and pods act as the node.
                node_config=node_pools.node_config(
                    pool.machine_type,
                    args.node_service_account,
                    reservation=pool.reservation,
                    spot=pool.spot,
                ),
                # Without COMPACT the tutorial gives the topology alone: the empty type is left out of the request.
                placement_policy=gcp.container.NodePoolPlacementPolicyArgs(
                    type="COMPACT" if pool.compact else "", tpu_topology=pool.topology
                ),
                management=node_pools.management(),
                upgrade_settings=node_pools.upgrade_in_place(pool.host_count),
                opts=pulumi.ResourceOptions(
                    parent=self,
                    protect=pool.protect,
                    delete_before_replace=True,
                    # GKE may fill in the type that it chose where none was asked for.
                    ignore_changes=None if pool.compact else ["placementPolicy.type"],
                    custom_timeouts=node_pools.POOL_TIMEOUTS,
                ),
            )
            for pool in args.pools
        ]

        self.pool_names = pulumi.Output.all(*(pool.name for pool in pools))
        self.register_outputs({"pool_names": self.pool_names})
