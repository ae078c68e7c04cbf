"""tpu7x cubes: one workload policy, and one pool of 16 hosts a cube, bound to its reservation.

Owns reserved capacity: every pool has a name of its own that never changes, so that one cube more adds and one less
removes the highest. Hosts are provisioned only (PROVISION_ONLY); which of them form a slice is decided at run time.
Refuses spare hosts, autoscaling and spot: a cube is whole or useless.
"""

from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from components import node_pools, readiness
from facts import names, tpu

# GKE writes the policy's topology here, and no type.
WRITTEN_BY_GKE = ("placementPolicy.tpuTopology", "placementPolicy.type")
# Fields of ours that nobody can change on a pool without replacing it. The codelab left GKE's defaults in them.
NODE_IDENTITY = ("nodeConfig.serviceAccount", "nodeConfig.oauthScopes", "nodeConfig.shieldedInstanceConfig")


@dataclass(frozen=True, kw_only=True)
class SupersliceNodePoolsArgs:
    """What `SupersliceNodePools` is told."""

    project: str
    region: str
    zone: str
    """Where the reservation is; an AI zone as a rule."""
    cubes: tuple["CubeArgs", ...]
    """One a node pool; the order is not meant to matter."""
    protect: bool
    """True: the engine refuses to delete or replace a pool."""
    cluster: pulumi.Resource
    """The control plane that `cluster_name` names."""
    cluster_name: pulumi.Input[str]
    node_service_account: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class CubeArgs:
    """A 4x4x4 cube."""

    pool_name: str
    """Name of the node pool, which is its logical name too."""
    machine_type: str
    reservation: str
    """The exact value of the reservation affinity."""
    host_maintenance: str | None
    """Interval of host maintenance; must equal the reservation's."""
    adopted: bool
    """True: somebody else made the pool. What cannot change in place stays as they made it."""


class SupersliceNodePools(pulumi.ComponentResource):
    """Cubes whose chips join into slices on demand."""

    policy_name: pulumi.Output[str]
    """Name of the workload policy."""
    pool_names: pulumi.Output[list[str]]
    """Names of the node pools; available once all their hosts are there."""

    def __init__(
        self, name: str, args: SupersliceNodePoolsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("tpu-slices:index:SupersliceNodePools", name, {}, opts)

        policy = gcp.compute.ResourcePolicy(
            f"{name}-policy",
            project=args.project,
            region=args.region,
            name=names.workload_policy_name(),
            workload_policy={
                "type": "HIGH_THROUGHPUT",
                "accelerator_topology": tpu.CUBE,
                # Neither topology nor mode can be edited in place.
                "accelerator_topology_mode": "PROVISION_ONLY",
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                delete_before_replace=True,
                # On the way down it goes after its pools and before the cluster.
                depends_on=[args.cluster],
            ),
        )
        visible = readiness.ask_until(f"{name}-zone-visible", readiness.VISIBLE_ZONE)
        pools = [self._pool(name, args, cube, policy.name, visible) for cube in args.cubes]

        self.policy_name = policy.name
        self.pool_names = pulumi.Output.all(*(pool.name for pool in pools))
        self.register_outputs({"policy_name": self.policy_name, "pool_names": self.pool_names})

    def _pool(
        self,
        name: str,
        args: SupersliceNodePoolsArgs,
        cube: CubeArgs,
        policy_name: pulumi.Input[str],
        visible: pulumi.ResourceHookBinding,
    ) -> gcp.container.NodePool:
        return gcp.container.NodePool(
            f"{name}-{cube.pool_name}",
            project=args.project,
            cluster=args.cluster_name,
            location=args.region,
            name=cube.pool_name,
            node_locations=[args.zone],
            node_count=tpu.HOSTS_PER_CUBE,
            node_config=node_pools.node_config(
                cube.machine_type,
                args.node_service_account,
                reservation=cube.reservation,
                host_maintenance=cube.host_maintenance,
            ),
            # The SDK wants a type and the API stores none for tpu7x: COMPACT is refused ("Use workload policy
            # instead"), the empty one is left out of the request.
            placement_policy=gcp.container.NodePoolPlacementPolicyArgs(type="", policy_name=policy_name),
            management=node_pools.management(),
            # The codelab leaves GKE's default, which rolls one host at a time through an active slice.
            upgrade_settings=node_pools.upgrade_in_place(tpu.HOSTS_PER_CUBE),
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=args.protect,
                # A full reservation has no room for the old pool and the new one.
                delete_before_replace=True,
                ignore_changes=[*WRITTEN_BY_GKE, *(NODE_IDENTITY if cube.adopted else ())],
                custom_timeouts=node_pools.POOL_TIMEOUTS,
                hooks=visible,
            ),
        )
