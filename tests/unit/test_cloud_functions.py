"""Functions answer facts of the region, to those who may know them."""

import pytest

from simulator.cloud.errors import Refusal
from tests.fakes.cloud_region import ZONE, in_region, tpu_pool


def ask(region, function, /, **arguments):
    return region.provider.invoke(region.session, f"gcp:{function}", arguments)


@in_region()
async def test_a_project_has_a_number(region):
    answer = ask(region, "organizations/getProject:getProject")
    assert (answer["projectId"], answer["number"]) == ("sim-project", "100000000001")
    with pytest.raises(Refusal, match="Permission denied on resource project nobody"):
        ask(region, "organizations/getProject:getProject", projectId="nobody")


@in_region()
async def test_an_ai_zone_is_listed_only_to_those_who_see_it(region):
    await region.create("Service", {"service": "compute.googleapis.com"})
    assert ZONE not in ask(region, "compute/getZones:getZones")["names"]
    await region.create("PreviewFeature", {"name": "ai-zones-visibility", "activationStatus": "ENABLED"})
    assert ZONE in ask(region, "compute/getZones:getZones")["names"]


@in_region()
async def test_versions_are_listed_newest_first_and_by_channel(region):
    await region.apis()
    answer = ask(
        region, "container/getEngineVersions:getEngineVersions", location="us-central1", versionPrefix="1.36."
    )
    assert answer["validMasterVersions"] == ["1.36.1-gke.1204000", "1.36.0-gke.3712000"]
    assert answer["releaseChannelDefaultVersion"]["RAPID"] == "1.36.0-gke.3712000"


@in_region(
    lambda document: document["reservations"][0]["blocks"][0]["subBlocks"][1].update(unhealthyHosts=[20])
)
async def test_a_reservation_tells_what_is_in_use_and_what_is_ill(region):
    await region.cubes()
    await region.create("NodePool", tpu_pool())
    answer = ask(region, "compute/getReservation:getReservation", name="tpu7-reservation", zone=ZONE)
    assert answer["specificReservations"][0]["count"] == 32
    assert answer["specificReservations"][0]["inUseCount"] == 16
    where = {"reservation": "tpu7-reservation", "zone": ZONE}
    block = ask(region, "compute/getReservationBlock:getReservationBlock", name="block-0", **where)
    assert block["reservationSubBlockInUseCount"] == 1
    assert block["healthInfos"][0]["degradedSubBlockCount"] == 1
    part = ask(
        region,
        "compute/getReservationSubBlock:getReservationSubBlock",
        name="block-0-subblock-0002",
        reservationBlock="block-0",
        **where,
    )
    assert part["healthInfos"][0]["healthyHostCount"] == 15
    assert part["inUseCount"] == 0


@in_region()
async def test_a_reservation_that_is_not_there_is_not_found(region):
    await region.apis()
    with pytest.raises(Refusal, match="Error 404"):
        ask(region, "compute/getReservation:getReservation", name="another", zone=ZONE)


def owned_by_another(document):
    document["projects"].append({"id": "owner-project", "number": "100000000002"})
    document["reservations"][0]["project"] = "owner-project"


@in_region(owned_by_another)
async def test_a_reservation_that_is_not_shared_is_not_shown(region):
    await region.apis()
    arguments = {"name": "tpu7-reservation", "zone": ZONE, "project": "owner-project"}
    with pytest.raises(Refusal, match=r"compute\.reservations\.get"):
        ask(region, "compute/getReservation:getReservation", **arguments)


@in_region()
async def test_an_unknown_function_is_refused_by_name(region):
    with pytest.raises(Refusal, match="knows no function gcp:dns/getKeys:getKeys"):
        ask(region, "dns/getKeys:getKeys")
