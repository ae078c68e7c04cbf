"""Resource policies: the workload policy of TPU pools.

Only `workloadPolicy` is simulated; a program that makes another policy is told so. Rules of the accelerator topology:
GKE's guide to dynamic slicing with a custom scheduler, and pulumi-gcp's schema (facts collected 2026-12-01).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.compute import ResourcePolicy, ResourcePolicyArgs

from facts import tpu
from facts.refusal import Refusal as BadTopology
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, in_use
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import ComputeKind, Place, reference
from simulator.cloud.sdk_schema import Problem, ResourceSchema

RESOURCE_POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
NODE_POOL = "gcp:container/nodePool:NodePool"

_NOT_SIMULATED = (
    "diskConsistencyGroupPolicy",
    "groupPlacementPolicy",
    "instanceSchedulePolicy",
    "snapshotSchedulePolicy",
)


class ResourcePolicyKind(ComputeKind):
    """`gcp.compute.ResourcePolicy` with a workload policy."""

    token = RESOURCE_POLICY
    schema = ResourceSchema(ResourcePolicy, ResourcePolicyArgs)
    collection = "resourcePolicies"
    noun = "ResourcePolicy"
    scope = ("project", "region")
    defaults = MappingProxyType({"deletionPolicy": "DELETE"})

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        for name in _NOT_SIMULATED:
            if inputs.get(name) is not None:
                yield Problem(name, "is not simulated by this region: it knows workload policies only")
        policy = inputs.get("workloadPolicy")
        if not isinstance(policy, Mapping):
            yield Problem("workloadPolicy", "must be given: this region knows workload policies only")
            return
        mode, distance = policy.get("acceleratorTopologyMode"), policy.get("maxTopologyDistance")
        topology = policy.get("acceleratorTopology")
        if mode is not None and policy.get("type") != "HIGH_THROUGHPUT":
            yield Problem(
                "workloadPolicy.acceleratorTopologyMode", "is allowed only with type HIGH_THROUGHPUT"
            )
        if distance is not None and (mode is not None or topology is not None):
            yield Problem(
                "workloadPolicy.maxTopologyDistance", "conflicts with the accelerator topology and its mode"
            )
        if isinstance(topology, str):
            try:
                tpu.dimensions(topology)
            except BadTopology as error:
                yield Problem("workloadPolicy.acceleratorTopology", str(error))

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        _refuse_second_of_topology(cloud, place, inputs["workloadPolicy"])
        return super().admit(cloud, place, inputs)

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        for pool in cloud.inventory.of_type(NODE_POOL):
            if policy_of(cloud, pool.inputs) == record.id:
                raise in_use("resource_policy", record.id, pool.id)


def policy_of(cloud: Cloud, pool_inputs: Mapping[str, Any]) -> str | None:
    """The id of the policy that a node pool names."""
    name = (pool_inputs.get("placementPolicy") or {}).get("policyName")
    project = pool_inputs.get("project")
    if not name or not project:
        return None
    return reference(name, project, "resourcePolicies", f"regions/{cloud.region.region}")


def _refuse_second_of_topology(cloud: Cloud, place: Place, policy: Mapping[str, Any]) -> None:
    """One workload policy a project, region and topology (GKE custom scheduler guide); wording assumed."""
    topology = policy.get("acceleratorTopology")
    for other in cloud.inventory.of_type(RESOURCE_POLICY):
        same_place = other.id.rsplit("/", 1)[0] == place.id.rsplit("/", 1)[0]
        if topology and same_place and other.inputs["workloadPolicy"].get("acceleratorTopology") == topology:
            raise GoogleRefusal(
                f"A workload policy with accelerator topology '{topology}' already exists in this region: '{other.id}'.",
                409,
                "alreadyExists",
            )
