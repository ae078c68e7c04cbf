"""Address ranges: what Google accepts, what overlaps, and how large each must be.

Owns IPv4 arithmetic for the subnet, its two secondary ranges and the proxy-only subnet. Refuses, with
`ValueError`, ranges that Google or GKE would refuse. Sources: VPC "valid ranges", GKE "IP address ranges for
VPC-native clusters", "proxy-only subnets" guides, seen 2026-12-01.
"""

from collections.abc import Iterable
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from facts.refusal import Refusal

CIDR: Final = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/([0-9]|[12][0-9]|3[0-2])$"

# Four addresses of a subnet's primary range are Google's own.
RESERVED_ADDRESSES: Final = 4
# A node's alias range is twice its pods, rounded up to a power of two: 110 pods → /24.
PODS_PER_NODE: Final = 110
# The proxy-only subnet must hold at least 64 addresses.
PROXY_LONGEST_PREFIX: Final = 26
# GKE takes a Services range from /16 to /27.
SERVICE_SHORTEST_PREFIX: Final = 16
SERVICE_LONGEST_PREFIX: Final = 27
# VPC subnets: at most /29, and MTU limits of a VPC network.
SUBNET_LONGEST_PREFIX: Final = 29
MTU_MINIMUM: Final = 1300
MTU_MAXIMUM: Final = 8896
# The codelab's value, which TPU hosts want: the largest that a VPC network carries.
MTU_TPU: Final = 8896

# What Google or GKE keeps for itself, or never routes.
_UNUSABLE: Final = {
    "0.0.0.0/8": "the current network",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local, where metadata and NodeLocal DNS answer",
    "172.17.0.0/16": "the container bridge of the nodes",
    "192.0.0.0/24": "kept by the IETF",
    "199.36.153.4/30": "restricted Google APIs",
    "199.36.153.8/30": "private Google APIs",
    "224.0.0.0/4": "multicast",
    "255.255.255.255/32": "broadcast",
}
_PRIVATE: Final = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "198.18.0.0/15",
    "240.0.0.0/4",
)


def parse(cidr: str) -> IPv4Network:
    """An IPv4 range, written by its first address."""
    try:
        network = ip_network(cidr, strict=False)
    except ValueError:
        network = None
    if not isinstance(network, IPv4Network) or "/" not in cidr:
        raise Refusal(
            "must be an IPv4 range such as 10.10.0.0/18",
            got=cidr,
            reason="it is no range"
            if network is None
            else "the length after the slash is missing"
            if isinstance(network, IPv4Network)
            else "the network is IPv4 only",
            way_out="Write the first address, a slash and the length.",
        )
    if str(network.network_address) != cidr.split("/", maxsplit=1)[0]:
        raise Refusal(
            "must be written by its first address",
            got=cidr,
            reason=f"{cidr.split('/', maxsplit=1)[0]} lies inside {network}",
            way_out=f"Write {network}.",
        )
    return network


def check_cidr(cidr: str) -> str:
    """The range, if a VPC subnet may use it."""
    network = parse(cidr)
    for unusable, whose in _UNUSABLE.items():
        if network.overlaps(ip_network(unusable)):
            raise Refusal(
                f"must not touch {unusable}",
                got=cidr,
                reason=f"that is {whose}",
                way_out="Take a private range, for instance from 10.0.0.0/8.",
            )
    return cidr


def is_private(cidr: str) -> bool:
    """True for a range that no public host answers to."""
    network = parse(cidr)
    return any(network.subnet_of(IPv4Network(private)) for private in _PRIVATE)


def check_control_plane_access(value: Any) -> Any:
    """`dns`, `public`, or the ranges that may reach the control plane's address."""
    if isinstance(value, str) and value not in ("dns", "public"):
        raise Refusal(
            "must be dns, public or a list of ranges",
            got=value,
            reason="it says who reaches the control plane",
            way_out=f"Write [{value}] for one range."
            if "/" in value
            else "Write dns, and IAM decides who enters.",
        )
    if isinstance(value, list):
        if not value:
            raise Refusal(
                "must name at least one range",
                got=value,
                reason="nobody, this program included, could reach the control plane",
                way_out="Write dns, and IAM decides who enters.",
            )
        for cidr in value:
            if isinstance(cidr, str) and parse(cidr).prefixlen == 0:
                raise Refusal(
                    "must not hold 0.0.0.0/0",
                    got=value,
                    reason="a list that lets everyone in only looks like a restriction",
                    way_out="Write public if that is meant.",
                )
    return value


def node_pod_prefix(pods_per_node: int = PODS_PER_NODE) -> int:
    """Length of the range that GKE gives one node for its pods."""
    addresses = 2 * pods_per_node
    return 32 - (addresses - 1).bit_length()


def nodes_in_subnet(cidr: str) -> int:
    """Nodes that a primary range has room for."""
    return parse(cidr).num_addresses - RESERVED_ADDRESSES


def nodes_in_pod_range(cidr: str, pods_per_node: int = PODS_PER_NODE) -> int:
    """Nodes whose pods a secondary range has room for."""
    prefix = node_pod_prefix(pods_per_node)
    return int(2 ** (prefix - parse(cidr).prefixlen)) if parse(cidr).prefixlen <= prefix else 0


def free_range(prefix: int, taken: Iterable[str]) -> str | None:
    """The first range of that length in 10.0.0.0/8 that overlaps none of those."""
    if prefix < 9:
        return None
    ranges = [parse(cidr) for cidr in taken]
    for candidate in IPv4Network("10.0.0.0/8").subnets(new_prefix=min(prefix, 16)):
        if not any(candidate.overlaps(other) for other in ranges):
            return f"{candidate.network_address}/{prefix}"
    return None


def overlap(first: str, second: str) -> bool:
    """True when two ranges share an address."""
    return parse(first).overlaps(parse(second))


def prefix_for(addresses: int) -> int:
    """Length of the smallest range with so many addresses."""
    return 32 - (addresses - 1).bit_length()
