"""Node pools: capacity of a reservation, and every refusal of GKE and Compute Engine that people have met."""

import pytest

from tests.fakes.cloud_region import BLOCK, POLICY, in_region, refusal_of, system_pool, tpu_pool, v6e_pool

SUB_BLOCK_1 = f"{BLOCK}/reservationSubBlocks/block-0-subblock-0001"
SUB_BLOCK_2 = f"{BLOCK}/reservationSubBlocks/block-0-subblock-0002"


def node_config(pool, **changes):
    return {**pool, "nodeConfig": {**pool["nodeConfig"], **changes}}


def sub_block(document, index):
    return document["reservations"][0]["blocks"][0]["subBlocks"][index]


@in_region()
async def test_two_pools_of_a_block_get_a_cube_each_and_a_third_gets_none(region):
    await region.cubes()
    for number in (1, 2):
        await region.create("NodePool", tpu_pool(number))
    cubes = {record.computed["placement"]["sub_block"] for record in pools(region)}
    assert cubes == {"block-0-subblock-0001", "block-0-subblock-0002"}
    said = await refusal_of(region.create("NodePool", tpu_pool(3)))
    assert (
        'specific reservation "tpu7-reservation" is insufficient for node pool "tpu7-pool-3" at zone' in said
    )
    assert "Error 429" in said


def pools(region):
    return [record for record in region.cloud.inventory.resources.values() if "NodePool" in record.type]


@in_region()
async def test_a_named_sub_block_is_the_one_that_the_pool_gets_and_it_is_given_once(region):
    await region.cubes()
    await region.create("NodePool", tpu_pool(1, SUB_BLOCK_2))
    assert pools(region)[0].computed["placement"]["sub_block"] == "block-0-subblock-0002"
    assert "insufficient" in await refusal_of(region.create("NodePool", tpu_pool(2, SUB_BLOCK_2)))


@in_region()
async def test_a_deleted_pool_gives_its_cube_back(region):
    await region.cubes()
    pool = await region.create("NodePool", tpu_pool(1, SUB_BLOCK_1))
    await region.delete("NodePool", pool)
    await region.create("NodePool", tpu_pool(2, SUB_BLOCK_1))


@pytest.mark.parametrize(
    "value",
    [
        "projects/sim-project/reservations/another/reservationBlocks/block-0",
        "projects/sim-project/reservations/tpu7-reservation/reservationBlocks/block-7",
        f"{BLOCK}/reservationSubBlocks/nowhere",
        "projects/other-project/reservations/tpu7-reservation/reservationBlocks/block-0",
        "projects/sim-project/zones/us-central1-ai1a/reservations/tpu7-reservation",
        "block-0/tpu7-reservation",
    ],
)
def test_a_value_that_leads_to_no_reservation_is_not_found(value, tmp_path):
    @in_region()
    async def case(region):
        await region.cubes()
        said = await refusal_of(region.create("NodePool", tpu_pool(1, value)))
        assert 'not found for node pool "tpu7-pool-1" at zone "us-central1-ai1a"' in said
        assert "Error 404" in said

    case(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        "tpu7-reservation",
        "tpu7-reservation/reservationBlocks/block-0",
        "tpu7-reservation/reservationBlocks/block-0/reservationSubBlocks/block-0-subblock-0001",
        "projects/sim-project/reservations/tpu7-reservation",
        BLOCK,
        SUB_BLOCK_1,
    ],
)
def test_every_form_that_gke_takes_leads_to_the_reservation(value, tmp_path):
    @in_region()
    async def case(region):
        await region.cubes()
        await region.create("NodePool", tpu_pool(1, value))

    case(tmp_path)


def owned_by_another(document, *, shared):
    document["projects"].append({"id": "owner-project", "number": "100000000002"})
    document["reservations"][0]["project"] = "owner-project"
    document["reservations"][0]["sharedWith"] = ["sim-project"] if shared else []


@in_region(lambda document: owned_by_another(document, shared=True))
async def test_a_shared_reservation_is_found_by_its_owner_and_a_block_without_owner_is_not(region):
    await region.cubes()
    said = await refusal_of(region.create("NodePool", tpu_pool(1)))
    assert 'reservation "tpu7-reservation/reservationBlocks/block-0" not found' in said
    await region.create("NodePool", tpu_pool(1, BLOCK.replace("sim-project", "owner-project")))


@in_region(lambda document: owned_by_another(document, shared=False))
async def test_a_reservation_that_is_not_shared_with_us_is_not_found(region):
    await region.cubes()
    value = BLOCK.replace("sim-project", "owner-project")
    assert "not found" in await refusal_of(region.create("NodePool", tpu_pool(1, value)))


@in_region(lambda document: document["reservations"][0].update(endTime="2026-01-01T00:00:00Z"))
async def test_a_reservation_whose_time_is_over_is_not_found(region):
    await region.cubes()
    assert "not found" in await refusal_of(region.create("NodePool", tpu_pool(1)))


@in_region(lambda document: sub_block(document, 0).update(inUseHostCount=1))
async def test_a_cube_that_others_use_in_part_is_not_free(region):
    await region.cubes()
    assert "insufficient" in await refusal_of(region.create("NodePool", tpu_pool(1, SUB_BLOCK_1)))


@in_region(lambda document: sub_block(document, 0).update(unhealthyHosts=[3]))
async def test_a_whole_cube_goes_before_one_with_a_dead_host_and_that_one_comes_up_short(region):
    await region.cubes()
    await region.create("NodePool", tpu_pool(1))
    await region.create("NodePool", tpu_pool(2))
    assert len(region.pool_file("tpu7-pool-1")["hosts"]) == 16
    assert len(region.pool_file("tpu7-pool-2")["hosts"]) == 15


@in_region(lambda document: document["reservations"][0].update(maintenanceInterval="PERIODIC"))
async def test_the_maintenance_interval_is_the_reservations(region):
    await region.cubes()
    wrong = node_config(tpu_pool(1), hostMaintenancePolicy={"maintenanceInterval": "AS_NEEDED"})
    assert "is incorrect for the requested resources" in await refusal_of(region.create("NodePool", wrong))
    right = node_config(tpu_pool(1), hostMaintenancePolicy={"maintenanceInterval": "PERIODIC"})
    await region.create("NodePool", right)


@in_region()
async def test_compact_placement_of_tpu7x_fails_later_and_leaves_the_pool_in_error(region):
    await region.cubes()
    said = await refusal_of(region.create("NodePool", tpu_pool(1, placementPolicy={"type": "COMPACT"})))
    assert said == (
        "Creation of a managed instance group with tpu7x-standard-4t machine type with placement policy is not "
        "supported. Use workload policy instead."
    )
    [record] = pools(region)
    assert record.state == "ERROR"
    assert record.computed.get("placement") is None


@in_region()
async def test_a_gang_has_one_size(region):
    await region.cubes()
    said = await refusal_of(region.create("NodePool", tpu_pool(1, nodeCount=8)))
    assert (
        "Requested invalid target size '8' for a Managed Instance Group in the gang mode of size '16'" in said
    )


@in_region()
async def test_a_policy_that_is_not_there_is_refused(region):
    await region.cubes()
    placement = {"type": "", "policyName": "another-policy"}
    said = await refusal_of(region.create("NodePool", tpu_pool(1, placementPolicy=placement)))
    assert "resourcePolicies/another-policy was not found" in said
    assert "invalidArgument" in said


@in_region()
async def test_a_policy_without_topology_does_not_go_with_a_topology(region):
    await region.cubes()
    loose = {"name": "loose", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}}
    await region.create("ResourcePolicy", loose)
    placement = {"type": "", "policyName": "loose", "tpuTopology": "4x4x4"}
    said = await refusal_of(region.create("NodePool", tpu_pool(1, placementPolicy=placement)))
    assert (
        "does not support TPU topology with group placement policy and workload policy at the same time"
        in said
    )


@in_region()
async def test_tpu7x_needs_a_workload_policy(region):
    await region.cubes()
    pool = tpu_pool(1)
    del pool["placementPolicy"]
    assert "requires a workload policy" in await refusal_of(region.create("NodePool", pool))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodeConfig": {"machineType": "tpu7x-standard-4t"}}, "requires a specific reservation"),
        (
            {"queuedProvisioning": {"enabled": True}},
            "Queued_provisioning requires reservation affinity to be set to none",
        ),
        ({"autoscaling": {"maxNodeCount": 16}}, "cannot be used with autoscaling"),
        ({"nodeLocations": ["us-central1-ai1a", "us-central1-b"]}, "must have exactly one zone"),
        ({"nodeLocations": ["us-central1-ai9z"]}, "Unknown zone"),
        ({"version": "1.36.1-gke.1204000"}, "must not have a greater version than master"),
        ({"version": "1.30.0-gke.1"}, 'Node version "1.30.0-gke.1" is unsupported.'),
        ({"cluster": "another"}, "Not found"),
    ],
)
def test_provision_only_pools_are_refused_what_does_not_go_with_them(change, words, tmp_path):
    @in_region()
    async def case(region):
        await region.cubes()
        assert words in await refusal_of(region.create("NodePool", tpu_pool(1, **change)))

    case(tmp_path)


@pytest.mark.parametrize("name", ["spot", "flexStart"])
def test_reserved_hosts_are_neither_spot_nor_flex(name, tmp_path):
    @in_region()
    async def case(region):
        await region.cubes()
        said = await refusal_of(region.create("NodePool", node_config(tpu_pool(1), **{name: True})))
        assert f"cannot be used with {name}" in said

    case(tmp_path)


@in_region()
async def test_an_ai_zone_is_unknown_until_the_preview_feature_is_on(region):
    await region.cubes()
    feature = {"name": "ai-zones-visibility", "activationStatus": "DISABLED", "project": "sim-project"}
    answer = await region.read(
        "PreviewFeature", "projects/sim-project/global/previewFeatures/ai-zones-visibility"
    )
    await region.update("PreviewFeature", answer, feature)
    said = await refusal_of(region.create("NodePool", tpu_pool(1)))
    assert "Invalid value for field 'zone': 'us-central1-ai1a'. Unknown zone." in said


@in_region()
async def test_ordinary_machines_have_no_place_in_an_ai_zone(region):
    await region.cluster()
    said = await refusal_of(region.create("NodePool", system_pool(nodeLocations=["us-central1-ai1a"])))
    assert "AI zones hold accelerator machines" in said


@in_region()
async def test_an_unknown_machine_type_is_refused(region):
    await region.cluster()
    said = await refusal_of(
        region.create("NodePool", system_pool(nodeConfig={"machineType": "n2-standrad-32"}))
    )
    assert "Machine type with name 'n2-standrad-32' does not exist" in said


@in_region()
async def test_a_node_service_account_must_exist(region):
    await region.cluster()
    config = {"machineType": "n2-standard-32", "serviceAccount": "nodes@sim-project.iam.gserviceaccount.com"}
    assert "does not exist" in await refusal_of(region.create("NodePool", system_pool(nodeConfig=config)))
    await region.create("Account", {"accountId": "nodes-of-x"})
    config["serviceAccount"] = "nodes-of-x@sim-project.iam.gserviceaccount.com"
    await region.create("NodePool", system_pool(nodeConfig=config))


@in_region()
async def test_v6e_chips_on_demand_count_against_the_quota(region):
    await region.cluster()
    await region.create("NodePool", v6e_pool("one"))
    await region.create("NodePool", v6e_pool("two"))
    said = await refusal_of(region.create("NodePool", v6e_pool("three")))
    assert "Insufficient regional quota to satisfy request" in said
    assert "requires '16.0' and is short '16.0'" in said


@in_region()
async def test_a_single_host_slice_takes_no_topology(region):
    await region.cluster()
    said = await refusal_of(region.create("NodePool", v6e_pool(topology="2x2", count=1)))
    assert "TPU topology can't be specified with single-host TPU slice pool" in said


@in_region()
async def test_a_v6e_topology_has_its_hosts(region):
    await region.cluster()
    assert "in the gang mode of size '2'" in await refusal_of(
        region.create("NodePool", v6e_pool(topology="2x4"))
    )
    assert "3x3 is not supported" in await refusal_of(
        region.create("NodePool", v6e_pool("odd", topology="3x3"))
    )


@in_region()
async def test_a_policy_in_use_stays(region):
    await region.cubes()
    pool = await region.create("NodePool", tpu_pool(1))
    assert f"is already being used by '{pool.id}'" in await refusal_of(
        region.delete("ResourcePolicy", region.policy)
    )
    await region.delete("NodePool", pool)
    await region.delete("ResourcePolicy", region.policy)


@in_region()
async def test_a_region_has_one_workload_policy_of_a_topology(region):
    await region.cubes()
    said = await refusal_of(region.create("ResourcePolicy", {**POLICY, "name": "second"}, "second"))
    assert "already exists in this region" in said


@in_region()
async def test_policies_are_judged_before_they_are_made(region):
    def paths(**policy):
        return region.check("ResourcePolicy", {"name": "policy", "workloadPolicy": policy})

    assert paths(type="HIGH_AVAILABILITY", acceleratorTopologyMode="PROVISION_ONLY") == [
        "workloadPolicy.acceleratorTopologyMode"
    ]
    mixed = paths(type="HIGH_THROUGHPUT", acceleratorTopology="4x4x4", maxTopologyDistance="BLOCK")
    assert mixed == ["workloadPolicy.maxTopologyDistance"]
    assert paths(type="HIGH_THROUGHPUT", acceleratorTopologyMode="PROVISION") == [
        "workloadPolicy.acceleratorTopologyMode"
    ]


@in_region()
async def test_a_pool_with_active_slices_stays_and_the_message_names_them(region):
    await region.cubes()
    pool = await region.create("NodePool", tpu_pool(1))
    region.cluster_side.slices["tpu7-pool-1"] = ["ns-job-0"]
    clusters = region.cloud.clusters
    await clusters._until(lambda: clusters.active_slices("tpu-serving-cluster", "tpu7-pool-1"), "no slices")
    said = await refusal_of(region.delete("NodePool", pool))
    assert "Node pool tpu7-pool-1 cannot be deleted: slices ns-job-0 are active on its nodes" in said
    region.cluster_side.slices.clear()
    await clusters._until(lambda: not clusters.active_slices("tpu-serving-cluster", "tpu7-pool-1"), "slices")
    await region.delete("NodePool", pool)
    assert region.pool_file("tpu7-pool-1") is None


@in_region()
async def test_the_names_and_addresses_of_a_pool_have_googles_forms(region):
    await region.cubes()
    pool = await region.create("NodePool", tpu_pool(1))
    assert pool.id == f"{region.made_cluster.id}/nodePools/tpu7-pool-1"
    [manager] = pool.outputs["instanceGroupUrls"]
    assert manager.startswith(
        "https://www.googleapis.com/compute/v1/projects/100000000001/zones/us-central1-ai1a/"
    )
    assert pool.outputs["placementPolicy"]["tpuTopology"] == "4x4x4"


@in_region()
async def test_changed_labels_reach_the_hosts_and_their_names_stay(region):
    await region.cluster()
    pool = await region.create("NodePool", system_pool())
    before = [host["name"] for host in region.pool_file("system")["hosts"]]
    inputs = system_pool(
        nodeConfig={"machineType": "n2-standard-32", "labels": {"team": "a"}}, project="sim-project"
    )
    await region.update("NodePool", pool, inputs)
    hosts = region.pool_file("system")["hosts"]
    assert [host["name"] for host in hosts] == before
    assert all(host["labels"]["team"] == "a" for host in hosts)


@in_region()
async def test_a_taken_pool_name_is_told_in_the_providers_words(region):
    await region.cluster()
    pool = await region.create("NodePool", system_pool())
    said = await refusal_of(region.create("NodePool", system_pool(), "another"))
    assert said == f"Error creating NodePool: resource - {pool.id} - already exists"
