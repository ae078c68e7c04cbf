"""The import map: what is adopted, under which ids, and which stacks would lose what they adopt."""

import copy
import json

import pytest

import settings
from ops import import_map
from tests.unit import plans

NETWORK = {
    "name": "qwen-serving",
    "existing": {"network": "qwen-serving-main", "subnet": "qwen-serving-tpu", "proxySubnet": True},
}
POOLS = [
    {
        "name": "tpu7-pool",
        "cubes": 2,
        "adopted": True,
        "reservation": {"name": "tpu7-reservation", "block": "block-0"},
    }
]


@pytest.fixture(scope="module")
def recorded():
    return plans.changed("local", network=NETWORK, slicePools=POOLS)


@pytest.fixture(scope="module")
def found(recorded):
    return import_map.import_map(recorded)["resources"]


def test_ids_are_those_of_the_names_that_the_codelabs_scripts_give(found):
    assert {entry["name"]: entry["id"] for entry in found if "id" in entry} == {
        "cluster-cluster": "projects/sim-project/locations/us-central1/clusters/tpu-serving-cluster",
        "slice-pools-policy": "projects/sim-project/regions/us-central1/resourcePolicies/superslice-policy",
        "slice-pools-tpu7-pool-1": "sim-project/us-central1/tpu-serving-cluster/tpu7-pool-1",
        "slice-pools-tpu7-pool-2": "sim-project/us-central1/tpu-serving-cluster/tpu7-pool-2",
    }


def test_every_entry_would_get_the_urn_that_the_program_registers(found, recorded):
    types = {entry["name"]: entry["type"] for entry in found}
    for entry in found:
        parent = f"{types[entry['parent']]}$" if "parent" in entry else ""
        assert (
            f"urn:pulumi:test::tpu-slices::{parent}{entry['type']}::{entry['name']}" in recorded.registrations
        )


def test_parents_and_providers_are_declared_in_the_file_itself(found):
    names = {entry["name"] for entry in found}
    assert {entry[key] for entry in found for key in ("parent", "provider") if key in entry} <= names
    assert [entry["name"] for entry in found if "inputs" in entry] == ["google"]


def settings_of(**sections):
    config = copy.deepcopy(plans.config_of("local"))
    config |= {f"tpu-slices:{key}": value for key, value in sections.items()}
    return settings.load(config)


def test_a_stack_that_would_replace_what_it_adopts_is_refused_with_everything_that_is_missing():
    problems = import_map.obstacles(settings_of())
    assert [problem.split("`")[1] for problem in problems] == ["network.existing", "slicePools[0].adopted"]
    assert import_map.obstacles(settings_of(network=NETWORK, slicePools=POOLS)) == []


def test_the_command_prints_the_map_or_nothing(tmp_path, capsys):
    from ops.__main__ import main

    assert main(["import-map", "local"]) == 1
    assert capsys.readouterr().out == ""
    config = plans.config_of("local") | {"tpu-slices:network": NETWORK, "tpu-slices:slicePools": POOLS}
    path = tmp_path / "Pulumi.adopted.yaml"
    path.write_text(json.dumps({"config": config}))
    assert main(["import-map", "adopted", "--config-file", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["resources"]


def test_an_adopted_pool_keeps_the_identity_of_its_nodes_and_no_other_field(recorded):
    made = plans.planned("local").named("slice-pools-tpu7-pool-1").options["ignoreChanges"]
    kept = recorded.named("slice-pools-tpu7-pool-1").options["ignoreChanges"]
    assert sorted(set(kept) - set(made)) == [
        "nodeConfig.oauthScopes",
        "nodeConfig.serviceAccount",
        "nodeConfig.shieldedInstanceConfig",
    ]
