"""Facts about Google Cloud: places, versions, reservations, ranges, machines, exclusions."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import gke, locations, machines, maintenance, networks, reservations, versions
from facts.refusal import Refusal

# --- zones and regions


@pytest.mark.parametrize(
    ("zone", "region", "ai"),
    [
        ("us-central1-ai1a", "us-central1", True),
        ("us-central1-a", "us-central1", False),
        ("europe-west4-b", "europe-west4", False),
        ("northamerica-northeast2-c", "northamerica-northeast2", False),
    ],
)
def test_a_region_follows_from_an_ai_zone_as_from_an_ordinary_one(zone: str, region: str, ai: bool) -> None:
    assert locations.region_of(zone) == region
    assert locations.is_ai_zone(zone) is ai


def test_default_system_zones_are_ordinary_zones_of_the_region() -> None:
    for region in ("us-central1", "us-east1", "europe-west4"):
        zones = locations.default_system_zones(region)
        assert len(set(zones)) == 3
        assert all(locations.region_of(zone) == region and not locations.is_ai_zone(zone) for zone in zones)


@given(st.text(max_size=24))
def test_any_text_is_a_zone_or_refused(text: str) -> None:
    try:
        region = locations.region_of(text)
    except Refusal:
        return
    assert region.count("-") == 1


# --- GKE versions

parts = st.tuples(st.integers(1, 9), st.integers(0, 99), st.integers(0, 99), st.integers(0, 9_999_999))


@given(parts, parts)
def test_versions_are_ordered_by_number_not_by_letter(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    def spelt(version: tuple[int, ...]) -> str:
        return "{}.{}.{}-gke.{}".format(*version)

    assert gke.at_least(spelt(first), spelt(second)) == (first >= second)
    assert str(gke.GkeVersion.parse(spelt(first))) == spelt(first)


def test_a_short_build_number_is_older_than_a_long_one() -> None:
    assert not gke.at_least("1.35.0-gke.274500", "1.35.0-gke.1000000")


@pytest.mark.parametrize(
    "text", ["1.36", "1.36.0", "latest", "-", "v1.36.0-gke.1", "1.36.0-gke.", "1.36.0-gke.1 ", ""]
)
def test_what_is_no_exact_version_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        gke.GkeVersion.parse(text)


def test_the_floors_lie_in_the_order_in_which_gke_learnt_things() -> None:
    floors = [
        versions.GKE_MINIMUM_V6E,
        versions.GKE_MINIMUM_INFERENCE_CRDS,
        versions.GKE_MINIMUM_ALL_CAPACITY,
        versions.GKE_MINIMUM_SLICE_CONTROLLER,
        versions.GKE_MINIMUM_SUPER_SLICING,
        versions.GKE_MINIMUM_SUB_SLICING,
        versions.GKE_DEFAULT,
    ]
    assert floors == sorted(floors, key=gke.GkeVersion.parse)
    assert gke.GkeVersion.parse(versions.GKE_DEFAULT).minor_version in versions.GKE_TESTED_MINORS


# --- reservations

name = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(name, name, st.none() | name, st.none() | name)
def test_a_written_value_reads_back_as_its_parts(
    project: str, reservation: str, block: str | None, sub_block: str | None
) -> None:
    written = reservations.value(project, reservation, block, sub_block if block else None)
    path = reservations.ReservationPath.parse(written)
    assert (path.project, path.name, path.block) == (project, reservation, block)
    assert path.sub_block == (sub_block if block else None)


BLOCK = {"name": "res-a", "project": "owner-project", "block": "block-0"}
FORMS = {
    "res-a": {"name": "res-a"},
    "res-a/reservationBlocks/block-0": {"name": "res-a", "block": "block-0"},
    "reservations/res-a/reservationBlocks/block-0": {"name": "res-a", "block": "block-0"},
    "res-a/reservationBlocks/block-0/reservationSubBlocks/sub-0": {
        "name": "res-a",
        "block": "block-0",
        "subBlocks": ["sub-0"],
    },
    "projects/owner-project/reservations/res-a/reservationBlocks/block-0": BLOCK,
    "projects/owner-project/zones/us-central1-ai1a/reservations/res-a": {
        "name": "res-a",
        "project": "owner-project",
        "zone": "us-central1-ai1a",
    },
    "https://www.googleapis.com/compute/v1/projects/owner-project/zones/us-central1-ai1a/reservations/res-a"
    "/reservationBlocks/block-0": BLOCK | {"zone": "us-central1-ai1a"},
    "//compute.googleapis.com/compute/beta/projects/owner-project/reservations/res-a/reservationBlocks/block-0": BLOCK,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_people_type_is_taken_apart(form: str) -> None:
    assert reservations.taken_apart(form) == FORMS[form]
    assert reservations.taken_apart({"name": form}) == FORMS[form]


def test_a_path_beside_keys_that_agree_is_one_reservation() -> None:
    typed = {
        "name": "projects/owner-project/reservations/res-a",
        "project": "owner-project",
        "block": "block-0",
    }
    assert reservations.taken_apart(typed) == BLOCK


@pytest.mark.parametrize(
    "typed",
    [
        {"name": "res-a", "block": "block-0", "subBlocks": ["sub-0"]},
        {"name": "res-a", "block": "reservationBlocks/block-0", "subBlocks": ["reservationSubBlocks/sub-0"]},
        {"name": "res-a", "block": "res-a/reservationBlocks/block-0", "subBlocks": ["sub-0"]},
        {"name": "res-a", "subBlocks": ["res-a/reservationBlocks/block-0/reservationSubBlocks/sub-0"]},
        {"name": "res-a", "subBlocks": ["reservationBlocks/block-0/reservationSubBlocks/sub-0"]},
    ],
)
def test_a_part_may_be_typed_as_a_path_too(typed: dict) -> None:
    assert reservations.taken_apart(typed) == {"name": "res-a", "block": "block-0", "subBlocks": ["sub-0"]}


@pytest.mark.parametrize(
    "typed",
    [
        {"name": "res-a", "block": "res-b/reservationBlocks/block-0"},
        {
            "name": "res-a",
            "project": "ours-1",
            "block": "projects/theirs/reservations/res-a/reservationBlocks/b-0",
        },
        {"name": "res-a", "block": "b-0", "subBlocks": ["reservationBlocks/b-1/reservationSubBlocks/sub-0"]},
        {"name": "res-a/reservationBlocks/b-0/reservationSubBlocks/s-0", "subBlocks": ["s-1"]},
    ],
)
def test_parts_that_disagree_are_refused(typed: dict) -> None:
    with pytest.raises(Refusal, match="two things"):
        reservations.taken_apart(typed)


@given(st.text(alphabet="abcRESresvationBlcksSubproject-/01 ", max_size=60))
def test_any_text_is_a_reservation_or_refused(text: str) -> None:
    try:
        path = reservations.ReservationPath.parse(text)
    except Refusal:
        return
    assert path.name


# --- ranges

ranges = st.builds(
    lambda address, length: str(IPv4Network((address, length), strict=False)),
    st.integers(0x0A000000, 0x0AFFFFFF),
    st.integers(9, 29),
)


@given(ranges, ranges)
def test_ranges_overlap_when_one_holds_the_other(first: str, second: str) -> None:
    one, other = IPv4Network(first), IPv4Network(second)
    assert networks.overlap(first, second) == (one.subnet_of(other) or other.subnet_of(one))


@given(ranges, st.integers(9, 28))
def test_a_suggested_range_is_free(taken: str, length: int) -> None:
    free = networks.free_range(length, [taken])
    assert free is None or not networks.overlap(free, taken)


@given(st.integers(1, 100_000))
def test_the_suggested_prefix_is_the_narrowest_that_fits(addresses: int) -> None:
    length = networks.prefix_for(addresses)
    assert 2 ** (32 - length) >= addresses
    assert length == 32 or 2 ** (31 - length) < addresses


# GKE's table "maximum Pods per node" → range of a node.
@pytest.mark.parametrize(
    ("pods", "length"), [(8, 28), (9, 27), (16, 27), (32, 26), (64, 25), (110, 24), (256, 23)]
)
def test_a_node_gets_twice_its_pods_in_addresses(pods: int, length: int) -> None:
    assert networks.node_pod_prefix(pods) == length


# --- machines


# GKE's former table of allocatable resources for n1 machines: GiB of memory and CPUs.
@pytest.mark.parametrize(
    ("machine_type", "memory_gib", "cpus"),
    [
        ("n1-standard-1", 2.7, 0.94),
        ("n1-standard-2", 5.7, 1.93),
        ("n1-standard-4", 12.3, 3.92),
        ("n1-standard-8", 26.6, 7.91),
        ("n1-standard-32", 111.2, 31.85),
    ],
)
def test_gke_keeps_what_its_table_says(machine_type: str, memory_gib: float, cpus: float) -> None:
    left = machines.allocatable(machine_type)
    assert left.cpu_millis / 1000 == pytest.approx(cpus, abs=0.005)
    assert left.memory_mib / 1024 == pytest.approx(memory_gib, abs=0.15)


def test_the_codelabs_system_pool_holds_everything_and_a_small_one_does_not() -> None:
    everything = machines.controller_requests(dynamic_slicing=True, endpoint_picker=True)
    assert machines.unplaced(everything, "n2-standard-32", 1) == []
    assert "the endpoint picker" in machines.unplaced(everything, "n2-standard-4", 10)


@given(st.sampled_from(["n2-standard-4", "e2-standard-8", "n2-standard-32"]), st.integers(1, 8))
def test_more_nodes_never_hold_less(machine_type: str, node_count: int) -> None:
    everything = machines.controller_requests(dynamic_slicing=True, endpoint_picker=True)
    fewer = machines.unplaced(everything, machine_type, node_count)
    more = machines.unplaced(everything, machine_type, node_count + 1)
    assert len(more) <= len(fewer)


# --- exclusions

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize("scope", ["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"])
def test_ninety_days_are_taken_in_every_scope(scope: str) -> None:
    maintenance.check_exclusion(NOW, NOW + timedelta(days=90), scope, NOW)


def test_an_exclusion_that_has_begun_but_not_ended_is_taken() -> None:
    maintenance.check_exclusion(NOW - timedelta(days=9), NOW + timedelta(days=1), "NO_UPGRADES", NOW)


def test_the_codelabs_exclusion_is_over() -> None:
    start, end = datetime(2026, 5, 18, tzinfo=UTC), datetime(2026, 8, 15, tzinfo=UTC)
    maintenance.check_exclusion(start, end, "NO_UPGRADES", start)
    with pytest.raises(Refusal, match="in the future"):
        maintenance.check_exclusion(start, end, "NO_UPGRADES", NOW)
