"""The hosts of node pools carry what Kubernetes, Kueue and the add-on read from them."""

from collections import Counter

from facts import labels, tpu
from tests.fakes.cloud_region import BLOCK, in_region, system_pool, tpu_pool, v6e_pool


def sub_block(document, index):
    return document["reservations"][0]["blocks"][0]["subBlocks"][index]


async def cubes(region, count=2):
    await region.cubes()
    hosts = []
    for number in range(1, count + 1):
        await region.create("NodePool", tpu_pool(number))
        hosts.append(region.pool_file(f"tpu7-pool-{number}")["hosts"])
    return hosts


@in_region()
async def test_a_cube_has_as_many_partitions_of_each_shape_as_the_hardware(region):
    [hosts] = await cubes(region, 1)
    for shape in tpu.PARTITION_LEVELS:
        sizes = Counter(host["labels"][labels.partition_id(shape)] for host in hosts)
        assert set(sizes.values()) == {tpu.chip_count(shape) // tpu.CHIPS_PER_HOST}, shape
        assert len(sizes) == tpu.CHIPS_PER_CUBE // tpu.chip_count(shape), shape


@in_region()
async def test_partitions_are_nested(region):
    [hosts] = await cubes(region, 1)
    for wide, narrow in zip(tpu.PARTITION_LEVELS, tpu.PARTITION_LEVELS[1:], strict=False):
        parent_of = {}
        for host in hosts:
            child, parent = (host["labels"][labels.partition_id(shape)] for shape in (narrow, wide))
            assert parent_of.setdefault(child, parent) == parent


@in_region()
async def test_partition_ids_are_opaque_and_no_two_cubes_share_one(region):
    one, two = await cubes(region)
    ids = [
        {value for host in hosts for key, value in host["labels"].items() if key.endswith("-id")}
        for hosts in (one, two)
    ]
    assert not ids[0] & ids[1]
    assert all(len(value) == 32 and int(value, 16) >= 0 for value in ids[0] | ids[1])


@in_region()
async def test_cubes_of_a_block_share_the_block_and_not_the_sub_block(region):
    one, two = await cubes(region)
    assert one[0]["labels"][labels.TOPOLOGY_BLOCK] == two[0]["labels"][labels.TOPOLOGY_BLOCK]
    assert one[0]["labels"][labels.TOPOLOGY_SUB_BLOCK] != two[0]["labels"][labels.TOPOLOGY_SUB_BLOCK]


@in_region()
async def test_partition_ids_belong_to_the_hardware_and_outlive_the_pool(region):
    await region.cubes()
    value = f"{BLOCK}/reservationSubBlocks/block-0-subblock-0001"
    pool = await region.create("NodePool", tpu_pool(1, value))
    before = region.pool_file("tpu7-pool-1")["hosts"]
    await region.delete("NodePool", pool)
    await region.create("NodePool", tpu_pool(2, value))
    after = region.pool_file("tpu7-pool-2")["hosts"]
    key = labels.partition_id("2x2x1")
    assert {host["labels"][key] for host in before} == {host["labels"][key] for host in after}
    assert not {host["name"] for host in before} & {host["name"] for host in after}


@in_region()
async def test_a_host_that_is_provisioned_only_has_no_slice_topology_yet(region):
    [hosts] = await cubes(region, 1)
    own = hosts[0]["labels"]
    assert labels.TPU_TOPOLOGY not in own
    assert labels.TPU_SLICE not in own
    assert own[labels.TOPOLOGY_MODE] == "PROVISION_ONLY"
    assert own[labels.TPU_ACCELERATOR] == "tpu7x"


@in_region()
async def test_a_tpu_host_has_the_codelabs_label_the_vendors_taint_and_four_chips(region):
    [hosts] = await cubes(region, 1)
    assert hosts[0]["labels"]["google.com/tpu"] == "present"
    assert hosts[0]["taints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
    assert hosts[0]["allocatable"]["google.com/tpu"] == "4"
    assert hosts[0]["allocatable"]["cpu"] == "223370m"
    assert hosts[0]["allocatable"]["memory"] == "963568636Ki"
    assert labels.CREATED_BY_MIG in hosts[0]["annotations"]


@in_region()
async def test_host_names_are_unique_fit_a_label_and_do_not_follow_the_hardware(region):
    one, two = await cubes(region)
    names = [host["name"] for host in one + two]
    assert len(set(names)) == 32
    assert all(len(name) <= 63 for name in names)
    assert all(host["labels"][labels.HOSTNAME] == host["name"] for host in one + two)
    assert names[:16] != sorted(names[:16])


@in_region(lambda document: sub_block(document, 0).update(unhealthyHosts=[0]))
async def test_partitions_that_miss_a_host_are_incomplete_and_the_others_healthy(region):
    await region.cubes()
    value = f"{BLOCK}/reservationSubBlocks/block-0-subblock-0001"
    await region.create("NodePool", tpu_pool(1, value))
    hosts = region.pool_file("tpu7-pool-1")["hosts"]
    states = {
        shape: Counter(host["labels"][labels.partition_state(shape)] for host in hosts)
        for shape in tpu.PARTITION_LEVELS
    }
    assert states["4x4x4"] == {"INCOMPLETE": 15}
    assert states["2x4x4"] == {"INCOMPLETE": 7, "HEALTHY": 8}
    assert states["2x2x2"] == {"INCOMPLETE": 1, "HEALTHY": 14}
    assert states["2x2x1"] == {"HEALTHY": 15}


@in_region(lambda document: sub_block(document, 0).update(health="DEGRADED"))
async def test_only_a_whole_cube_is_degraded(region):
    await region.cubes()
    value = f"{BLOCK}/reservationSubBlocks/block-0-subblock-0001"
    await region.create("NodePool", tpu_pool(1, value))
    own = region.pool_file("tpu7-pool-1")["hosts"][0]["labels"]
    assert own[labels.partition_state("4x4x4")] == "DEGRADED"
    assert own[labels.partition_state("2x2x2")] == "HEALTHY"


@in_region(lambda document: document["knobs"].update(labelDelaySeconds=7))
async def test_late_labels_are_asked_of_the_cluster_side(region):
    await cubes(region, 1)
    assert region.pool_file("tpu7-pool-1")["labelDelaySeconds"] == 7


@in_region()
async def test_a_v6e_slice_is_wired_when_it_is_made(region):
    await region.cluster()
    await region.create("NodePool", v6e_pool())
    hosts = region.pool_file("multihost-np")["hosts"]
    assert len(hosts) == 4
    assert {host["labels"][labels.TPU_TOPOLOGY] for host in hosts} == {"4x4"}
    assert {host["labels"][labels.TPU_ACCELERATOR] for host in hosts} == {"tpu-v6e-slice"}
    assert len({host["labels"]["cloud.google.com/gke-tpu-slice-4x4-id"] for host in hosts}) == 1
    assert len({host["labels"]["cloud.google.com/gke-tpu-slice-2x4-id"] for host in hosts}) == 2
    assert not any("partition" in key for key in hosts[0]["labels"])


@in_region()
async def test_system_nodes_are_spread_over_their_zones_and_leave_what_gke_leaves(region):
    await region.cluster()
    taint = {"key": "dedicated", "value": "system", "effect": "NO_SCHEDULE"}
    config = {
        "machineType": "n2-standard-32",
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "taints": [taint],
    }
    await region.create("NodePool", system_pool(nodeConfig=config))
    hosts = region.pool_file("system")["hosts"]
    assert {host["labels"][labels.ZONE] for host in hosts} == {f"us-central1-{letter}" for letter in "abc"}
    # GKE "Plan node sizes" for 32 vCPUs: 60 + 10 + 2 x 5 + 28 x 2.5 millicores are kept.
    assert hosts[0]["allocatable"]["cpu"] == "31850m"
    assert hosts[0]["taints"] == [{"key": "dedicated", "value": "system", "effect": "NoSchedule"}]
    assert hosts[0]["labels"]["iam.gke.io/gke-metadata-server-enabled"] == "true"
