"""Cloud Routers and Cloud NAT.

A NAT is an element of its router, so a router with NATs goes with them; the real provider lets it. No packet flows
here: what is simulated is which configurations Compute takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.compute import Router, RouterArgs, RouterNat, RouterNatArgs

from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, Refusal
from simulator.cloud.identifiers import now
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import (
    COMPUTE_ADDRESS,
    ComputeKind,
    Kind,
    Place,
    ProviderDefaults,
    last_part,
    reference,
    require,
)
from simulator.cloud.kinds.networks import NETWORK, SUBNETWORK, network_of
from simulator.cloud.sdk_schema import Problem, ResourceSchema

ROUTER = "gcp:compute/router:Router"
ROUTER_NAT = "gcp:compute/routerNat:RouterNat"


class RouterKind(ComputeKind):
    """`gcp.compute.Router`."""

    token = ROUTER
    schema = ResourceSchema(Router, RouterArgs)
    collection = "routers"
    noun = "Router"
    scope = ("project", "region")
    defaults = MappingProxyType({"deletionPolicy": "DELETE"})

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        if inputs.get("network") is None:
            yield Problem("network", "must be given: a router routes for one network")

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        require(cloud, reference(inputs["network"], place.project, "networks"), NETWORK)
        return {**super().admit(cloud, place, inputs), "creationTimestamp": now()}

    async def release(self, cloud: Cloud, record: Record) -> None:
        for nat in cloud.inventory.of_type(ROUTER_NAT):
            if _router_of(nat.inputs) == record.id:
                cloud.inventory.remove(nat)


def _router_of(inputs: Mapping[str, Any]) -> str:
    return reference(inputs["router"], inputs["project"], "routers", f"regions/{inputs['region']}")


class RouterNatKind(Kind):
    """`gcp.compute.RouterNat`."""

    token = ROUTER_NAT
    schema = ResourceSchema(RouterNat, RouterNatArgs)
    api = "compute.googleapis.com"
    noun = "RouterNat"
    scope = ("project", "region")
    # Compute API reference of RouterNat, and the provider's defaults.
    defaults = MappingProxyType(
        {
            "autoNetworkTier": "PREMIUM",
            "deletionPolicy": "DELETE",
            "drainNatIps": [],
            "enableDynamicPortAllocation": False,
            "enableEndpointIndependentMapping": False,
            "endpointTypes": ["ENDPOINT_TYPE_VM"],
            "icmpIdleTimeoutSec": 30,
            "minPortsPerVm": 64,
            "natIps": [],
            "tcpEstablishedIdleTimeoutSec": 1200,
            "tcpTimeWaitTimeoutSec": 120,
            "tcpTransitoryIdleTimeoutSec": 30,
            "type": "PUBLIC",
            "udpIdleTimeoutSec": 30,
        }
    )

    def place(self, inputs: Mapping[str, Any]) -> Place:
        project, region, router, name = (
            inputs["project"],
            inputs["region"],
            last_part(inputs["router"]),
            inputs["name"],
        )
        return Place(f"{project}/{region}/{router}/{name}", project, name, region)

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        is_listed = inputs.get("sourceSubnetworkIpRangesToNat") == "LIST_OF_SUBNETWORKS"
        if is_listed != bool(inputs.get("subnetworks")):
            yield Problem("subnetworks", "must be given with, and only with, LIST_OF_SUBNETWORKS")
        if inputs.get("natIpAllocateOption") == "MANUAL_ONLY" and not inputs.get("natIps"):
            yield Problem("natIps", "must be given with MANUAL_ONLY: there is no address to translate to")

    def refuse_conflict(self, place: Place) -> Refusal:
        # Wording: the provider, which reads the router before it writes it.
        return Refusal(f"Error creating RouterNat: object already present: {place.id}")

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        router = require(cloud, _router_of(inputs), ROUTER)
        wanted = self._subnets(cloud, network_of(router), inputs)
        for other in cloud.inventory.of_type(ROUTER_NAT):
            other_router = cloud.inventory.get(_router_of(other.inputs))
            if other_router is None or network_of(other_router) != network_of(router):
                continue
            shared = wanted & self._subnets(cloud, network_of(router), other.inputs)
            if shared:
                # assumed wording; a range has one NAT (Cloud NAT guide, "specifications").
                raise GoogleRefusal(
                    f"Subnetwork {min(shared)} is already configured for NAT by {other.id}.", 400, "invalid"
                )
        return {}

    def _subnets(self, cloud: Cloud, network: str | None, inputs: Mapping[str, Any]) -> set[str]:
        listed = inputs.get("subnetworks") or []
        if not listed:
            subnets = cloud.inventory.of_type(SUBNETWORK)
            return {subnet.id for subnet in subnets if network_of(subnet) == network}
        region = f"regions/{inputs['region']}"
        paths = {reference(item["name"], inputs["project"], "subnetworks", region) for item in listed}
        for path in paths:
            require(cloud, path, SUBNETWORK)
        return paths

    def import_id(self, resource_id: str, defaults: ProviderDefaults) -> str:
        parts = resource_id.removeprefix(COMPUTE_ADDRESS).removeprefix("projects/").split("/")
        kept = [part for part in parts if part not in ("regions", "routers")]
        return "/".join([str(defaults.project), str(defaults.region), *kept][-4:])
