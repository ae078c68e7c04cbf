"""Clusters: handed to the cluster side by files, refused where GKE refuses."""

from simulator.cloud.wire import UNKNOWN
from simulator.files import read_json
from tests.fakes.cloud_region import CLUSTER, SUBNET, in_region, refusal_of, system_pool, tpu_pool


@in_region()
async def test_a_cluster_has_the_address_and_authority_that_the_cluster_side_gave(region):
    cluster = await region.cluster()
    assert cluster.id == "projects/sim-project/locations/us-central1/clusters/tpu-serving-cluster"
    assert cluster.outputs["endpoint"] == "127.0.0.1:6443"
    assert cluster.outputs["masterAuth"]["clusterCaCertificate"] == "Q0E="
    assert cluster.outputs["masterVersion"] == "1.36.0-gke.3712000"
    assert cluster.outputs["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"] == "localhost:6443"
    assert cluster.outputs["privateClusterConfig"]["privateEndpoint"] == "127.0.0.1:6443"


@in_region()
async def test_the_cluster_side_is_told_what_the_control_plane_is_to_be(region):
    await region.cluster()
    wanted = read_json(region.folder / "clusters" / "tpu-serving-cluster" / "cluster.json")
    assert wanted["sliceController"] is True
    assert (wanted["podCidr"], wanted["serviceCidr"]) == ("10.64.0.0/14", "10.96.0.0/20")


@in_region()
async def test_a_preview_of_an_empty_region_leaves_unknown_what_google_will_choose(region):
    planned = await region.create("Cluster", CLUSTER, preview=True)
    assert planned.outputs["endpoint"] is UNKNOWN
    assert planned.outputs["masterAuth"] is UNKNOWN
    assert planned.outputs["name"] == "tpu-serving-cluster"
    assert region.cloud.inventory.resources == {}


@in_region()
async def test_a_version_that_is_not_offered_is_refused(region):
    said = await refusal_of(region.cluster(minMasterVersion="1.40.0-gke.1"))
    assert 'Master version "1.40.0-gke.1" is unsupported.' in said


@in_region()
async def test_a_prefix_of_a_version_means_the_newest_that_is_offered(region):
    assert (await region.cluster(minMasterVersion="1.36")).outputs["masterVersion"] == "1.36.1-gke.1204000"


@in_region()
async def test_the_slice_controller_has_a_lowest_version(region):
    channel = {"channel": "STABLE"}
    said = await refusal_of(region.cluster(minMasterVersion="1.34.1-gke.1829001", releaseChannel=channel))
    assert "The GKE Slice Controller requires a GKE version of 1.35.0-gke.274500 or higher" in said


@in_region()
async def test_an_exclusion_in_the_past_is_refused(region):
    exclusion = {
        "exclusionName": "no-upgrade-next-month",
        "startTime": "2026-05-18T00:00:00Z",
        "endTime": "2026-08-15T00:00:00Z",
    }
    said = await refusal_of(region.cluster(maintenancePolicy={"maintenanceExclusions": [exclusion]}))
    assert "no-upgrade-next-month ends in the past" in said


@in_region()
async def test_ordinary_nodes_have_no_place_in_an_ai_zone(region):
    said = await refusal_of(region.cluster(nodeLocations=["us-central1-ai1a"]))
    assert "AI zones hold accelerator machines" in said


@in_region()
async def test_a_range_name_that_the_subnet_does_not_have_is_refused(region):
    policy = {"clusterSecondaryRangeName": "pod", "servicesSecondaryRangeName": "services"}
    said = await refusal_of(region.cluster(ipAllocationPolicy=policy))
    assert 'secondary range "pod" does not exist' in said


@in_region()
async def test_a_protected_cluster_is_not_deleted_until_the_protection_is_lifted(region):
    cluster = await region.cluster(deletionProtection=True)
    assert "deletion_protection is set to true" in await refusal_of(region.delete("Cluster", cluster))
    unprotected = await region.update("Cluster", cluster, {**CLUSTER, "project": "sim-project"})
    await region.delete("Cluster", unprotected)
    assert not (region.folder / "clusters" / "tpu-serving-cluster").exists()


@in_region()
async def test_deleting_a_cluster_deletes_its_pools_as_gke_does(region):
    cluster = await region.cluster()
    await region.create("NodePool", system_pool())
    await region.delete("Cluster", cluster)
    assert [record.type.split(":")[-1] for record in region.cloud.inventory.resources.values()] == [
        "Network",
        "Subnetwork",
    ]


@in_region()
async def test_a_cluster_with_active_slices_stays(region):
    await region.cubes()
    await region.create("NodePool", tpu_pool())
    region.cluster_side.slices["tpu7-pool-1"] = ["a-slice"]
    await region.cloud.clusters._until(
        lambda: region.cloud.clusters.active_slices("tpu-serving-cluster", "tpu7-pool-1"), "no slices"
    )
    assert "slices a-slice are active" in await refusal_of(region.delete("Cluster", region.made_cluster))


@in_region()
async def test_a_control_plane_is_upgraded_and_never_goes_back(region):
    cluster = await region.cluster()
    newer = {**CLUSTER, "project": "sim-project", "minMasterVersion": "1.36.1-gke.1204000"}
    upgraded = await region.update("Cluster", cluster, newer)
    assert upgraded.outputs["masterVersion"] == "1.36.1-gke.1204000"
    back = await region.update("Cluster", upgraded, {**CLUSTER, "project": "sim-project"})
    assert back.outputs["masterVersion"] == "1.36.1-gke.1204000"


@in_region()
async def test_a_kept_default_pool_has_hosts(region):
    await region.cluster(removeDefaultNodePool=False)
    assert len(region.pool_file("default-pool")["hosts"]) == 3


@in_region()
async def test_a_control_plane_that_does_not_come_up_fails_and_is_kept(region):
    await region.apis()
    await region.network()
    region.cluster_side.is_stuck = True
    region.cloud.clusters.deadline_seconds = 0.1
    assert "is not RUNNING" in await refusal_of(region.create("Cluster", CLUSTER))
    [record] = [item for item in region.cloud.inventory.resources.values() if "Cluster" in item.type]
    assert record.state == "ERROR"


@in_region()
async def test_the_subnet_of_a_cluster_stays(region):
    await region.cluster()
    assert "is already being used by" in await refusal_of(region.delete("Subnetwork", region.subnet))


@in_region()
async def test_what_this_region_does_not_simulate_is_named(region):
    assert region.check("Cluster", {**CLUSTER, "enableAutopilot": True}) == ["enableAutopilot"]
    assert region.check("Cluster", {**CLUSTER, "location": UNKNOWN, "network": UNKNOWN}) == []
    assert region.check("Subnetwork", {**SUBNET, "network": UNKNOWN}) == []


@in_region()
async def test_a_previewed_update_keeps_what_google_chose_inside_the_blocks_that_it_gives(region):
    cluster = await region.cluster(controlPlaneEndpointsConfig={"ipEndpointsConfig": {"enabled": True}})
    changed = {
        **CLUSTER,
        "project": "sim-project",
        "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}},
    }
    planned = await region.update("Cluster", cluster, changed, preview=True)
    endpoints = planned.outputs["controlPlaneEndpointsConfig"]
    assert endpoints["dnsEndpointConfig"]["endpoint"] == "localhost:6443"
    assert endpoints["ipEndpointsConfig"] == {"enabled": False}
