"""The JSON Schema that editors check stack files with."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import settings
from preflight import schema, stackfile

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted(ROOT.glob("Pulumi.*.yaml"))
CORPUS = sorted((ROOT / "tests/corpus").glob("*.yaml"))
FIRST_LINE = "# yaml-language-server: $schema=./settings.schema.json"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


json_schema = _load("json_schema")


@pytest.fixture(scope="module")
def published() -> dict:
    return json.loads(schema.FILE.read_text())


def test_the_published_schema_is_the_one_that_the_models_give() -> None:
    assert schema.FILE.read_text() == schema.rendered(), "run `python -m preflight.schema`"


def test_the_command_sees_a_stale_schema(tmp_path: Path) -> None:
    stale = tmp_path / "settings.schema.json"
    stale.write_text("{}")
    program = (
        "import sys; from pathlib import Path; from preflight import schema;"
        f"schema.FILE = Path({str(stale)!r}); sys.argv[1:] = ['--check']; sys.exit(schema.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "python -m preflight.schema" in done.stderr


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_a_committed_stack_obeys_the_schema_and_names_it(path: Path, published: dict) -> None:
    text = path.read_text()
    content = {**yaml.safe_load(text), "config": stackfile.config_of(text, path.name)}
    assert json_schema.faults(content, published) == []
    assert FIRST_LINE in text.splitlines()


def test_the_schema_sees_every_second_wrong_file(published: dict) -> None:
    seen = []
    for path in CORPUS:
        try:
            content = yaml.safe_load(path.read_text())
        except yaml.YAMLError:
            seen.append(path.stem)
            continue
        if json_schema.faults(content, published):
            seen.append(path.stem)
    assert len(seen) > len(CORPUS) / 2
    assert {"cubes-zero", "token-in-plain-text", "cluster-key-misspelt", "section-without-value"} <= set(seen)
    # What joins sections is beyond it: the check is the program's, not the editor's.
    assert "pods-overlap-subnet" not in seen


def test_every_key_has_a_description_for_the_editor(published: dict) -> None:
    def bare(node: object, path: str) -> list[str]:
        if not isinstance(node, dict):
            return []
        found = [
            f"{path}/{key}" for key, inner in node.get("properties", {}).items() if "description" not in inner
        ]
        for name, inner in [*node.get("properties", {}).items(), *node.get("$defs", {}).items()]:
            found += bare(inner, f"{path}/{name}")
        return found

    assert bare(published, "") == ["/config/tpu-slices:hfToken/secure"]


def test_a_reservation_may_be_a_path_and_pathways_may_be_one(published: dict) -> None:
    stack = {
        "config": {
            "gcp:project": "example-project",
            "tpu-slices:zone": "us-central1-ai1a",
            "tpu-slices:projectNumber": 123456789012,
            "tpu-slices:slicePools": [
                {"name": "tpu7-pool", "cubes": 2, "reservation": "projects/owner-project/reservations/res-a"},
                {
                    "name": "other-pool",
                    "cubes": 2,
                    "reservation": {"name": "res-a/reservationBlocks/block-0"},
                },
                {
                    "name": "third-pool",
                    "cubes": 1,
                    "reservation": {
                        "name": "res-a",
                        "subBlocks": ["reservationBlocks/b-1/reservationSubBlocks/s-0"],
                    },
                },
            ],
            "tpu-slices:multihostPools": [{"name": "multihost-np", "topology": "4x4"}],
            "tpu-slices:pathwaysServing": {
                "name": "jetstream-pathways",
                "mode": "single",
                "pools": ["multihost-np"],
                "bucket": "pathways-scratch",
                "checkpoint": "gs://checkpoints/int8",
            },
            "tpu-slices:hfToken": {"secure": "v1:AAAA"},
        }
    }
    assert json_schema.faults(stack, published) == []
    # What the schema takes here, the program takes too.
    assert settings.load(stack["config"])
    stack["config"]["tpu-slices:pathwaysServing"]["mode"] = "double"
    assert json_schema.faults(stack, published) != []
