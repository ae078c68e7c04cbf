"""VPC networks, subnets and firewall rules.

Refuses what Compute refuses: a network that is still used, ranges that overlap, a second active proxy-only subnet in a
region of a network, a rule of a network that is not there. Default routes, peerings and IPv6 are not simulated.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pulumi_gcp.compute import Firewall, FirewallArgs, Network, NetworkArgs, Subnetwork, SubnetworkArgs

from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import GoogleRefusal, in_use, invalid_value
from simulator.cloud.identifiers import now, numeric_id, opaque
from simulator.cloud.inventory import Record
from simulator.cloud.kinds.base import (
    ComputeKind,
    Place,
    known,
    reference,
    require,
)
from simulator.cloud.sdk_schema import Problem, ResourceSchema

NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
FIREWALL = "gcp:compute/firewall:Firewall"

_PROXY_PURPOSES = ("REGIONAL_MANAGED_PROXY", "INTERNAL_HTTPS_LOAD_BALANCER")
_SMALLEST_PROXY_SUBNET = 26  # "at least a /26": Cloud Load Balancing guide to proxy-only subnets


def network_of(record: Record) -> str | None:
    """The id of the network that a compute resource belongs to."""
    value = record.inputs.get("network")
    return reference(value, record.inputs["project"], "networks") if value else None


def users_of_network(cloud: Cloud, network_id: str) -> Iterator[Record]:
    """Everything that holds a network; Compute refuses to delete it until they are gone."""
    for record in cloud.inventory.resources.values():
        if record.id != network_id and network_of(record) == network_id:
            yield record


class NetworkKind(ComputeKind):
    """`gcp.compute.Network`."""

    token = NETWORK
    schema = ResourceSchema(Network, NetworkArgs)
    collection = "networks"
    noun = "Network"
    # Compute API: a network without MTU gets 1460; the provider makes subnets automatically unless told not to.
    defaults = MappingProxyType(
        {
            "autoCreateSubnetworks": True,
            "mtu": 1460,
            "routingMode": "REGIONAL",
            "bgpBestPathSelectionMode": "LEGACY",
            "bgpAlwaysCompareMed": False,
            "bgpInterRegionCost": "",
            "deleteDefaultRoutesOnCreate": False,
            "deletionPolicy": "DELETE",
            "gatewayIpv4": "",
            "internalIpv6Range": "",
            "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
        }
    )

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        mtu = inputs.get("mtu")
        # Compute API reference of Network.mtu.
        if isinstance(mtu, int) and not 1300 <= mtu <= 8896:
            yield Problem("mtu", f"must lie between 1300 and 8896 (got {mtu}): Compute's limits")

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        number = numeric_id(place.id, now())
        return {**super().admit(cloud, place, inputs), "networkId": number, "numericId": number}

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        user = next(users_of_network(cloud, record.id), None)
        if user is not None:
            raise in_use("network", record.id, user.id)


class SubnetworkKind(ComputeKind):
    """`gcp.compute.Subnetwork`."""

    token = SUBNETWORK
    schema = ResourceSchema(Subnetwork, SubnetworkArgs)
    collection = "subnetworks"
    noun = "Subnetwork"
    scope = ("project", "region")
    defaults = MappingProxyType(
        {
            "purpose": "PRIVATE",
            "privateIpGoogleAccess": False,
            "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
            "secondaryIpRanges": [],
            "stackType": "IPV4_ONLY",
            "allowSubnetCidrRoutesOverlap": False,
            "deletionPolicy": "DELETE",
            "externalIpv6Prefix": "",
            "internalIpv6Prefix": "",
            "ipv6CidrRange": "",
            "ipv6GceEndpoint": "",
            "state": "READY",
        }
    )

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        for path, text in _ranges(inputs):
            try:
                network = ipaddress.IPv4Network(text)
            except ValueError as error:
                yield Problem(
                    path, f"must be an IPv4 range whose first address begins it (got {text}): {error}"
                )
                continue
            if network.prefixlen > 29:
                yield Problem(path, f"must be at least a /29 (got {text}): Compute's smallest subnet range")
        purpose, text = inputs.get("purpose"), known(inputs.get("ipCidrRange"))
        is_too_small = text is not None and int(text.rsplit("/", 1)[-1]) > _SMALLEST_PROXY_SUBNET
        if purpose in _PROXY_PURPOSES and is_too_small:
            yield Problem(
                "ipCidrRange", f"must be at least a /26 (got {text}): a proxy-only subnet needs 64 addresses"
            )

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        network = reference(inputs["network"], place.project, "networks")
        require(cloud, network, NETWORK)
        computed = super().admit(cloud, place, inputs)
        _refuse_overlaps(cloud, place, network, inputs)
        _refuse_second_proxy_subnet(cloud, place, network, inputs)
        first = ipaddress.IPv4Network(inputs["ipCidrRange"])[1]
        return {
            **computed,
            "subnetworkId": int(numeric_id(place.id, now())[:15]),
            "gatewayAddress": str(first),
            "creationTimestamp": now(),
            "fingerprint": opaque(place.id, length=12),
        }

    def refuse_update(self, cloud: Cloud, record: Record, inputs: Mapping[str, Any]) -> None:
        network = reference(inputs["network"], inputs["project"], "networks")
        _refuse_overlaps(cloud, self.place(inputs), network, inputs)
        old, new = (ipaddress.IPv4Network(item["ipCidrRange"]) for item in (record.inputs, inputs))
        if old != new and not old.subnet_of(new):
            # Wording: Compute's expandIpCidrRange.
            raise invalid_value("ipCidrRange", str(new), f"The new range must contain the old one, {old}.")

    def refuse_delete(self, cloud: Cloud, record: Record) -> None:
        for user in cloud.inventory.resources.values():
            value = user.inputs.get("subnetwork")
            path = value and reference(
                value, user.inputs["project"], "subnetworks", f"regions/{cloud.region.region}"
            )
            if path == record.id:
                raise in_use("subnetwork", record.id, user.id)


def _ranges(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if isinstance(inputs.get("ipCidrRange"), str):
        yield "ipCidrRange", inputs["ipCidrRange"]
    secondary = inputs.get("secondaryIpRanges")
    for index, item in enumerate(secondary if isinstance(secondary, list) else []):
        if isinstance(item, Mapping) and isinstance(item.get("ipCidrRange"), str):
            yield f"secondaryIpRanges[{index}].ipCidrRange", item["ipCidrRange"]


def _refuse_overlaps(cloud: Cloud, place: Place, network: str, inputs: Mapping[str, Any]) -> None:
    """Ranges of one network never overlap (wording: Compute API, widely quoted)."""
    taken: list[tuple[str, str, str]] = []
    for other in cloud.inventory.of_type(SUBNETWORK):
        if other.id != place.id and network_of(other) == network:
            taken += [(text, other.name, other.inputs["region"]) for _path, text in _ranges(other.inputs)]
    for _path, text in _ranges(inputs):
        for other_text, other_name, other_region in taken:
            if ipaddress.IPv4Network(text).overlaps(ipaddress.IPv4Network(other_text)):
                raise GoogleRefusal(
                    f"Invalid IPCidrRange: {text} conflicts with existing subnetwork '{other_name}' in region "
                    f"'{other_region}'.",
                    400,
                    "invalidIPCidrRange",
                )
        taken.append((text, place.name, str(place.location)))


def _refuse_second_proxy_subnet(cloud: Cloud, place: Place, network: str, inputs: Mapping[str, Any]) -> None:
    """Only one active proxy-only subnet a region of a network (Cloud Load Balancing guide); wording assumed."""
    if inputs.get("purpose") not in _PROXY_PURPOSES or inputs.get("role") != "ACTIVE":
        return
    for other in cloud.inventory.of_type(SUBNETWORK):
        if (
            network_of(other) == network
            and other.inputs.get("purpose") in _PROXY_PURPOSES
            and other.inputs.get("role") == "ACTIVE"
            and other.inputs["region"] == place.location
        ):
            raise invalid_value(
                "resource.role",
                "ACTIVE",
                f"There is already an active proxy-only subnetwork '{other.id}' in this region and network.",
            )


class FirewallKind(ComputeKind):
    """`gcp.compute.Firewall`."""

    token = FIREWALL
    schema = ResourceSchema(Firewall, FirewallArgs)
    collection = "firewalls"
    noun = "Firewall"
    defaults = MappingProxyType(
        {
            "direction": "INGRESS",
            "priority": 1000,
            "disabled": False,
            "destinationRanges": [],
            "enableLogging": False,
            "deletionPolicy": "DELETE",
        }
    )

    def own_problems(self, inputs: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().own_problems(inputs)
        if not inputs.get("allows") and not inputs.get("denies"):
            yield Problem("allows", "or `denies` must be given: a rule without either does nothing")
        sources = inputs.get("sourceRanges")
        for index, text in enumerate(sources if isinstance(sources, list) else []):
            try:
                ipaddress.ip_network(known(text) or "0.0.0.0/0")
            except ValueError as error:
                yield Problem(f"sourceRanges[{index}]", f"must be a range of addresses (got {text}): {error}")

    def admit(self, cloud: Cloud, place: Place, inputs: Mapping[str, Any]) -> dict[str, Any]:
        require(cloud, reference(inputs["network"], place.project, "networks"), NETWORK)
        return {**super().admit(cloud, place, inputs), "creationTimestamp": now()}
