"""Networks, subnets, firewalls, routers: what Compute computes and what it refuses."""

from tests.fakes.cloud_region import NETWORK, SUBNET, in_region, refusal_of

PROXY = {
    "name": "proxy",
    "network": "qwen-serving-main",
    "ipCidrRange": "172.16.0.0/26",
    "purpose": "REGIONAL_MANAGED_PROXY",
    "role": "ACTIVE",
}
NAT = {
    "name": "nat",
    "router": "router",
    "natIpAllocateOption": "AUTO_ONLY",
    "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
    "subnetworks": [{"name": "qwen-serving-tpu", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}],
}


@in_region()
async def test_ids_and_self_links_have_googles_forms(region):
    await region.apis()
    await region.network()
    assert region.vpc.id == "projects/sim-project/global/networks/qwen-serving-main"
    assert region.vpc.outputs["selfLink"] == f"https://www.googleapis.com/compute/v1/{region.vpc.id}"
    assert region.subnet.id == "projects/sim-project/regions/us-central1/subnetworks/qwen-serving-tpu"
    assert region.subnet.outputs["gatewayAddress"] == "10.10.0.1"


@in_region()
async def test_nothing_is_made_while_its_api_is_off(region):
    said = await refusal_of(region.create("Network", NETWORK))
    assert "compute.googleapis.com has not been used in project 100000000001 before or it is disabled" in said
    assert "Error 403" in said
    assert region.cloud.inventory.resources == {}


@in_region(lambda document: document["knobs"].update(propagationSeconds=60))
async def test_an_api_switched_on_a_moment_ago_is_still_refused(region):
    await region.create("Service", {"service": "compute.googleapis.com"})
    assert "has not been used in project" in await refusal_of(region.create("Network", NETWORK))


@in_region()
async def test_a_taken_name_is_a_conflict(region):
    await region.apis()
    await region.network()
    said = await refusal_of(region.create("Network", NETWORK, "another"))
    assert "Error 409" in said
    assert "already exists" in said


@in_region()
async def test_ranges_of_one_network_never_overlap(region):
    await region.apis()
    await region.network()
    overlapping = {"name": "second", "network": SUBNET["network"], "ipCidrRange": "10.65.0.0/24"}
    said = await refusal_of(region.create("Subnetwork", overlapping))
    assert (
        "10.65.0.0/24 conflicts with existing subnetwork 'qwen-serving-tpu' in region 'us-central1'" in said
    )


@in_region()
async def test_a_range_that_overlaps_itself_is_refused(region):
    await region.apis()
    await region.create("Network", NETWORK)
    ranges = [{"rangeName": "pods", "ipCidrRange": "10.10.32.0/20"}]
    assert "conflicts" in await refusal_of(
        region.create("Subnetwork", {**SUBNET, "secondaryIpRanges": ranges})
    )


@in_region()
async def test_a_region_of_a_network_has_one_active_proxy_only_subnet(region):
    await region.apis()
    await region.network()
    await region.create("Subnetwork", PROXY)
    second = {**PROXY, "name": "second", "ipCidrRange": "172.17.0.0/26"}
    assert "already an active proxy-only subnetwork" in await refusal_of(region.create("Subnetwork", second))


@in_region()
async def test_a_subnet_of_a_network_that_is_not_there_is_refused(region):
    await region.apis()
    assert "Error 404" in await refusal_of(region.create("Subnetwork", SUBNET))


@in_region()
async def test_a_network_goes_only_after_everything_in_it(region):
    await region.apis()
    await region.network()
    said = await refusal_of(region.delete("Network", region.vpc))
    assert f"is already being used by '{region.subnet.id}'" in said
    await region.delete("Subnetwork", region.subnet)
    await region.delete("Network", region.vpc)
    assert region.cloud.inventory.resources == {}


@in_region()
async def test_a_subnet_range_grows_and_never_shrinks(region):
    await region.apis()
    await region.network()
    shrunk = {**SUBNET, "ipCidrRange": "10.10.0.0/20", "project": "sim-project", "region": "us-central1"}
    assert "must contain the old one" in await refusal_of(region.update("Subnetwork", region.subnet, shrunk))
    grown = await region.update("Subnetwork", region.subnet, {**shrunk, "ipCidrRange": "10.10.0.0/16"})
    assert grown.outputs["ipCidrRange"] == "10.10.0.0/16"


@in_region()
async def test_a_subnet_has_one_nat(region):
    await region.apis()
    await region.network()
    await region.create("Router", {"name": "router", "network": "qwen-serving-main"})
    nat = await region.create("RouterNat", NAT)
    assert nat.id == "sim-project/us-central1/router/nat"
    assert "already configured for NAT" in await refusal_of(
        region.create("RouterNat", {**NAT, "name": "second"})
    )


@in_region()
async def test_what_is_wrong_by_itself_is_told_before_anything_is_made(region):
    assert region.check("Network", {"name": "Upper_Case"}) == ["name"]
    assert region.check("Network", {"name": "net", "mtu": 9000}) == ["mtu"]
    assert region.check("Subnetwork", {**SUBNET, "ipCidrRange": "10.10.0.1/18"}) == ["ipCidrRange"]
    assert region.check("Subnetwork", {**PROXY, "ipCidrRange": "172.16.0.0/27"}) == ["ipCidrRange"]
    assert region.check("Firewall", {"name": "wall", "network": "net"}) == ["allows"]
    assert region.check("RouterNat", {**NAT, "subnetworks": []}) == ["subnetworks"]
    assert region.check("Network", {"name": "net", "subnetworks": []}) == ["subnetworks"]
