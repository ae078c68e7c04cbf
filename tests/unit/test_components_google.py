"""Network, cluster and pools: what follows from a setting, and what protects reserved capacity."""

import pytest

from components.project_services import APIS
from facts import names
from tests.unit import plans

POOL = "slice-pools-tpu7-pool-1"


def with_network(**section):
    return plans.changed("local", network=section)


def cluster_of(**section):
    return plans.changed("local", cluster=section).named("cluster-cluster").inputs


# --- services ----------------------------------------------------------------------------------------------
def test_a_destroy_leaves_apis_and_the_view_of_ai_zones_to_others():
    found = plans.planned("local")
    assert all(
        service.inputs["disableOnDestroy"] is False
        for service in found.of_type("gcp:projects/service:Service")
    )
    assert found.named("services-ai-zones").options["retainOnDelete"] is True


def test_every_api_is_enabled_once():
    services = plans.planned("local").of_type("gcp:projects/service:Service")
    assert sorted(service.inputs["service"] for service in services) == sorted(
        f"{api}.googleapis.com" for api in APIS
    )


def test_only_an_ai_zone_asks_for_the_preview_feature():
    assert plans.planned("local").of_type("gcp:compute/previewFeature:PreviewFeature")
    assert not plans.planned("pathways").of_type("gcp:compute/previewFeature:PreviewFeature")


@pytest.mark.parametrize(
    "name", ["network-network", "cluster-node-account", "cluster-node-role", "cluster-cluster"]
)
def test_the_first_caller_of_an_api_waits_until_it_is_enabled_everywhere(name):
    assert plans.planned("local").named(name).options["onError"]


# --- network -----------------------------------------------------------------------------------------------
def test_the_firewall_opens_exactly_the_ranges_in_use():
    inputs = plans.planned("prod").named("network-firewall").inputs
    subnet = plans.planned("prod").named("network-subnet").inputs
    proxies = plans.planned("prod").named("network-proxy-subnet").inputs
    pods = next(r["ipCidrRange"] for r in subnet["secondaryIpRanges"] if r["rangeName"] == "pods")
    assert sorted(inputs["sourceRanges"]) == sorted([subnet["ipCidrRange"], pods, proxies["ipCidrRange"]])


@pytest.mark.parametrize(("private", "count"), [(True, 1), (False, 0)])
def test_nodes_without_public_addresses_get_a_way_out(private, count):
    found = plans.changed("local", cluster={"privateNodes": private})
    assert len(found.of_type("gcp:compute/routerNat:RouterNat")) == count


def test_of_an_existing_network_nothing_is_made_but_a_missing_proxy_only_subnet():
    found = with_network(existing={"network": "theirs", "subnet": "theirs-tpu"})
    assert [r.name for r in found.registrations.values() if r.name.startswith("network-")] == [
        "network-proxy-subnet"
    ]
    assert (
        found.named("network-proxy-subnet").inputs["network"] == "projects/sim-project/global/networks/theirs"
    )


def test_of_a_complete_existing_network_nothing_is_made():
    found = with_network(existing={"network": "theirs", "subnet": "theirs-tpu", "proxySubnet": True})
    assert not [r.name for r in found.registrations.values() if r.name.startswith("network-")]
    cluster = found.named("cluster-cluster").inputs
    assert cluster["subnetwork"] == "projects/sim-project/regions/us-central1/subnetworks/theirs-tpu"
    assert "clusterSecondaryRangeName" not in cluster["ipAllocationPolicy"]


def test_ranges_of_an_existing_subnet_are_used_by_name():
    found = with_network(
        existing={"network": "n", "subnet": "s", "proxySubnet": True, "podRange": "p", "serviceRange": "v"}
    )
    assert found.named("cluster-cluster").inputs["ipAllocationPolicy"] == {
        "clusterSecondaryRangeName": "p",
        "servicesSecondaryRangeName": "v",
    }


# --- cluster -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("access", "private_endpoint", "by_name", "by_address", "ranges"),
    [
        ("dns", False, True, False, None),
        ("public", False, False, True, None),
        (["10.0.0.0/8"], True, False, True, ["10.0.0.0/8"]),
        (["10.0.0.0/8", "34.1.0.0/24"], False, False, True, ["10.0.0.0/8", "34.1.0.0/24"]),
    ],
)
def test_the_control_plane_is_reached_as_the_stack_says_and_in_no_other_way(
    access, private_endpoint, by_name, by_address, ranges
):
    inputs = cluster_of(controlPlaneAccess=access)
    assert inputs["privateClusterConfig"]["enablePrivateEndpoint"] is private_endpoint
    endpoints = inputs["controlPlaneEndpointsConfig"]
    assert endpoints["dnsEndpointConfig"]["allowExternalTraffic"] is by_name
    assert endpoints["ipEndpointsConfig"]["enabled"] is by_address
    given = inputs.get("masterAuthorizedNetworksConfig")
    assert (given and [block["cidrBlock"] for block in given["cidrBlocks"]]) == ranges


def test_every_node_of_a_stack_is_hardened_alike():
    for stack in plans.STACKS:
        for pool in plans.planned(stack).of_type(plans.NODE_POOL):
            config = pool.inputs["nodeConfig"]
            assert config["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
            assert config["shieldedInstanceConfig"] == {
                "enableIntegrityMonitoring": True,
                "enableSecureBoot": True,
            }


@pytest.mark.parametrize("stack", plans.STACKS)
def test_every_node_runs_as_the_account_with_the_one_role_that_nodes_need(stack):
    found = plans.deployed(stack)
    (role,) = found.of_type("gcp:projects/iAMMember:IAMMember")
    assert role.inputs["role"] == "roles/container.defaultNodeServiceAccount"
    accounts = {pool.inputs["nodeConfig"]["serviceAccount"] for pool in found.of_type(plans.NODE_POOL)}
    assert {f"serviceAccount:{account}" for account in accounts} == {role.inputs["member"]}


def test_no_node_starts_before_its_account_has_its_role():
    found = plans.planned("local")
    for pool in found.of_type(plans.NODE_POOL):
        assert plans.dependents_first(found, pool.name, "cluster-node-role")


def test_a_long_cluster_name_still_gives_an_account_id_that_google_takes():
    name = "a-cluster-name-of-exactly-forty-letters1"
    account = plans.changed("local", cluster={"name": name}).named("cluster-node-account").inputs["accountId"]
    assert len(account) <= names.SERVICE_ACCOUNT_ID_LENGTH
    assert account.endswith("-nodes")


def test_cpu_nodes_never_go_to_an_ai_zone():
    for stack in plans.STACKS:
        found = plans.planned(stack)
        for holder in (found.named("cluster-cluster"), found.named("cluster-system-pool")):
            assert not [zone for zone in holder.inputs["nodeLocations"] if "-ai" in zone]


def test_the_slice_controller_add_on_is_on_exactly_where_slices_are_formed_on_demand():
    state = {
        stack: plans.planned(stack)
        .named("cluster-cluster")
        .inputs["addonsConfig"]["sliceControllerConfig"]["enabled"]
        for stack in plans.STACKS
    }
    assert state == {stack: stack != "pathways" for stack in plans.STACKS}


def test_a_stack_without_an_exclusion_sets_no_maintenance_policy():
    assert "maintenancePolicy" not in plans.planned("local").named("cluster-cluster").inputs


# --- capacity ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stack", plans.STACKS)
def test_what_holds_capacity_is_named_and_gone_before_its_replacement_comes(stack):
    found = plans.planned(stack)
    holders = [
        *found.of_type(plans.NODE_POOL),
        *found.of_type(plans.CLUSTER),
        *found.of_type("gcp:compute/resourcePolicy:ResourcePolicy"),
    ]
    assert holders
    for holder in holders:
        assert holder.inputs["name"] != recording_unknown()
        assert holder.options["deleteBeforeReplace"] is True


def recording_unknown():
    from ops.recording import UNKNOWN

    return UNKNOWN


@pytest.mark.parametrize("stack", plans.STACKS)
def test_googles_own_protection_of_the_cluster_follows_its_setting(stack):
    protected = bool(plans.config_of(stack).get("tpu-slices:cluster", {}).get("deletionProtection"))
    assert plans.planned(stack).named("cluster-cluster").inputs["deletionProtection"] is protected


def protected_in(found):
    tpu_pools = [pool for pool in found.of_type(plans.NODE_POOL) if pool.name != "cluster-system-pool"]
    return {
        holder.name for holder in [*tpu_pools, *found.of_type(plans.CLUSTER)] if holder.options.get("protect")
    }


RESERVED = {"cluster-cluster", "slice-pools-tpu7-pool-1", "slice-pools-tpu7-pool-2"}


def test_reserved_capacity_is_protected_unless_the_stack_may_lose_it():
    assert protected_in(plans.changed("local", safety={})) == RESERVED
    assert protected_in(plans.changed("local", safety={"mayLoseCapacity": True})) == set()


def test_deletion_protection_holds_even_where_capacity_may_be_lost():
    kept = plans.changed(
        "local",
        safety={"mayLoseCapacity": True},
        cluster={"name": "tpu-serving-cluster", "deletionProtection": True},
    )
    assert protected_in(kept) == RESERVED


def test_pools_on_demand_are_protected_only_with_their_cluster():
    pools = [
        {"name": "on-demand", "machineType": "ct6e-standard-4t", "topology": "2x4"},
        {
            "name": "reserved",
            "machineType": "ct6e-standard-4t",
            "topology": "2x4",
            "reservation": {"name": "r"},
        },
    ]
    assert protected_in(plans.changed("pathways", multihostPools=pools)) == {
        "cluster-cluster",
        "multihost-pools-reserved",
    }
    assert protected_in(plans.changed("pathways", multihostPools=pools[:1])) == set()


def cubes(count, **reservation):
    return plans.changed(
        "local",
        slicePools=[{"name": "tpu7-pool", "cubes": count, "reservation": {"name": "r", **reservation}}],
    )


def test_one_cube_more_adds_a_pool_and_changes_none():
    before, after = cubes(2).registrations, cubes(3).registrations
    added = set(after) - set(before)
    assert [after[urn].name for urn in added] == ["slice-pools-tpu7-pool-3"]
    changed = [
        urn
        for urn in before
        if before[urn].inputs != after[urn].inputs and "NodePool" in before[urn].type_token
    ]
    assert changed == []


def test_each_cube_is_bound_to_its_own_sub_block():
    found = plans.planned("prod")
    values = [
        found.named(f"slice-pools-tpu7-pool-{index}").inputs["nodeConfig"]["reservationAffinity"]["values"]
        for index in range(1, 5)
    ]
    base = "projects/example-capacity/reservations/tpu7x-shared/reservationBlocks/tpu7x-shared-block-0001"
    assert values == [
        [f"{base}/reservationSubBlocks/tpu7x-shared-block-0001-subblock-{index:04}"] for index in range(1, 5)
    ]


def test_gkes_own_words_about_placement_cause_no_change_later():
    assert plans.planned("local").named(POOL).options["ignoreChanges"] == [
        "placementPolicy.tpuTopology",
        "placementPolicy.type",
    ]


def test_a_pool_of_many_hosts_never_asks_for_more_at_once_than_the_api_takes():
    big = plans.changed("pathways", multihostPools=[{"name": "big", "topology": "16x16"}])
    settings = big.named("multihost-pools-big").inputs["upgradeSettings"]
    assert big.named("multihost-pools-big").inputs["nodeCount"] == 64
    assert settings["maxSurge"] + settings["maxUnavailable"] <= 20


def test_a_reserved_static_slice_takes_its_reservation_and_no_other_capacity():
    pool = {"name": "held", "topology": "4x4", "reservation": {"name": "v6e-res", "project": "owner-project"}}
    config = (
        plans.changed("pathways", multihostPools=[pool]).named("multihost-pools-held").inputs["nodeConfig"]
    )
    assert config["reservationAffinity"]["values"] == ["projects/owner-project/reservations/v6e-res"]
    assert "spot" not in config


def test_a_spot_slice_is_spot():
    pool = {"name": "cheap", "topology": "2x4", "spot": True}
    config = (
        plans.changed("pathways", multihostPools=[pool]).named("multihost-pools-cheap").inputs["nodeConfig"]
    )
    assert config["spot"] is True
    assert "reservationAffinity" not in config


def test_pools_of_both_kinds_live_in_one_stack():
    found = plans.changed("local", multihostPools=[{"name": "multihost-np", "topology": "4x4"}])
    assert found.named("multihost-pools-multihost-np")
    assert found.named(POOL)
