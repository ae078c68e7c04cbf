"""The plan of every committed stack, as a reviewer reads its change.

A chart is one entry, its insides are its own. After a change that is meant: `pytest tests/unit/test_golden_plans.py
--regenerate-golden`, and read the difference.
"""

import pytest
import yaml

from tests.unit import plans

GOLDEN = plans.ROOT / "tests" / "golden"


def rendered(stack: str) -> str:
    registrations = plans.planned(stack).registrations
    content = {
        urn: {"inputs": registrations[urn].inputs}
        | ({"options": registrations[urn].options} if registrations[urn].options else {})
        for urn in sorted(registrations)
    }
    return yaml.safe_dump(content, sort_keys=True, width=120)


@pytest.mark.parametrize("stack", plans.STACKS)
def test_the_plan_of_a_committed_stack_is_the_one_that_was_reviewed(stack, request):
    path = GOLDEN / f"{stack}.yaml"
    if request.config.getoption("--regenerate-golden"):
        path.write_text(rendered(stack), encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run this test with --regenerate-golden"
    assert yaml.safe_load(rendered(stack)) == yaml.safe_load(path.read_text(encoding="utf-8"))


def test_every_golden_plan_belongs_to_a_committed_stack():
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == plans.STACKS


def test_a_changed_value_changes_the_plan():
    found = plans.changed("local", queues={"clusterQueue": "another"})
    assert found.named("orchestration-cluster-queue").inputs["metadata"]["name"] == "another"
    assert plans.planned("local").named("orchestration-cluster-queue").inputs["metadata"]["name"] == "cq"
