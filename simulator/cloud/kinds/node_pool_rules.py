"""What GKE and Compute Engine refuse of a node pool.

`refuse_request` raises what the API answers at once; `fate` says how the pool's instance group fails later, which
leaves the pool behind in state ERROR. Texts in quotes were seen by users (facts of 2026-12-01, section 8, with the
issues where they stand); where none was found the rule is marked `assumed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from facts import tpu
from facts.reservations import AFFINITY_KEY
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.clusters import refuse_cpu_in_ai_zone
from simulator.cloud.kinds.iam import ACCOUNT
from simulator.cloud.kinds.workload_policies import NODE_POOL, RESOURCE_POLICY, policy_of
from simulator.cloud.machine_types import machine_type

TPU7X_MACHINE = "tpu7x-standard-4t"
_QUOTA_FAMILIES = {"ct6e-standard-4t": "CT6E"}


def bad_request(message: str) -> GoogleRefusal:
    """GKE's 400."""
    return GoogleRefusal(message, 400, "badRequest")


def reservation_value(inputs: Mapping[str, Any]) -> str | None:
    """The one value of a specific reservation affinity, or None."""
    affinity = (inputs.get("nodeConfig") or {}).get("reservationAffinity") or {}
    values = affinity.get("values") or []
    return values[0] if affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION" and values else None


def topology_of(cloud: Cloud, inputs: Mapping[str, Any]) -> str | None:
    """The topology of the pool's gang of hosts: the policy's, or the pool's own."""
    policy = cloud.inventory.get(policy_of(cloud, inputs) or "", RESOURCE_POLICY)
    own = (inputs.get("placementPolicy") or {}).get("tpuTopology")
    return (policy.inputs["workloadPolicy"].get("acceleratorTopology") if policy else None) or own


def refuse_request(cloud: Cloud, pool: str, inputs: Mapping[str, Any], zones: list[str]) -> None:
    """Raise what the API answers at once."""
    config = inputs.get("nodeConfig") or {}
    machine = config.get("machineType", "e2-medium")
    cloud.require_zones(inputs["project"], zones)
    if machine_type(machine) is None:
        # Wording: Compute API, widely quoted.
        raise bad_request(
            f"Invalid value for field 'resource.properties.machineType': '{machine}'. Machine type with name "
            f"'{machine}' does not exist in zone '{zones[0]}'."
        )
    refuse_cpu_in_ai_zone(zones, machine)
    _refuse_service_account(cloud, inputs["project"], config.get("serviceAccount"))
    _refuse_affinity(config.get("reservationAffinity"))
    _refuse_placement(cloud, inputs)
    if machine in tpu.MACHINES:
        _refuse_tpu_zones(pool, machine, zones)
    if machine == TPU7X_MACHINE:
        _refuse_tpu7x(cloud, pool, inputs)
    elif machine in tpu.MACHINES:
        _refuse_static(cloud, pool, inputs, machine)


def fate(cloud: Cloud, inputs: Mapping[str, Any]) -> str | None:
    """How the pool's instance group fails after the API has accepted the pool, or None."""
    config, placement = inputs.get("nodeConfig") or {}, inputs.get("placementPolicy") or {}
    machine = config.get("machineType")
    if machine == TPU7X_MACHINE and placement.get("type") == "COMPACT":
        # vllm ci-infra #547 and others.
        return (
            f"Creation of a managed instance group with {machine} machine type with placement policy is not "
            "supported. Use workload policy instead."
        )
    topology = topology_of(cloud, inputs)
    if machine in tpu.MACHINES and topology is not None:
        gang = tpu.chip_count(topology) // tpu.MACHINES[machine].chips_per_host
        count = host_count(inputs)
        if count != gang:
            # xpk #751.
            return (
                f"Google Compute Engine: Invalid value for field 'resource.resizeBy': '{count}'. Requested invalid "
                f"target size '{count}' for a Managed Instance Group in the gang mode of size '{gang}'. Should be "
                "equal to the gang size."
            )
    return None


def host_count(inputs: Mapping[str, Any]) -> int:
    """Hosts a zone, as asked for."""
    return int(inputs.get("nodeCount") or inputs.get("initialNodeCount") or 1)


def _refuse_service_account(cloud: Cloud, project: str, email: str | None) -> None:
    """Wording: GKE API, as users quote it. The default account always exists."""
    if email in (None, "default"):
        return
    if cloud.inventory.get(f"projects/{project}/serviceAccounts/{email}", ACCOUNT) is None:
        raise bad_request(f'Service account "{email}" does not exist.')


def _refuse_affinity(affinity: Mapping[str, Any] | None) -> None:
    """GKE API reference of ReservationAffinity: a specific one has this key and one value; wording assumed."""
    if (affinity or {}).get("consumeReservationType") != "SPECIFIC_RESERVATION":
        return
    assert affinity is not None
    values = affinity.get("values") or []
    if affinity.get("key") != AFFINITY_KEY or len(values) != 1:
        raise bad_request(
            f"reservation_affinity of type SPECIFIC_RESERVATION must have key {AFFINITY_KEY} and exactly one value "
            f"(got key {affinity.get('key')}, {len(values)} values)."
        )


def _refuse_placement(cloud: Cloud, inputs: Mapping[str, Any]) -> None:
    placement = inputs.get("placementPolicy") or {}
    policy_id = policy_of(cloud, inputs)
    if policy_id is None:
        return
    policy = cloud.inventory.get(policy_id, RESOURCE_POLICY)
    if policy is None:
        # GKE API reference of placementPolicy.policyName: "If not found, InvalidArgument"; wording assumed.
        raise GoogleRefusal(f"Resource policy {policy_id} was not found.", 400, "invalidArgument")
    has_topology = policy.inputs["workloadPolicy"].get("acceleratorTopology") is not None
    if placement.get("tpuTopology") and not has_topology:
        # vllm ci-infra #547.
        raise bad_request(
            "does not support TPU topology with group placement policy and workload policy at the same time"
        )


def _refuse_tpu_zones(pool: str, machine: str, zones: list[str]) -> None:
    """All hosts of a TPU pool are wired together, so they lie in one zone (GKE TPU guide); wording assumed."""
    if len(zones) != 1:
        raise bad_request(
            f"Node pool {pool} with machine type {machine} must have exactly one zone (got {zones})."
        )


def _refuse_tpu7x(cloud: Cloud, pool: str, inputs: Mapping[str, Any]) -> None:
    config = inputs.get("nodeConfig") or {}
    policy = cloud.inventory.get(policy_of(cloud, inputs) or "", RESOURCE_POLICY)
    if (inputs.get("queuedProvisioning") or {}).get("enabled") and reservation_value(inputs):
        raise bad_request("Queued_provisioning requires reservation affinity to be set to none")
    if policy is None:
        if (inputs.get("placementPolicy") or {}).get("type") == "COMPACT":
            return  # accepted, and fails later: see `fate`
        # assumed: an All Capacity mode reservation is used through a PROVISION_ONLY workload policy (GKE guide).
        raise bad_request(
            f"Node pool {pool} with machine type {TPU7X_MACHINE} on an All Capacity mode reservation requires a "
            "workload policy with acceleratorTopologyMode PROVISION_ONLY."
        )
    if policy.inputs["workloadPolicy"].get("acceleratorTopologyMode") != "PROVISION_ONLY":
        return
    if reservation_value(inputs) is None:
        # cluster-toolkit: PROVISION_ONLY needs SPECIFIC_RESERVATION; wording assumed.
        raise bad_request("acceleratorTopologyMode PROVISION_ONLY requires a specific reservation.")
    for name in ("spot", "preemptible", "flexStart"):
        if config.get(name):
            # cluster-toolkit: excluded; wording assumed.
            raise bad_request(f"acceleratorTopologyMode PROVISION_ONLY cannot be used with {name}.")
    if inputs.get("autoscaling"):
        # No sample scales such a pool, and a cube has one size; assumed.
        raise bad_request("acceleratorTopologyMode PROVISION_ONLY cannot be used with autoscaling.")


def refuse_maintenance_interval(inputs: Mapping[str, Any], wanted: str) -> None:
    """The interval must be the reservation's (xpk: the error contains "is incorrect for the requested resources")."""
    policy = (inputs.get("nodeConfig") or {}).get("hostMaintenancePolicy") or {}
    asked = policy.get("maintenanceInterval")
    if asked is not None and asked != wanted:
        raise bad_request(f"Maintenance interval {asked} is incorrect for the requested resources.")


def _refuse_static(cloud: Cloud, pool: str, inputs: Mapping[str, Any], machine: str) -> None:
    topology = (inputs.get("placementPolicy") or {}).get("tpuTopology")
    if topology in tpu.SINGLE_HOST_TOPOLOGIES:
        # xpk #825.
        raise bad_request(
            "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology "
            f"{topology}."
        )
    if topology is not None and topology not in tpu.MACHINES[machine].topologies:
        # GKE's table of TPU v6e topologies; wording assumed.
        raise bad_request(f"TPU topology {topology} is not supported with machine type {machine}.")
    if reservation_value(inputs) is None:
        _refuse_over_quota(cloud, pool, inputs, machine)


def _refuse_over_quota(cloud: Cloud, pool: str, inputs: Mapping[str, Any], machine: str) -> None:
    """On-demand chips count against the project's quota; reserved ones do not (GKE TPU troubleshooting guide)."""
    family = _QUOTA_FAMILIES[machine]
    project = cloud.project(inputs["project"])
    quota = next((item.chips for item in project.tpu_quotas if item.family == family), math.inf)
    wanted = _chips(inputs)
    used = sum(_chips(other.inputs) for other in _on_demand_pools(cloud, machine) if other.name != pool)
    if used + wanted > quota:
        raise GoogleRefusal(
            f'Insufficient regional quota to satisfy request: resource "TPUS_PER_TPU_FAMILY-{family}": request '
            f"requires '{wanted:.1f}' and is short '{used + wanted - quota:.1f}'. project has a quota of "
            f"'{quota:.1f}' with '{max(0, quota - used):.1f}' available",
            403,
            "forbidden",
        )


def _on_demand_pools(cloud: Cloud, machine: str) -> list[Record]:
    return [
        pool
        for pool in cloud.inventory.of_type(NODE_POOL)
        if (pool.inputs.get("nodeConfig") or {}).get("machineType") == machine
        and not reservation_value(pool.inputs)
    ]


def _chips(inputs: Mapping[str, Any]) -> int:
    return host_count(inputs) * tpu.CHIPS_PER_HOST
