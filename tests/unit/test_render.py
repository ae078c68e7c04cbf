"""`python -m ops render`: a plan on stdout, or every problem on stderr."""

import json
import subprocess
import sys

import pytest
import yaml

from ops import render
from tests.unit import plans


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ops", "render", *arguments],
        cwd=plans.ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "HOME": "/nowhere"},
    )


@pytest.fixture
def config_file(tmp_path):
    def write(**changes):
        path = tmp_path / "Pulumi.given.yaml"
        path.write_text(yaml.safe_dump({"config": plans.config_of("local") | changes}), encoding="utf-8")
        return path

    return write


def test_a_plan_needs_no_engine_cloud_passphrase_or_home_and_is_json():
    result = run("prod")
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    assert [entry["urn"] for entry in plan] == sorted(entry["urn"] for entry in plan)
    assert {frozenset(entry) for entry in plan} == {
        frozenset(("urn", "type", "name", "parent", "provider", "dependsOn", "inputs"))
    }


def test_wrong_settings_are_all_told_on_stderr_with_nothing_on_stdout(config_file):
    path = config_file(**{"tpu-slices:zone": "us-central1", "tpu-slices:slicePool": [], "gcp:project": "X"})
    result = run("given", "--config-file", str(path))
    assert (result.returncode, result.stdout) == (1, "")
    for key in ("tpu-slices:zone", "tpu-slices:slicePool", "gcp:project"):
        assert f"`{key}`" in result.stderr


def test_an_unknown_stack_is_told_which_there_are():
    result = run("nowhere")
    assert (result.returncode, result.stdout) == (1, "")
    assert "Pulumi.nowhere.yaml" in result.stderr
    assert ", ".join(plans.STACKS) in result.stderr


def test_a_section_without_a_component_is_refused_not_left_out(config_file):
    serving = {"model": {"bucket": "weights", "path": "models/x"}}
    result = run("given", "--config-file", str(config_file(**{"tpu-slices:pdServing": serving})))
    assert (result.returncode, result.stdout) == (1, "")
    assert "`pdServing` must not be given yet" in result.stderr


def test_a_closed_secret_is_carried_and_never_opened_or_shown(config_file):
    result = run(
        "given", "--config-file", str(config_file(**{"tpu-slices:hfToken": {"secure": "AAABcanary"}}))
    )
    assert result.returncode == 0, result.stderr
    assert "canary" not in result.stdout + result.stderr


def test_what_only_a_cloud_can_say_is_unknown_and_the_kubeconfig_is_a_secret():
    plan = {entry["name"]: entry for entry in render.entries(plans.planned("local"))}
    assert plan["network-subnet"]["inputs"]["network"] == "[unknown]"
    assert plan["kubernetes"]["inputs"]["kubeconfig"] == "[secret]"


def test_a_chart_is_one_entry_with_name_version_and_values():
    plan = {entry["name"]: entry for entry in render.entries(plans.planned("local"))}
    assert {"name", "version", "values"} <= set(plan["orchestration-kueue"]["inputs"])
    assert not [name for name in plan if name.startswith("orchestration-kueue:")]


def test_objects_are_written_one_a_file_and_read_back_as_they_were(tmp_path):
    written = render.write_objects(plans.planned("local"), tmp_path)
    assert len(written) == len(list(tmp_path.iterdir()))
    queue = yaml.safe_load((tmp_path / "clusterqueue-cq.yaml").read_text())
    assert queue == plans.planned("local").named("orchestration-cluster-queue").inputs
    assert (tmp_path / "localqueue-llm-d-pd-disaggregation-lq.yaml").exists()
    assert not [path.name for path in written if "chart" in path.name]


def test_every_top_level_key_is_described_in_the_project_file():
    from settings import Settings

    text = (plans.ROOT / "Pulumi.yaml").read_text(encoding="utf-8")
    keys = [field.alias for field in Settings.model_fields.values() if field.alias != "project"]
    assert [key for key in keys if f"#   tpu-slices:{key} " not in text] == []
    assert [word for word in text.split() if word.startswith("tpu-slices:")] == [
        f"tpu-slices:{key}" for key in keys
    ]


def test_the_project_disables_every_default_provider():
    project = yaml.safe_load((plans.ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    assert project["config"]["pulumi:disable-default-providers"] == {"value": ["*"]}
