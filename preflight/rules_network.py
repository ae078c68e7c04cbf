"""Rules of the network: ranges that overlap nothing and hold every node, pod and Service.

Owns what follows from the addresses alone. Refuses to judge an existing network's ranges: only Google knows them.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import combinations
from typing import TYPE_CHECKING

from facts import locations, networks
from facts.refusal import Refusal

if TYPE_CHECKING:
    from settings import Network, Settings

Found = Iterator[tuple[str, Refusal]]

_KEYS = {
    "subnet_cidr": "subnetCidr",
    "proxy_cidr": "proxyCidr",
    "pod_cidr": "podCidr",
    "service_cidr": "serviceCidr",
}


def _ranges(network: "Network") -> dict[str, str]:
    """Key in YAML → range, of the ranges that we make."""
    made = {key: getattr(network, name) for name, key in _KEYS.items()}
    if network.existing is not None:
        del made["subnetCidr"]
        if network.existing.proxy_subnet:
            del made["proxyCidr"]
        if network.existing.pod_range:
            del made["podCidr"]
        if network.existing.service_range:
            del made["serviceCidr"]
    return made


def ranges_overlap_nothing(settings: "Settings", _now: datetime) -> Found:
    """No two ranges share an address, and the control plane may only be reached from somewhere else."""
    made = _ranges(settings.network)
    for (first, first_cidr), (second, second_cidr) in combinations(made.items(), 2):
        if networks.overlap(first_cidr, second_cidr):
            free = networks.free_range(networks.parse(second_cidr).prefixlen, made.values())
            yield (
                f"network.{second}",
                Refusal(
                    f"must not overlap `{first}`",
                    got=f"{second_cidr}, which shares addresses with {first_cidr}",
                    reason="a VPC network routes every address to one place",
                    way_out=f"Use for instance {free}." if free else "Shrink or move one of them.",
                ),
            )


def ranges_are_large_enough(settings: "Settings", _now: datetime) -> Found:
    """One primary address and one pod range a node, 64 proxy addresses, a Services range that GKE takes."""
    made = _ranges(settings.network)
    nodes = node_count(settings)
    if "subnetCidr" in made and networks.nodes_in_subnet(made["subnetCidr"]) < nodes:
        yield (
            "network.subnetCidr",
            Refusal(
                f"must hold {nodes} nodes",
                got=f"{made['subnetCidr']}, room for {max(0, networks.nodes_in_subnet(made['subnetCidr']))}",
                reason=f"every node takes one address, and Google keeps {networks.RESERVED_ADDRESSES}",
                way_out=f"Use a /{networks.prefix_for(nodes + networks.RESERVED_ADDRESSES)} or wider.",
            ),
        )
    if "podCidr" in made and networks.nodes_in_pod_range(made["podCidr"]) < nodes:
        each = networks.node_pod_prefix()
        yield (
            "network.podCidr",
            Refusal(
                f"must hold the pods of {nodes} nodes",
                got=f"{made['podCidr']}, room for {networks.nodes_in_pod_range(made['podCidr'])}",
                reason=f"GKE gives every node a /{each} for {networks.PODS_PER_NODE} pods",
                way_out=f"Use a /{each - (nodes - 1).bit_length()} or wider.",
            ),
        )
    if "serviceCidr" in made:
        length = networks.parse(made["serviceCidr"]).prefixlen
        shortest, longest = networks.SERVICE_SHORTEST_PREFIX, networks.SERVICE_LONGEST_PREFIX
        if not shortest <= length <= longest:
            yield (
                "network.serviceCidr",
                Refusal(
                    f"must be a /{shortest} to /{longest}",
                    got=made["serviceCidr"],
                    reason="GKE takes no other Services range",
                    way_out="A /20 holds 4096 Services.",
                ),
            )
    if "proxyCidr" in made and networks.parse(made["proxyCidr"]).prefixlen > networks.PROXY_LONGEST_PREFIX:
        yield (
            "network.proxyCidr",
            Refusal(
                f"must be a /{networks.PROXY_LONGEST_PREFIX} or wider",
                got=made["proxyCidr"],
                reason="a proxy-only subnet needs 64 addresses, and without it no internal Gateway gets one",
                way_out="The codelab uses 172.16.0.0/26.",
            ),
        )


def node_count(settings: "Settings") -> int:
    """Nodes of all pools, and one more: GKE replaces a system node by a new one."""
    pool = settings.cluster.system_pool
    zones = len(pool.zones) or len(locations.default_system_zones(settings.region)) or 3
    hosts = sum(entry.host_count for entry in settings.slice_pools)
    hosts += sum(entry.host_count for entry in settings.multihost_pools)
    return pool.node_count * zones + hosts + 1


def existing_networks_are_not_described_twice(settings: "Settings", _now: datetime) -> Found:
    """What belongs to an existing network is read from it, never set."""
    network = settings.network
    if network.existing is None:
        return
    existing = network.existing
    owned = {"mtu": "network", "subnet_cidr": "subnet"}
    if existing.proxy_subnet:
        owned["proxy_cidr"] = "proxySubnet"
    if existing.pod_range:
        owned["pod_cidr"] = "podRange"
    if existing.service_range:
        owned["service_cidr"] = "serviceRange"
    for name, owner in owned.items():
        if name in network.model_fields_set:
            yield (
                f"network.{_KEYS.get(name, name)}",
                Refusal(
                    f"must not be set beside `existing.{owner}`",
                    got=getattr(network, name),
                    reason="it is given with the network that exists already",
                    way_out=f"Remove it, or remove `existing.{owner}` and let the program make its own.",
                ),
            )
