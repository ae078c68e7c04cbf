"""Live checks of reservations: there, ours to use, the right hosts, enough of them free and healthy."""

import pytest

from livechecks import provider_questions as questions
from livechecks.findings import Verdict
from tests.fakes import google_answers as fake
from tests.fakes.google_answers import google_of

PROD = "projects/example-capacity/reservations/tpu7x-shared/reservationBlocks/tpu7x-shared-block-0001"
SUB_BLOCK = "tpu7x-shared-block-0001-subblock-0002"
DEV = "projects/example-dev/reservations/tpu7x-dev/reservationBlocks/block-0"
RESERVED = [
    {"name": "np", "machineType": "ct6e-standard-4t", "topology": "4x4", "reservation": {"name": "v6e"}}
]
WHOLE = [{"name": "tpu7-pool", "cubes": 2, "reservation": {"name": "tpu7x-dev"}}]


def properties(google):
    return google.reservation["specificReservations"][0]["instanceProperties"][0]


def test_a_reservation_that_is_not_there_is_refused():
    def change(google):
        google.reservation = google.block = fake.NOT_FOUND

    (text,) = google_of("dev", change).refused()
    assert text.startswith(
        "`tpu-slices:slicePools[0].reservation` must be a reservation of project example-dev in us-central1-ai1a "
        "(got tpu7x-dev)"
    )


@pytest.mark.parametrize("problem", [fake.FORBIDDEN, fake.API_OFF, Exception("the moon is full")])
def test_a_reservation_that_may_not_be_looked_at_is_for_a_person(problem):
    google = google_of("prod", lambda made: setattr(made, "reservation", problem))
    assert google.refused() == []
    text = google.said(Verdict.MANUAL)
    assert "not checked: reservation tpu7x-shared of example-capacity" in text
    assert "gcloud compute reservations describe tpu7x-shared --project=example-capacity" in text


def test_hosts_of_another_machine_type_are_refused():
    google = google_of("dev", lambda made: properties(made).update(machineType="ct6e-standard-4t"))
    (text,) = google.refused()
    assert "must hold tpu7x-standard-4t (got ct6e-standard-4t)" in text


def test_another_maintenance_interval_is_refused_and_the_same_is_not():
    google = google_of("prod", lambda made: properties(made).update(maintenanceInterval="AS_NEEDED"))
    (text,) = google.refused()
    assert text.startswith("`tpu-slices:slicePools[0].hostMaintenance` must be AS_NEEDED (got PERIODIC)")
    assert (
        google_of("prod", lambda made: properties(made).update(maintenanceInterval="PERIODIC")).refused()
        == []
    )


def test_a_reservation_that_is_not_ready_is_refused():
    (text,) = google_of("dev", lambda made: made.reservation.update(status="CREATING")).refused()
    assert "must be READY (got CREATING)" in text


@pytest.mark.parametrize("end", ["2026-11-30T00:00:00Z", "2026-11-30T23:59:59.000-00:00"])
def test_a_reservation_that_is_over_is_refused(end):
    (text,) = google_of("dev", lambda made: made.reservation.update(deleteAtTime=end)).refused()
    assert "must not be over" in text


def test_a_reservation_that_ends_soon_is_a_caution_and_a_late_one_is_not():
    google = google_of("dev", lambda made: made.reservation.update(deleteAtTime="2026-12-11T00:00:00Z"))
    assert google.refused() == []
    assert "ends in 10 days" in google.said(Verdict.CAUTION)
    late = google_of("dev", lambda made: made.reservation.update(deleteAtTime="2027-12-11T00:00:00Z"))
    assert late.said(Verdict.CAUTION) == ""


@pytest.mark.parametrize(
    "shared",
    [{"shareType": "LOCAL"}, {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": "100000000007"}]}],
)
def test_a_reservation_of_another_project_must_be_shared(shared):
    (text,) = google_of("prod", lambda made: made.reservation.update(shareSettings=[shared])).refused()
    assert "must be shared with example-prod" in text


@pytest.mark.parametrize(
    "shared",
    [
        {"shareType": "ORGANIZATION"},
        {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": "1", "projectId": "example-prod"}]},
        {"shareType": "SPECIFIC_PROJECTS", "projects": ["example-prod"]},
        {},
    ],
)
def test_sharing_by_organization_id_or_number_is_enough(shared):
    assert google_of("prod", lambda made: made.reservation.update(shareSettings=[shared])).refused() == []


def test_our_own_reservation_need_not_be_shared():
    assert (
        google_of(
            "dev", lambda made: made.reservation.update(shareSettings=[{"shareType": "LOCAL"}])
        ).refused()
        == []
    )


def test_an_open_reservation_is_a_caution():
    google = google_of("dev", lambda made: made.reservation.update(specificReservationRequired=False))
    assert "is open to any VM" in google.said(Verdict.CAUTION)


def test_maintenance_of_the_reservation_is_said_with_its_time():
    group = {"upcomingGroupMaintenances": [{"windowStartTime": "2026-12-24T00:00:00Z"}]}
    status = [{"reservationMaintenances": [group]}]
    google = google_of("dev", lambda made: made.reservation.update(resourceStatuses=status))
    assert "maintenance that starts at 2026-12-24T00:00:00Z" in google.said(Verdict.CAUTION)


def mode(name):
    control = {"reservationOperationalMode": name} if name else {}
    return {"/reservations/": (200, {"advancedDeploymentControl": control})}


def test_a_reservation_outside_all_capacity_mode_is_refused():
    (text,) = google_of("dev", lambda made: made.rest.update(mode("HIGHLY_AVAILABLE_CAPACITY"))).refused()
    assert "must be in All Capacity mode (got HIGHLY_AVAILABLE_CAPACITY)" in text


@pytest.mark.parametrize("answer", [mode(None), {"/reservations/": fake.error(403, "no")}])
def test_a_mode_that_is_not_shown_is_for_a_person(answer):
    google = google_of("dev", lambda made: made.rest.update(answer))
    assert google.refused() == []
    assert "that reservation tpu7x-dev is in All Capacity mode" in google.said(Verdict.MANUAL)


def test_a_block_that_is_not_there_is_refused_with_those_that_are():
    (text,) = google_of("dev", lambda made: setattr(made, "block", fake.NOT_FOUND)).refused()
    assert text.startswith(
        "`tpu-slices:slicePools[0].reservation.block` must be a block of tpu7x-dev (got block-0)"
    )
    assert "there are block-0" in text


def test_a_sub_block_that_is_not_there_is_refused_with_those_that_are():
    (text,) = google_of("prod", lambda made: made.sub_blocks.update({SUB_BLOCK: fake.NOT_FOUND})).refused()
    assert f"must be a sub-block of tpu7x-shared-block-0001 (got {SUB_BLOCK})" in text
    assert "there are sub-0, sub-1" in text


def test_a_sub_block_that_may_not_be_looked_at_is_for_a_person():
    google = google_of("prod", lambda made: made.sub_blocks.update({SUB_BLOCK: fake.FORBIDDEN}))
    assert google.refused() == []
    assert f"not checked: the sub-block {SUB_BLOCK}" in google.said(Verdict.MANUAL)


def busy(google):
    google.sub_blocks[SUB_BLOCK] = fake.sub_block(in_use=16)


def test_a_named_sub_block_that_somebody_else_holds_is_refused():
    (text,) = google_of("prod", busy).refused()
    assert f"must be free, all 16 hosts of it (got {SUB_BLOCK} with 16 hosts in use)" in text


def test_a_named_sub_block_that_our_own_pool_holds_is_free():
    def change(google):
        busy(google)
        pool = f"{PROD}/reservationSubBlocks/{SUB_BLOCK}"
        google.functions[questions.CLUSTER] = fake.cluster_with(pool)

    google = google_of("prod", change)
    assert google.refused() == []
    assert google.said(Verdict.CAUTION) == ""


def test_a_pool_of_ours_on_another_sub_block_does_not_excuse_it():
    def change(google):
        busy(google)
        google.functions[questions.CLUSTER] = fake.cluster_with(f"{PROD}/reservationSubBlocks/another")

    assert "must be free" in google_of("prod", change).refused()[0]


@pytest.mark.parametrize("cluster", [fake.FORBIDDEN, fake.cluster_with(PROD)])
def test_hosts_in_use_that_may_be_ours_are_a_caution(cluster):
    def change(google):
        busy(google)
        google.functions[questions.CLUSTER] = cluster

    google = google_of("prod", change)
    assert google.refused() == []
    assert "could not be told whether they are this stack's" in google.said(Verdict.CAUTION)


def test_a_sub_block_without_a_healthy_host_is_refused():
    ill = {SUB_BLOCK: fake.sub_block(healthy=0)}
    (text,) = google_of("prod", lambda made: made.sub_blocks.update(ill)).refused()
    assert "must have a healthy host" in text


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (fake.sub_block(healthy=15), "has 15 healthy hosts of 16"),
        (fake.sub_block(infra=1), "has degraded links"),
        (fake.sub_block(pending=2), "is under maintenance (0 ongoing, 2 pending)"),
    ],
)
@pytest.mark.parametrize(("stack", "name"), [("prod", SUB_BLOCK), ("dev", "sub-1")])
def test_a_sub_block_that_is_partly_ill_is_a_caution(stack, name, part, said):
    google = google_of(stack, lambda made: made.sub_blocks.update({name: part}))
    assert google.refused() == []
    assert f"sub-block {name} {said}" in google.said(Verdict.CAUTION)


def three_taken(google):
    google.sub_blocks = {f"sub-{number}": fake.sub_block(in_use=16) for number in range(3)}


def test_a_block_with_too_few_free_cubes_is_refused():
    (text,) = google_of("dev", three_taken).refused()
    assert text.startswith("`tpu-slices:slicePools[0].cubes` must find 2 free cubes in block block-0 (got 1)")


def test_cubes_that_our_own_pools_hold_count_as_free():
    def change(google):
        three_taken(google)
        google.functions[questions.CLUSTER] = fake.cluster_with(DEV, DEV)

    assert google_of("dev", change).refused() == []


def test_too_few_free_cubes_are_a_caution_while_our_own_are_unknown():
    def change(google):
        three_taken(google)
        google.functions[questions.CLUSTER] = fake.FORBIDDEN

    google = google_of("dev", change)
    assert google.refused() == []
    assert "1 free cubes in block block-0, 2 wanted" in google.said(Verdict.CAUTION)


def test_a_wholly_ill_sub_block_is_not_free():
    def change(google):
        three_taken(google)
        google.sub_blocks["sub-0"] = fake.sub_block(healthy=0)

    assert "(got 1)" in google_of("dev", change).refused()[0]


def test_a_block_whose_sub_blocks_are_not_listed_is_judged_by_its_totals():
    def change(google):
        google.block = {
            "reservationSubBlockCount": 4,
            "reservationSubBlockInUseCount": 3,
            "healthInfos": [{"degradedSubBlockCount": 1}],
            "reservationMaintenances": [{"maintenanceOngoingCount": 5}],
        }

    google = google_of("dev", change)
    assert "(got 1)" in google.refused()[0]
    said = google.said(Verdict.CAUTION)
    assert "has 1 degraded sub-blocks" in said
    assert "is under maintenance (5 ongoing, 0 pending)" in said


@pytest.mark.parametrize(
    ("stack", "sections", "wanted"),
    [("pathways", {"multihostPools": RESERVED}, 4), ("dev", {"slicePools": WHOLE}, 32)],
)
def test_a_reservation_with_too_few_free_hosts_is_refused(stack, sections, wanted):
    def change(google):
        google.reservation["specificReservations"][0]["inUseCount"] = str(64 - wanted + 1)

    (text,) = google_of(stack, change, **sections).refused()
    assert f"must find {wanted} free hosts in reservation" in text
    assert f"(got {wanted - 1})" in text


def test_hosts_of_our_own_static_pool_count_as_free():
    def change(google):
        google.reservation["specificReservations"][0]["inUseCount"] = 64
        value = "projects/example-pathways/reservations/v6e"
        google.functions[questions.CLUSTER] = fake.cluster_with(value, hosts=4)

    assert google_of("pathways", change, multihostPools=RESERVED).refused() == []


def test_a_static_pool_of_hosts_that_are_reserved_needs_no_quota():
    google = google_of("pathways", multihostPools=RESERVED)
    google.findings()
    assert not [uri for uri, *_ in google.requests if "quota" in uri.lower()]
