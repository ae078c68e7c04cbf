"""Where live checks stand in the program, and that every committed stack passes them on its own region."""

import asyncio
import copy
import json
from datetime import UTC, datetime

import pulumi
import pytest
import yaml

from livechecks import checking, gathering
from livechecks.findings import Verdict, refusal_of, texts
from ops import recording
from preflight import stackfile
from simulator.cloud import derive, region_file
from simulator.cloud.provider import Session
from tests.fakes import cloud_region
from tests.fakes import google_answers as fake
from tests.unit import plans


def test_the_program_asks_before_its_first_resource(monkeypatch):
    def refuse(settings, provider):
        assert provider._name == "google"
        raise pulumi.RunError(f"asked for {settings.project}")

    made = []
    monkeypatch.setattr(checking, "check", refuse)
    monkeypatch.setattr(recording, "_unasked", dict)
    register = recording.RecordingMonitor.RegisterResource
    monkeypatch.setattr(
        recording.RecordingMonitor,
        "RegisterResource",
        lambda self, request: made.append(request.type) or register(self, request),
    )
    texts_, secret_keys = stackfile.engine_config(plans.config_of("local"))
    with pytest.raises(pulumi.RunError, match="asked for sim-project"):
        recording.record(stack_name="test", config=texts_, secret_keys=secret_keys)
    assert set(made) <= {"pulumi:pulumi:Stack", "pulumi:providers:gcp"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"liveChecks": False}),
        ({"mayLoseCapacity": True}, {"mayLoseCapacity": True, "liveChecks": False}),
        ({"liveChecks": "yes"}, {"liveChecks": "yes"}),
        ([], []),
    ],
)
def test_a_plan_asks_nothing_and_hides_no_mistake(before, after):
    found = recording._unasked({"tpu-slices:safety": json.dumps(before)})
    assert json.loads(found["tpu-slices:safety"]) == after


def test_a_plan_leaves_what_is_no_json_to_the_settings():
    assert recording._unasked({"tpu-slices:safety": "{"}) == {"tpu-slices:safety": "{"}


@pytest.mark.parametrize("stack", plans.STACKS)
def test_a_committed_stack_passes_on_the_region_derived_from_it(tmp_path, stack):
    settings = fake.settings_of(stack)
    document = yaml.safe_load(region_file.dump(derive.region_of(settings)))
    own = document["projects"][0]
    own["enabledApis"] += ["compute.googleapis.com", "container.googleapis.com"]
    own["previewFeatures"] = ["ai-zones-visibility"]
    region = cloud_region.CloudRegion(tmp_path, document)
    session = Session()
    region.provider.configure(session, {"project": settings.project, "region": settings.region})

    async def ask(token, arguments):
        return copy.deepcopy(region.provider.invoke(session, token, dict(arguments)))

    found = asyncio.run(gathering.gather(settings, ask, lambda *_: None))
    results = list(checking.judge(settings, found, datetime.now(UTC)))
    assert refusal_of(results) is None
    assert texts(results, Verdict.CAUTION) == []
    manual = "\n".join(texts(results, Verdict.MANUAL))
    assert manual.count("not checked") == manual.count("the provider has no access token to share")
