"""The recorder says what the engine would have been told."""

import pulumi
import pytest

from ops import recording
from tests.unit import plans


def run(program, **more):
    return recording.record(program, stack_name="test", config={}, **more)


class Thing(pulumi.CustomResource):
    made: pulumi.Output[str]

    def __init__(self, name, properties=None, opts=None):
        super().__init__("ours:index:Thing", name, {"made": None, **(properties or {})}, opts)


class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("ours:index:Box", name, {}, opts)
        self.thing = Thing(f"{name}-thing", opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({"thing": self.thing.made})


def test_a_second_registration_of_one_urn_is_refused():
    def program():
        Thing("twin")
        Thing("twin")

    with pytest.raises(ValueError, match="must be registered once"):
        run(program)


def test_a_resource_of_ours_without_an_explicit_provider_is_refused():
    import pulumi_gcp as gcp

    def program():
        gcp.compute.Network("stray")

    with pytest.raises(ValueError, match="explicit provider"):
        run(program)


def test_parents_and_nested_urns_are_spelt_as_the_engine_spells_them():
    found = run(lambda: Box("outer", pulumi.ResourceOptions(parent=Box("around"))))
    assert found.named("outer-thing").urn == (
        "urn:pulumi:test::tpu-slices::ours:index:Box$ours:index:Box$ours:index:Thing::outer-thing"
    )
    assert found.named("outer-thing").parent == found.named("outer").urn
    assert found.named("around").parent is None


def test_explicit_and_data_dependencies_are_both_recorded():
    def program():
        source, other = Thing("source"), Thing("other")
        Thing("sink", {"value": source.made}, pulumi.ResourceOptions(depends_on=[other]))

    found = run(program)
    assert found.named("sink").depends_on == (found.named("other").urn, found.named("source").urn)


@pytest.mark.parametrize(("preview", "seen"), [(True, recording.UNKNOWN), (False, "yes")])
def test_outputs_are_unknown_in_preview_and_known_in_an_update(preview, seen):
    def program():
        Thing("sink", {"value": Thing("source").made})

    found = run(program, preview=preview, outputs=lambda _type, _inputs: {"made": "yes"})
    assert found.named("sink").inputs["value"] == seen


def test_secrets_are_recorded_as_such_and_never_in_clear():
    def program():
        Thing(
            "holder",
            {"token": pulumi.Output.secret("s3cr3t"), "inside": {"deep": pulumi.Output.secret("s3cr3t")}},
        )

    assert "s3cr3t" not in repr(run(program))
    assert run(program).named("holder").inputs["token"] == recording.SECRET


def test_outputs_of_components_are_recorded():
    found = run(lambda: Box("outer"), preview=False, outputs=lambda _type, _inputs: {"made": "yes"})
    assert found.outputs[found.named("outer").urn] == {"thing": "yes"}


@pytest.mark.parametrize("stack", plans.STACKS)
def test_every_resource_of_a_stack_hangs_below_a_component_or_is_a_provider(stack):
    strays = [
        found.name
        for found in plans.planned(stack).registrations.values()
        if found.parent is None and not found.type_token.startswith(("tpu-slices:", "pulumi:providers:"))
    ]
    assert strays == []


def test_a_components_registered_outputs_are_its_public_outputs():
    import importlib
    import pkgutil

    import components

    public = {
        value.__name__: {
            name for name, hint in getattr(value, "__annotations__", {}).items() if "Output[" in str(hint)
        }
        for info in pkgutil.iter_modules(components.__path__)
        for value in vars(importlib.import_module(f"components.{info.name}")).values()
        if isinstance(value, type) and issubclass(value, pulumi.ComponentResource)
    }
    registered: dict[str, set[str]] = {}
    for found in map(plans.deployed, plans.STACKS):
        for urn, outputs in found.outputs.items():
            if urn in found.registrations:
                registered.setdefault(found.registrations[urn].type_token.rpartition(":")[2], set()).update(
                    outputs
                )
    # An output that is None in one stack, as the queue of a stack without cubes, has a value in another.
    assert len(registered) == 7
    assert registered == {name: public[name] for name in registered}


@pytest.mark.parametrize("stack", plans.STACKS)
def test_an_update_registers_the_same_resources_as_the_first_preview(stack):
    assert set(plans.deployed(stack).registrations) == set(plans.planned(stack).registrations)


@pytest.mark.parametrize("stack", plans.STACKS)
def test_once_the_cloud_has_answered_nothing_but_secrets_is_hidden(stack):
    assert recording.UNKNOWN not in repr(
        [found.inputs for found in plans.deployed(stack).registrations.values()]
    )
