"""Every resource type that the region answers, by its type token."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from simulator.cloud.errors import ProviderRefusal
from simulator.cloud.kinds.base import Kind
from simulator.cloud.kinds.buckets import BucketKind
from simulator.cloud.kinds.clusters import ClusterKind
from simulator.cloud.kinds.iam import AccountKind, AccountMemberKind, BucketMemberKind, ProjectMemberKind
from simulator.cloud.kinds.networks import FirewallKind, NetworkKind, SubnetworkKind
from simulator.cloud.kinds.node_pools import NodePoolKind
from simulator.cloud.kinds.project_services import PreviewFeatureKind, ServiceKind
from simulator.cloud.kinds.routers import RouterKind, RouterNatKind
from simulator.cloud.kinds.workload_policies import ResourcePolicyKind

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.token: kind
        for kind in (
            ServiceKind(),
            PreviewFeatureKind(),
            NetworkKind(),
            SubnetworkKind(),
            FirewallKind(),
            RouterKind(),
            RouterNatKind(),
            ResourcePolicyKind(),
            ClusterKind(),
            NodePoolKind(),
            AccountKind(),
            ProjectMemberKind(),
            AccountMemberKind(),
            BucketKind(),
            BucketMemberKind(),
        )
    }
)


def kind_of(token: str) -> Kind:
    """The kind of that token; refuses an unknown one by name."""
    kind = KINDS.get(token)
    if kind is None:
        raise ProviderRefusal(
            f"the simulated region knows no resource type {token}: it answers {', '.join(sorted(KINDS))}. Add it to "
            "simulator/cloud/kinds/, with what Google refuses."
        )
    return kind
