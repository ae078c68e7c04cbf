"""A change updates or replaces as it does in the real provider."""

import collections.abc
import copy
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import _types

from simulator.cloud import diffing
from simulator.cloud.registry import KINDS
from simulator.cloud.replacements import KEPT_WHEN_UNSET, REPLACES, UNORDERED, VOLUNTEERED
from simulator.cloud.sdk_schema import ResourceSchema
from simulator.cloud.wire import UNKNOWN
from tests.fakes.cloud_region import CLUSTER, NETWORK, POLICY, TOKENS, tpu_pool


def diff(kind, change, inputs, state=None, ignored=()):
    new = copy.deepcopy(inputs)
    change(new)
    return diffing.compare(KINDS[TOKENS[kind]], inputs, state or inputs, new, list(ignored))


def replaces(kind, change, inputs):
    return diff(kind, change, inputs).replaces


def test_nothing_changed_is_nothing():
    assert diff("NodePool", lambda new: None, tpu_pool()).differences == []


@pytest.mark.parametrize(
    ("change", "replaced"),
    [
        (lambda pool: pool.update(nodeCount=8), []),
        (lambda pool: pool.update(version="1.36.1-gke.1204000"), []),
        (lambda pool: pool["upgradeSettings"].update(maxUnavailable=4), []),
        (lambda pool: pool["nodeConfig"].update(labels={"a": "b"}), []),
        # In-place for the provider; whether GKE can do it is GKE's answer.
        (lambda pool: pool["nodeConfig"].update(machineType="ct6e-standard-4t"), []),
        (lambda pool: pool["placementPolicy"].update(type="COMPACT"), []),
        (lambda pool: pool["placementPolicy"].update(policyName="other"), ["placementPolicy"]),
        (lambda pool: pool.pop("placementPolicy"), ["placementPolicy"]),
        (lambda pool: pool["nodeConfig"]["reservationAffinity"].update(values=["x"]), ["nodeConfig"]),
        (lambda pool: pool["nodeConfig"].update(spot=True), ["nodeConfig"]),
        (lambda pool: pool["nodeConfig"].update(serviceAccount="x@y"), ["nodeConfig"]),
        (lambda pool: pool.update(maxPodsPerNode=15), ["maxPodsPerNode"]),
        (lambda pool: pool.update(name="other"), ["name"]),
    ],
)
def test_changes_of_a_node_pool(change, replaced):
    found = diff("NodePool", change, tpu_pool())
    assert found.replaces == replaced
    assert found.differences


def test_a_pool_with_a_fixed_name_is_deleted_before_its_replacement():
    def new_policy(pool):
        pool["placementPolicy"]["policyName"] = "other"

    assert diff("NodePool", new_policy, tpu_pool()).deletes_before_replace
    renamed = diff("NodePool", lambda pool: pool.update(name="other"), tpu_pool())
    assert not renamed.deletes_before_replace


def test_a_named_by_us_resource_is_replaced_side_by_side():
    inputs = {**NETWORK, "__defaults": ["name"]}
    found = diff("Network", lambda new: new.update(description="x"), inputs)
    assert found.replaces == ["description"]
    assert not found.deletes_before_replace


def test_topology_and_mode_of_a_policy_cannot_be_edited():
    mode = replaces(
        "ResourcePolicy",
        lambda new: new["workloadPolicy"].update(acceleratorTopologyMode="AUTO_CONNECT"),
        POLICY,
    )
    assert mode == ["workloadPolicy"]


def test_a_version_bump_of_a_cluster_is_an_update():
    assert replaces("Cluster", lambda new: new.update(minMasterVersion="1.36.1-gke.1"), CLUSTER) == []
    assert replaces("Cluster", lambda new: new.update(datapathProvider="ADVANCED_DATAPATH"), CLUSTER) == [
        "datapathProvider"
    ]


def test_the_order_of_a_set_does_not_matter():
    inputs = {**CLUSTER, "nodeLocations": ["us-central1-a", "us-central1-b"]}
    assert diff("Cluster", lambda new: new["nodeLocations"].reverse(), inputs).differences == []


def test_the_order_of_a_list_matters():
    ranges = [
        {"rangeName": "a", "ipCidrRange": "10.1.0.0/20"},
        {"rangeName": "b", "ipCidrRange": "10.2.0.0/20"},
    ]
    found = diff("Subnetwork", lambda new: new["secondaryIpRanges"].reverse(), {"secondaryIpRanges": ranges})
    assert "secondaryIpRanges[0].rangeName" in [item.path for item in found.differences]


@pytest.mark.parametrize(
    "spelling",
    [
        "qwen-serving-main",
        "projects/sim-project/global/networks/qwen-serving-main",
        "https://www.googleapis.com/compute/v1/projects/sim-project/global/networks/qwen-serving-main",
    ],
)
def test_a_network_has_several_spellings(spelling):
    assert diff("Cluster", lambda new: new.update(network=spelling), CLUSTER).differences == []
    assert replaces("Cluster", lambda new: new.update(network="other"), CLUSTER) == ["network"]


def test_an_unset_value_equals_its_default_and_zero():
    assert (
        diff("Network", lambda new: new.update(deleteDefaultRoutesOnCreate=False), NETWORK).differences == []
    )
    assert (
        diff("Firewall", lambda new: new.pop("priority"), {"name": "wall", "priority": 1000}).differences
        == []
    )
    assert diff("Firewall", lambda new: new.pop("priority"), {"name": "wall", "priority": 900}).differences


def test_what_google_fills_in_stays_when_the_program_stops_giving_it():
    assert diff("Network", lambda new: new.pop("mtu"), NETWORK).differences == []
    assert diff("Cluster", lambda new: new["addonsConfig"].clear(), CLUSTER).differences == []


def test_what_google_volunteers_is_a_change_until_it_is_ignored():
    pool = tpu_pool()
    state = {**pool, "placementPolicy": {**pool["placementPolicy"], "tpuTopology": "4x4x4"}}
    found = diff("NodePool", lambda new: None, pool, state)
    assert [item.path for item in found.differences] == ["placementPolicy.tpuTopology"]
    assert found.replaces == []
    ignored = diff("NodePool", lambda new: None, pool, state, ["placementPolicy.tpuTopology"])
    assert ignored.differences == []


def test_an_ignored_path_covers_what_lies_below_it():
    def other_label(new):
        new["nodeConfig"]["labels"] = {"a": "b"}

    assert diff("NodePool", other_label, tpu_pool(), ignored=["nodeConfig"]).differences == []
    assert diff("NodePool", other_label, tpu_pool(), ignored=["nodeCon"]).differences


def test_a_value_that_is_not_known_yet_is_a_change():
    assert replaces("NodePool", lambda new: new.update(cluster=UNKNOWN), tpu_pool()) == ["cluster"]


def test_a_key_with_a_dot_is_written_as_the_engine_writes_it():
    def label(new):
        new["nodeConfig"]["labels"] = {"google.com/tpu": "present"}

    old = tpu_pool()
    old["nodeConfig"]["labels"] = {"team": "a"}
    assert 'nodeConfig.labels["google.com/tpu"]' in [
        item.path for item in diff("NodePool", label, old).differences
    ]


def test_every_kind_says_what_replaces_it():
    assert set(REPLACES) == set(KINDS)


def paths_of(table):
    for token, paths in table.items():
        for path in paths:
            yield token, path.removesuffix(".*")


@pytest.mark.parametrize("table", [REPLACES, UNORDERED, KEPT_WHEN_UNSET, VOLUNTEERED])
def test_every_path_of_the_tables_is_an_input_of_the_sdk(table):
    for token, path in paths_of(table):
        assert knows(KINDS[token].schema, path), f"{token} {path}"


def knows(schema: ResourceSchema, path: str) -> bool:
    """True if the SDK's input classes have that path."""
    types = schema.input_types
    for name in path.split("."):
        if name not in types:
            return False
        inner = _types.unwrap_type(types[name])
        if typing.get_origin(inner) is collections.abc.Sequence:
            inner = _types.unwrap_type(typing.get_args(inner)[0])
        is_object = isinstance(inner, type) and _types.is_input_type(inner)
        types = _types.input_type_types(inner) if is_object else {}
    return True


def test_the_check_of_paths_can_fail():
    assert not knows(KINDS[TOKENS["NodePool"]].schema, "nodeConfig.machineTyp")


@given(st.sampled_from(["a", "b", "c"]), st.lists(st.sampled_from(["x", "y", "z"]), max_size=3))
def test_comparing_anything_with_itself_finds_nothing(name, values):
    inputs = {**CLUSTER, "name": name, "nodeLocations": values}
    assert diff("Cluster", lambda new: None, inputs).differences == []
