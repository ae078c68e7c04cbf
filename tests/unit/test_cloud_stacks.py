"""What the committed stacks ask of Google is known to the SDK, to Google's API and to the simulated region."""

from pathlib import Path

import pytest
import yaml

from simulator.cloud import discovery
from simulator.cloud.kinds.base import ProviderDefaults
from simulator.cloud.provider import token_of
from simulator.cloud.registry import KINDS
from simulator.cloud.wire import UNKNOWN

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.yaml"))
# No committed stack has one (the dates are each user's own), yet the program can make it.
AN_EXCLUSION = (
    "gcp:container/cluster:Cluster",
    {"maintenancePolicy": {"maintenanceExclusions": [{"exclusionName": "no-upgrade"}]}},
)


def with_unknowns(value):
    if isinstance(value, dict):
        return {key: with_unknowns(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_unknowns(item) for item in value]
    return UNKNOWN if value == "[unknown]" else value


def plan_of(path):
    plan = yaml.safe_load(path.read_text())
    for urn, resource in plan.items():
        if token_of(urn).startswith("gcp:"):
            yield token_of(urn), with_unknowns(resource["inputs"])


def problems_of(token, inputs):
    kind = KINDS[token]
    filled = kind.fill(inputs, ProviderDefaults("example", "us-central1"))
    return [
        *kind.schema.problems(inputs),
        *discovery.problems(token, inputs),
        *kind.own_problems(filled),
    ]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_input_of_a_committed_stack_is_known(path):
    plan = list(plan_of(path))
    assert plan
    for token, inputs in plan:
        assert problems_of(token, inputs) == [], f"{token} {inputs.get('name')}"


def test_a_misspelt_input_would_be_found():
    token, inputs = next(item for item in plan_of(GOLDEN[0]) if item[0] == "gcp:container/nodePool:NodePool")
    assert problems_of(token, {**inputs, "nodeCont": 3})


def test_every_reason_for_an_input_without_a_field_is_needed_by_some_stack():
    plans = [item for path in GOLDEN for item in plan_of(path)]
    assert discovery.unused_entries([*plans, AN_EXCLUSION]) == []
