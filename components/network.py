"""The VPC network: TPU subnet, proxy-only subnet, internal firewall, way out for private nodes.

Owns the ranges that the cluster draws on. Given an existing network it makes nothing of it, except the proxy-only
subnet where there is none yet. Refuses to open more than the ranges that are in use: the codelab lets in all of
10.0.0.0/8 and 172.16.0.0/12.
"""

from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from components import readiness
from facts import names

PODS_RANGE = "pods"
SERVICES_RANGE = "services"


@dataclass(frozen=True, kw_only=True)
class ExistingNetworkArgs:
    """A network that somebody else owns."""

    network: str
    """Name of the VPC network."""
    subnet: str
    """Name of the subnet."""
    proxy_subnet: bool
    """True when the region has its proxy-only subnet already: there can be only one a network."""
    pod_range: str | None
    """Name of the secondary range for pods; None lets GKE make one."""
    service_range: str | None
    """Name of the secondary range for Services; None lets GKE make one."""


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What `Network` is told."""

    project: str
    region: str
    prefix: str
    """Begins the name of every network resource."""
    mtu: int
    subnet_cidr: str
    proxy_cidr: str
    pod_cidr: str
    service_cidr: str
    needs_nat: bool
    """True for nodes without public addresses: images come from registries outside Google."""
    existing: ExistingNetworkArgs | None = None


class Network(pulumi.ComponentResource):
    """A network that a private GKE cluster with internal load balancers can stand in."""

    network: pulumi.Output[str]
    """Self link of the VPC network."""
    subnet: pulumi.Output[str]
    """Self link of the TPU subnet."""
    pod_range: pulumi.Output[str | None]
    """Name of the secondary range for pods."""
    service_range: pulumi.Output[str | None]
    """Name of the secondary range for Services."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-slices:index:Network", name, {}, opts)

        if args.existing is None:
            self._make(name, args)
        else:
            self._take(name, args, args.existing)
        self.register_outputs(
            {
                "network": self.network,
                "subnet": self.subnet,
                "pod_range": self.pod_range,
                "service_range": self.service_range,
            }
        )

    def _make(self, name: str, args: NetworkArgs) -> None:
        called = names.network_names(args.prefix)
        network = gcp.compute.Network(
            f"{name}-network",
            project=args.project,
            name=called["network"],
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=args.mtu,
            opts=pulumi.ResourceOptions(
                parent=self, hooks=readiness.ask_until(f"{name}-compute-api", readiness.ENABLED_API)
            ),
        )
        subnet = gcp.compute.Subnetwork(
            f"{name}-subnet",
            project=args.project,
            region=args.region,
            network=network.self_link,
            name=called["subnet"],
            ip_cidr_range=args.subnet_cidr,
            private_ip_google_access=True,
            # Named by us: ranges that GKE makes have names and sizes that nobody chose.
            secondary_ip_ranges=[
                {"range_name": PODS_RANGE, "ip_cidr_range": args.pod_cidr},
                {"range_name": SERVICES_RANGE, "ip_cidr_range": args.service_cidr},
            ],
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._proxy_subnet(name, args, network.self_link)
        gcp.compute.Firewall(
            f"{name}-firewall",
            project=args.project,
            network=network.self_link,
            name=called["firewall"],
            description="internal traffic",
            direction="INGRESS",
            allows=[{"protocol": "all"}],
            # Nodes, pods and load balancers' proxies. GKE puts the control plane's own address into the subnet
            # (Private Service Connect), so this is also its way to webhook ports such as 9443.
            source_ranges=[args.subnet_cidr, args.pod_cidr, args.proxy_cidr],
            opts=pulumi.ResourceOptions(parent=self),
        )
        if args.needs_nat:
            router = gcp.compute.Router(
                f"{name}-router",
                project=args.project,
                region=args.region,
                network=network.self_link,
                name=called["router"],
                opts=pulumi.ResourceOptions(parent=self),
            )
            gcp.compute.RouterNat(
                f"{name}-nat",
                project=args.project,
                region=args.region,
                router=router.name,
                name=called["nat"],
                nat_ip_allocate_option="AUTO_ONLY",
                source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
                subnetworks=[{"name": subnet.self_link, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
                log_config={"enable": True, "filter": "ERRORS_ONLY"},
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.network = network.self_link
        self.subnet = subnet.self_link
        self.pod_range = pulumi.Output.from_input(PODS_RANGE)
        self.service_range = pulumi.Output.from_input(SERVICES_RANGE)

    def _take(self, name: str, args: NetworkArgs, existing: ExistingNetworkArgs) -> None:
        base = f"projects/{args.project}"
        self.network = pulumi.Output.from_input(f"{base}/global/networks/{existing.network}")
        self.subnet = pulumi.Output.from_input(f"{base}/regions/{args.region}/subnetworks/{existing.subnet}")
        self.pod_range = pulumi.Output.from_input(existing.pod_range)
        self.service_range = pulumi.Output.from_input(existing.service_range)
        if not existing.proxy_subnet:
            self._proxy_subnet(name, args, self.network)

    def _proxy_subnet(self, name: str, args: NetworkArgs, network: pulumi.Input[str]) -> None:
        # Internal Gateways take their proxies' addresses from here; without it they never get an address.
        gcp.compute.Subnetwork(
            f"{name}-proxy-subnet",
            project=args.project,
            region=args.region,
            network=network,
            name=names.network_names(args.prefix)["proxy_subnet"],
            ip_cidr_range=args.proxy_cidr,
            purpose="REGIONAL_MANAGED_PROXY",
            role="ACTIVE",
            opts=pulumi.ResourceOptions(parent=self),
        )
