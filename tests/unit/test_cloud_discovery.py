"""Every `gcp:` input is judged by Google's own discovery documents."""

import pytest

from simulator.cloud import discovery
from simulator.cloud.wire import UNKNOWN

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"

A_TPU_POOL = {
    "name": "tpu7-pool-1",
    "cluster": UNKNOWN,
    "location": "us-central1",
    "nodeLocations": ["us-central1-ai1a"],
    "nodeCount": 16,
    "maxPodsPerNode": 15,
    "placementPolicy": {"type": "", "policyName": "superslice-policy"},
    "upgradeSettings": {"maxSurge": 0, "maxUnavailable": 16},
    "nodeConfig": {
        "machineType": "tpu7x-standard-4t",
        "labels": {"google.com/tpu": "present"},
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": ["projects/p/reservations/r/reservationBlocks/b"],
        },
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    },
}


def paths(token, inputs):
    return [problem.path for problem in discovery.problems(token, inputs)]


def test_a_complete_tpu_pool_is_known_to_googles_api():
    assert paths(NODE_POOL, A_TPU_POOL) == []


def test_a_field_that_the_api_does_not_have_is_refused():
    assert paths(NODE_POOL, {"nodeConfig": {"reservationAffinity": {"block": "b"}}}) == [
        "nodeConfig.reservationAffinity.block"
    ]


def test_a_value_outside_the_enum_is_refused():
    assert paths(POLICY, {"workloadPolicy": {"type": "HIGH_THROUGHPUTS"}}) == ["workloadPolicy.type"]


def test_an_empty_placement_type_counts_as_not_given():
    assert paths(NODE_POOL, {"placementPolicy": {"type": ""}}) == []


def test_a_wrong_type_is_refused():
    assert paths(NODE_POOL, {"nodeCount": "16"}) == ["nodeCount"]


def test_a_field_that_only_google_writes_is_refused():
    assert paths(CLUSTER, {"endpoint": "10.0.0.1"}) == ["endpoint"]


def test_keys_of_a_label_map_are_data_and_not_fields():
    assert paths(CLUSTER, {"resourceLabels": {"anything": "goes"}}) == []


def test_inputs_that_live_elsewhere_in_the_api_are_found_there():
    inputs = {
        "datapathProvider": "ADVANCED_DATAPATH",
        "maintenancePolicy": {
            "maintenanceExclusions": [{"exclusionName": "x", "exclusionOptions": {"scope": "NO_UPGRADES"}}]
        },
    }
    uses = {use.input_path: use for use in discovery.fields(CLUSTER, inputs)}
    assert uses["datapathProvider"].rest_path == "networkConfig.datapathProvider"
    scope = uses["maintenancePolicy.maintenanceExclusions[].exclusionOptions.scope"]
    assert (
        scope.rest_path
        == "maintenancePolicy.window.maintenanceExclusions{}.maintenanceExclusionOptions.scope"
    )
    assert discovery.problems(CLUSTER, inputs) == []


def test_a_renamed_enum_is_still_checked_at_its_place():
    assert paths(CLUSTER, {"datapathProvider": "CILIUM"}) == ["datapathProvider"]


def test_an_input_without_a_field_tells_why():
    [use] = discovery.fields(CLUSTER, {"deletionProtection": True})
    assert use.rest_path is None
    assert use.without_field_because


@pytest.mark.parametrize("value", [UNKNOWN, "[unknown]", "[secret]"])
def test_values_that_nobody_knows_yet_are_judged_by_their_place(value):
    assert paths(NODE_POOL, {"nodeCount": value}) == []
    assert paths(NODE_POOL, {"nodeCont": value}) == ["nodeCont"]


def test_reasons_that_no_plan_needs_are_listed():
    unused = discovery.unused_entries([(NODE_POOL, A_TPU_POOL)])
    assert unused == [f"{NODE_POOL} project"]


def test_every_place_of_a_renamed_input_is_in_googles_api():
    assert discovery.lost_entries() == []


def test_a_place_that_the_api_has_not_is_found(monkeypatch):
    monkeypatch.setitem(discovery.RENAMED, POLICY, {"workloadPolicy": "workloadPolicies"})
    assert discovery.lost_entries() == [f"{POLICY} workloadPolicy"]


def test_a_type_without_a_rest_message_is_named():
    with pytest.raises(KeyError, match="gcp:sql/database:Database"):
        discovery.fields("gcp:sql/database:Database", {})


def test_a_problem_names_the_element_of_the_list_and_what_lies_below_is_not_said_again():
    nat = {"subnetworks": [{"name": "a"}, {"name": "b", "rangesToNat": ["ALL_IP_RANGES"]}]}
    assert paths("gcp:compute/routerNat:RouterNat", nat) == ["subnetworks[1].rangesToNat"]
