"""Facts that stand elsewhere too, held against that place: requirements, manifests, Google's API documents."""

import ast
import json
import re
import sys
from pathlib import Path

import googleapiclient.discovery_cache
import pytest
import yaml

from facts import pathways, reservations, versions
from preflight.explain import _choices
from settings import Settings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = Path(googleapiclient.discovery_cache.__file__).parent / "documents"


def discovered(api: str, schema: str, field: str) -> list[str]:
    document = json.loads((DOCUMENTS / f"{api}.json").read_text())
    return document["schemas"][schema]["properties"][field]["enum"]


def chosen(section: str, field: str) -> set[str]:
    definition = Settings.model_json_schema(by_alias=True)["$defs"][section]["properties"][field]
    return set(_choices(definition))


def test_exclusion_scopes_are_those_of_the_container_api() -> None:
    assert chosen("MaintenanceExclusion", "scope") == set(
        discovered("container.v1", "MaintenanceExclusionOptions", "scope")
    )


def test_host_maintenance_is_what_the_container_api_knows() -> None:
    known = set(discovered("container.v1beta1", "HostMaintenancePolicy", "maintenanceInterval"))
    assert chosen("SlicePool", "hostMaintenance") == known - {"MAINTENANCE_INTERVAL_UNSPECIFIED"}


def test_the_affinity_key_is_the_one_that_the_container_api_describes() -> None:
    document = json.loads((DOCUMENTS / "container.v1.json").read_text())
    described = document["schemas"]["ReservationAffinity"]["properties"]["key"]["description"]
    assert reservations.AFFINITY_KEY in described


def test_a_wrong_scope_would_be_seen() -> None:
    assert "no_upgrades" not in discovered("container.v1", "MaintenanceExclusionOptions", "scope")


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("pulumi", versions.PULUMI_SDK),
        ("pulumi-gcp", versions.PULUMI_GCP),
        ("pulumi-kubernetes", versions.PULUMI_KUBERNETES),
    ],
)
def test_the_locked_sdks_are_those_of_the_ledger(package: str, version: str) -> None:
    assert re.search(
        rf"^{package}=={re.escape(version)}\b", (ROOT / "requirements.in").read_text(), re.MULTILINE
    )


def test_the_slice_controller_manifest_names_the_ledgers_image() -> None:
    deployment = yaml.safe_load((ROOT / "manifests/slice-controller/deployment.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{versions.SLICE_CONTROLLER_IMAGE}:{versions.SLICE_CONTROLLER}"


def test_the_slice_controller_asks_for_what_the_capacity_rule_counts() -> None:
    from facts import machines

    deployment = yaml.safe_load((ROOT / "manifests/slice-controller/deployment.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    requests = container["resources"]["requests"]
    assert int(requests["cpu"]) * 1000 == machines.SLICE_CONTROLLER.cpu_millis
    assert int(requests["memory"].removesuffix("Gi")) * 1024 == machines.SLICE_CONTROLLER.memory_mib


def floating(version: str) -> bool:
    return re.search(r"\d+\.\d+|\d{8}", version) is None


def test_nothing_in_the_ledger_floats() -> None:
    entries = {
        name: value
        for name, value in vars(versions).items()
        if name.isupper() and isinstance(value, str) and not name.endswith(("_IMAGE", "_CHART", "_CHANNEL"))
    }
    assert len(entries) > 15
    assert [name for name, value in entries.items() if floating(value)] == []
    # The control.
    assert all(floating(value) for value in ("latest", "main", "v0", "nightly"))


def test_images_and_charts_carry_no_version_of_their_own() -> None:
    for name, value in vars(versions).items():
        if name.endswith(("_IMAGE", "_CHART")):
            assert ":" not in value.removeprefix("oci://"), name


def test_pathways_layouts_have_the_group_sizes_of_the_tutorial() -> None:
    # Both manifests: size 5, and instance types tpuv6e:4x4 and tpuv6e:2x4.
    assert {mode: layout.group_size for mode, layout in pathways.LAYOUTS.items()} == {
        "single": 5,
        "disaggregated": 5,
    }
    assert pathways.LAYOUTS["disaggregated"].instance_type == "tpuv6e:2x4"


def foreign_imports(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found - set(sys.stdlib_module_names) - {"facts"}


def test_facts_import_the_standard_library_alone() -> None:
    foreign = {path.name: foreign_imports(path.read_text()) for path in (ROOT / "facts").glob("*.py")}
    assert {name: modules for name, modules in foreign.items() if modules} == {}
    # The control.
    assert foreign_imports("import yaml\nfrom pydantic import Field\nimport json\nfrom facts import tpu") == {
        "yaml",
        "pydantic",
    }
