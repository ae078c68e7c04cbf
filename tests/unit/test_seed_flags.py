"""The seeds' commands, flag by flag, against our plans: the table is `seed_flags.yaml`.

A row whose value does not mean the seed's says why. The other way round, every input of ours that no flag asks for
has its reason there. So a test fails when either side moves.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit import plans

# The seeds' own settings, in our contract.
CODELAB = {
    "gcp:project": "my-project",
    "tpu-slices:zone": "us-central1-ai1a",
    "tpu-slices:network": {"name": "qwen-serving"},
    "tpu-slices:cluster": {
        "name": "tpu-serving-cluster",
        "controlPlaneAccess": "public",
        "maintenanceExclusion": {
            "name": "no-upgrade-next-month",
            "start": "2100-05-18T00:00:00Z",
            "end": "2100-06-15T00:00:00Z",
        },
    },
    "tpu-slices:slicePools": [
        {
            "name": "tpu7-pool",
            "cubes": 2,
            "reservation": {"name": "res", "project": "owner-project", "block": "block-0"},
        }
    ],
}
TUTORIAL = {
    "gcp:project": "my-project",
    "tpu-slices:zone": "us-east1-d",
    "tpu-slices:cluster": {"name": "my-cluster", "controlPlaneAccess": "public"},
    "tpu-slices:multihostPools": [
        {"name": "multihost-np", "topology": "4x4", "placement": "compact"},
        {"name": "dis-v6e-8-1-np", "topology": "2x4"},
        {"name": "dis-v6e-8-2-np", "topology": "2x4"},
    ],
}
UNKNOWN = "[unknown]"
SCOPE = ["https://www.googleapis.com/auth/cloud-platform"]


@dataclass(frozen=True)
class Row:
    """One flag of one command."""

    flag: str
    seed: Any
    """The flag's value as the seed gives it; True for a flag without one."""
    resource: str
    """Logical name of our resource."""
    path: str
    """Our property."""
    ours: Any
    """Our property's value."""
    why: str | None = None
    """Why ours does not mean the same; None when it does."""


TABLE = yaml.safe_load((Path(__file__).parent / "seed_flags.yaml").read_text(encoding="utf-8"))
CODELAB_ROWS, TUTORIAL_ROWS = (
    [Row(**{"ours": row["seed"], **row}) for row in TABLE[seed]] for seed in ("codelab", "tutorial")
)
BEYOND_THE_SEED: dict[str, dict[str, str]] = TABLE["beyondTheSeed"]
TYPES_BEYOND_THE_SEED: dict[str, str] = TABLE["typesBeyondTheSeed"]


@pytest.fixture(scope="module")
def codelab():
    return plans.record(CODELAB)


@pytest.fixture(scope="module")
def tutorial():
    return plans.record(TUTORIAL)


def at(inputs: dict[str, Any], path: str) -> Any:
    for part in path.split("."):
        inputs = inputs[part]
    return inputs


def leaves(value: Any, path: str = ""):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    else:
        yield path


@pytest.mark.parametrize("row", CODELAB_ROWS, ids=lambda row: f"{row.resource} {row.flag}")
def test_a_flag_of_the_codelab_is_our_property(codelab, row):
    assert at(codelab.named(row.resource).inputs, row.path) == row.ours


@pytest.mark.parametrize("row", TUTORIAL_ROWS, ids=lambda row: f"{row.resource} {row.flag}")
def test_a_flag_of_the_tutorial_is_our_property(tutorial, row):
    assert at(tutorial.named(row.resource).inputs, row.path) == row.ours


# gcloud's words for what the API spells otherwise.
SPELLINGS = {
    "custom": False,
    "specific": "SPECIFIC_RESERVATION",
    "standard": "CHANNEL_STANDARD",
    "fast-rollout": "ROLLOUT_PLAN_FAST_ROLLOUT",
    "cloud-platform": SCOPE,
    "all": [{"protocol": "all"}],
    "qwen-serving-main": UNKNOWN,
    "qwen-serving-tpu": UNKNOWN,
    "v0.8.0": "0.8.0",
}


def means_the_same(row: Row) -> bool:
    seed, ours = row.seed, row.ours
    if seed is True:
        is_on = ours is True or (ours is False and row.path.endswith(".disabled"))
        return is_on or ours in ("ADVANCED_DATAPATH", "VPC_NATIVE")
    if (
        isinstance(seed, str)
        and isinstance(ours, str)
        and ours.removeprefix("oci://").lower() == seed.lower()
    ):
        return True
    return ours in (seed, [seed]) or (isinstance(seed, str) and SPELLINGS.get(seed) == ours)


@pytest.mark.parametrize("row", CODELAB_ROWS + TUTORIAL_ROWS, ids=lambda row: f"{row.resource} {row.flag}")
def test_a_row_says_why_when_ours_does_not_mean_the_same(row):
    assert means_the_same(row) == (row.why is None)


@pytest.mark.parametrize(("plan", "rows"), [("codelab", CODELAB_ROWS), ("tutorial", TUTORIAL_ROWS)])
def test_every_input_of_ours_comes_from_a_flag_or_has_its_reason(plan, rows, request):
    asked_for = {(row.resource, row.path) for row in [*rows, *CODELAB_ROWS]}
    unexplained = [
        f"{found.name} {path}"
        for found in request.getfixturevalue(plan).registrations.values()
        if found.type_token.startswith("gcp:") and found.type_token not in TYPES_BEYOND_THE_SEED
        for path in leaves(found.inputs)
        if not any(name == found.name and path.startswith(asked) for name, asked in asked_for)
        and path not in BEYOND_THE_SEED.get(found.type_token, {})
    ]
    assert unexplained == []


def test_every_reason_is_needed_by_an_input(codelab, tutorial):
    used = {
        (found.type_token, path)
        for plan in (codelab, tutorial)
        for found in plan.registrations.values()
        for path in leaves(found.inputs)
    }
    assert [
        (kind, path) for kind, paths in BEYOND_THE_SEED.items() for path in paths if (kind, path) not in used
    ] == []
    assert TYPES_BEYOND_THE_SEED.keys() <= {kind for kind, _ in used}


def test_an_input_that_nobody_asked_for_would_be_found(codelab):
    paths = set(leaves({**codelab.named("network-network").inputs, "enableUlaInternalIpv6": True}))
    assert "enableUlaInternalIpv6" in paths - set(BEYOND_THE_SEED["gcp:compute/network:Network"])
