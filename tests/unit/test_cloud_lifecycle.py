"""Operations run on whoever goes away, are taken up again, and fail as a test asks them to."""

import asyncio
import contextlib
import json

import pytest

from simulator.cloud.errors import Refusal
from simulator.cloud.inventory import left_behind
from simulator.cloud.lifecycle import ANSWER_MAY_BE_LOST_SECONDS, HalfMade
from tests.fakes.cloud_region import (
    CLUSTER,
    NETWORK,
    SUBNET,
    CloudRegion,
    in_region,
    refusal_of,
    region,
    system_pool,
    tpu_pool,
)


def record(made, kind):
    [found] = [item for item in made.cloud.inventory.resources.values() if item.type.endswith(f":{kind}")]
    return found


def faults(made, *items):
    (made.folder / "faults.json").write_text(json.dumps(list(items)))


async def go_away(operation):
    """Be the engine that is killed while it waits for the operation."""
    waiting = asyncio.create_task(operation)
    await asyncio.sleep(0.02)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting


@in_region()
async def test_an_operation_runs_on_when_its_client_dies(made):
    await made.apis()
    await made.network()
    made.cluster_side.is_stuck = True
    await go_away(made.create("Cluster", CLUSTER))
    assert record(made, "Cluster").state == "CREATING"
    made.cluster_side.is_stuck = False
    await made.provider.lifecycle.settle()
    assert record(made, "Cluster").state == "READY"


@in_region()
async def test_a_create_without_answer_tried_again_goes_on_with_what_was_begun(made):
    await made.apis()
    await made.network()
    made.cluster_side.is_stuck = True
    await go_away(made.create("Cluster", CLUSTER))
    uid = record(made, "Cluster").computed["uid"]
    made.cluster_side.is_stuck = False
    again = await made.create("Cluster", CLUSTER)
    assert again.outputs["endpoint"] == "127.0.0.1:6443"
    assert record(made, "Cluster").computed["uid"] == uid


@in_region(lambda document: document["knobs"].update(retriedCreates="conflict"))
async def test_with_the_knob_a_retried_create_gets_googles_conflict(made):
    await made.apis()
    await made.network()
    made.cluster_side.is_stuck = True
    await go_away(made.create("Cluster", CLUSTER))
    assert "Already exists: projects/sim-project/locations/us-central1/clusters" in await refusal_of(
        made.create("Cluster", CLUSTER)
    )


@in_region()
async def test_an_unanswered_create_is_nobody_elses(made):
    await made.apis()
    await made.network()
    made.cluster_side.is_stuck = True
    await go_away(made.create("Cluster", CLUSTER))
    assert "Already exists" in await refusal_of(made.create("Cluster", CLUSTER, "another-logical-name"))
    other_inputs = {**CLUSTER, "enableShieldedNodes": True}
    assert "Already exists" in await refusal_of(made.create("Cluster", other_inputs))


@in_region()
async def test_an_answer_may_have_been_lost_only_for_a_little_while(made):
    await made.apis()
    await made.create("Network", NETWORK)
    await made.create("Network", NETWORK)
    record(made, "Network").answered_at -= ANSWER_MAY_BE_LOST_SECONDS + 1
    assert "already exists" in await refusal_of(made.create("Network", NETWORK))


def test_a_killed_process_goes_on_with_half_done_creates_when_it_comes_back(tmp_path):
    async def first_life():
        async with region(tmp_path) as made:
            await made.apis()
            await made.network()
            made.cluster_side.is_stuck = True
            await go_away(made.create("Cluster", CLUSTER))

    async def second_life():
        async with region(tmp_path) as made:
            assert record(made, "Cluster").state == "CREATING"
            made.provider.lifecycle.resume()
            found = await made.read("Cluster", record(made, "Cluster").id)
            assert found.outputs["endpoint"] == "127.0.0.1:6443"

    asyncio.run(first_life())
    asyncio.run(second_life())


def test_a_killed_process_goes_on_with_half_done_deletes_when_it_comes_back(tmp_path):
    async def first_life():
        async with region(tmp_path) as made:
            cluster = await made.cluster()
            made.cluster_side.is_stuck = True
            await go_away(made.delete("Cluster", cluster))

    async def second_life():
        async with region(tmp_path) as made:
            assert record(made, "Cluster").state == "DELETING"
            made.provider.lifecycle.resume()
            await made.provider.lifecycle.settle()
            assert left_behind(tmp_path / "inventory.json") == [
                "projects/sim-project/global/networks/qwen-serving-main",
                "projects/sim-project/regions/us-central1/subnetworks/qwen-serving-tpu",
            ]

    asyncio.run(first_life())
    asyncio.run(second_life())


def test_every_step_of_a_stack_survives_the_loss_of_the_process(tmp_path):
    """A new process before every single request sees what the ones before have made."""

    async def step(kind, inputs):
        async with region(tmp_path) as made:
            await made.create(kind, inputs, kind)

    async def whole():
        await step("Service", {"service": "compute.googleapis.com"})
        await step("Network", NETWORK)
        await step("Subnetwork", SUBNET)
        async with region(tmp_path) as made:
            assert await refusal_of(made.create("Network", NETWORK, "another"))

    asyncio.run(whole())


@in_region()
async def test_what_was_made_elsewhere_is_imported_by_any_form_of_its_id(made):
    await made.cubes()
    await made.create("NodePool", tpu_pool(1))
    for typed in (
        "projects/sim-project/locations/us-central1/clusters/tpu-serving-cluster/nodePools/tpu7-pool-1",
        "us-central1/tpu-serving-cluster/tpu7-pool-1",
        "sim-project/us-central1/tpu-serving-cluster/tpu7-pool-1",
    ):
        found = await made.read("NodePool", typed)
        assert found.inputs["nodeConfig"]["machineType"] == "tpu7x-standard-4t"
    for kind, typed in (
        ("Network", "qwen-serving-main"),
        ("Subnetwork", "qwen-serving-tpu"),
        ("ResourcePolicy", "superslice-policy"),
        ("Cluster", "us-central1/tpu-serving-cluster"),
    ):
        assert (await made.read(kind, typed)).id == record(made, kind).id


@in_region()
async def test_a_refresh_shows_the_truth_at_the_places_that_the_program_set(made):
    await made.cluster()
    pool = await made.create("NodePool", system_pool())
    record(made, "NodePool").inputs["nodeConfig"]["machineType"] = "n2-standard-16"
    found = await made.read("NodePool", pool.id, system_pool())
    assert found.inputs["nodeConfig"] == {"machineType": "n2-standard-16"}
    assert set(found.inputs) == set(system_pool())


@in_region()
async def test_a_refresh_finds_out_that_a_resource_is_gone(made):
    await made.apis()
    await made.network()
    made.cloud.inventory.resources.clear()
    assert await made.read("Network", made.vpc.id, NETWORK) is None


@in_region()
async def test_deleting_what_is_gone_already_is_fine(made):
    await made.apis()
    await made.network()
    await made.delete("Subnetwork", made.subnet)
    await made.delete("Subnetwork", made.subnet)


@in_region()
async def test_updating_what_is_gone_says_what_to_do(made):
    await made.apis()
    await made.network()
    made.cloud.inventory.resources.clear()
    assert "`pulumi refresh` forgets it" in await refusal_of(made.update("Network", made.vpc, NETWORK))


@pytest.mark.parametrize(
    ("fails_with", "words"),
    [
        ("quota", "Insufficient regional quota"),
        ("permission", "Required permission"),
        ("stockout", "does not have enough resources"),
        ("timeout", "timeout while waiting for state to become 'DONE'"),
    ],
)
@pytest.mark.parametrize("kind", ["Network", "NodePool"])
def test_an_operation_fails_as_asked_and_the_next_one_goes_on_from_there(kind, fails_with, words, tmp_path):
    inputs = {"Network": NETWORK, "NodePool": system_pool()}[kind]

    @in_region()
    async def case(made):
        await (made.cluster() if kind == "NodePool" else made.apis())
        faults(made, {"operation": "create", "resource": inputs["name"], "failsWith": fails_with, "times": 1})
        half_made = None
        try:
            await made.create(kind, inputs, "it")
        except HalfMade as raised:
            half_made, said = raised, raised.reason
        except Refusal as raised:
            said = str(raised)
        assert words in said
        await made.provider.lifecycle.settle()
        if half_made is None:
            await made.create(kind, inputs, "it")
        else:
            kept = made.provider.answer_half_made(half_made.record, frozenset())
            await made.update(kind, kept, {**inputs, "project": "sim-project"}, "it")
        assert record(made, kind).state == "READY"

    case(tmp_path)


@in_region()
async def test_a_fault_strikes_as_often_as_it_says_and_a_restart_does_not_start_over(made):
    await made.apis()
    faults(
        made,
        {"operation": "create", "resource": "gcp:compute/network:Network", "failsWith": "quota", "times": 1},
    )
    await refusal_of(made.create("Network", NETWORK))
    again = CloudRegion(made.folder)
    await again.create("Network", NETWORK)


@in_region(
    lambda document: document.update(
        faults=[{"operation": "delete", "resource": "qwen-serving-main", "failsWith": "permission"}]
    )
)
async def test_the_region_file_brings_faults_too(made):
    await made.apis()
    await made.network()
    await made.delete("Subnetwork", made.subnet)
    assert "Required permission 'delete'" in await refusal_of(made.delete("Network", made.vpc))


@in_region()
async def test_a_list_of_faults_that_cannot_be_read_is_told(made):
    await made.apis()
    (made.folder / "faults.json").write_text('[{"operation": "explode"}]')
    assert "is no list of faults" in await refusal_of(made.create("Network", NETWORK))


@in_region()
async def test_ctrl_c_leaves_a_cluster_with_its_operation_and_the_next_refresh_finds_it(made):
    await made.apis()
    await made.network()
    made.cluster_side.is_stuck = True
    waiting = asyncio.create_task(made.create("Cluster", CLUSTER))
    await asyncio.sleep(0.02)
    made.session.stop.set()
    answer = await waiting
    assert answer.outputs["operation"] != ""
    made.cluster_side.is_stuck = False
    found = await made.read("Cluster", answer.id, CLUSTER)
    assert found.outputs["operation"] == ""
    assert found.outputs["endpoint"] == "127.0.0.1:6443"


@in_region(time_scale=60.0)
async def test_operations_in_parallel_do_not_wait_for_each_other(made):
    started = asyncio.get_running_loop().time()
    services = ("compute", "container", "iam", "file", "networkservices", "cloudresourcemanager")
    await asyncio.gather(
        *(made.create("Service", {"service": f"{name}.googleapis.com"}, name) for name in services)
    )
    took = asyncio.get_running_loop().time() - started
    assert 30 / 60 <= took < 3 * 30 / 60


def existing_network(document):
    document["projects"][0]["enabledApis"].append("compute.googleapis.com")
    document["existing"] = [{"type": "gcp:compute/network:Network", "inputs": {"name": "shared-vpc"}}]


@in_region(existing_network)
async def test_what_the_region_file_brings_is_there_and_is_nobodys_left_over(made):
    await made.provider.seed()
    found = await made.read("Network", "shared-vpc")
    assert found.outputs["selfLink"].endswith("/networks/shared-vpc")
    assert left_behind(made.folder / "inventory.json") == []
    await made.delete("Network", found)
    await made.provider.seed()
    assert made.cloud.inventory.resources == {}


@in_region()
async def test_switches_stay_on_and_switching_them_twice_is_no_conflict(made):
    service = await made.create("Service", {"service": "compute.googleapis.com"})
    await made.create("Service", {"service": "compute.googleapis.com"}, "again")
    await made.delete("Service", service)
    assert "compute.googleapis.com" in made.cloud.enabled_apis("sim-project")
    assert (await made.read("Service", service.id)).outputs["service"] == "compute.googleapis.com"
    assert left_behind(made.folder / "inventory.json") == []


@in_region()
async def test_an_api_that_is_used_is_not_switched_off(made):
    inputs = {"service": "compute.googleapis.com", "disableOnDestroy": True}
    service = await made.create("Service", inputs)
    network = await made.create("Network", NETWORK)
    assert "is used by" in await refusal_of(made.delete("Service", service))
    await made.delete("Network", network)
    await made.delete("Service", service)
    assert "compute.googleapis.com" not in made.cloud.enabled_apis("sim-project")
