"""Every wrong stack file of `tests/corpus/` is refused with exactly the sentences at its head.

`# refused: …` lines at the top of a file are the problems, all of them, in order. A new rule ships a file here.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import settings
from preflight import stackfile

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FILES = sorted(CORPUS.glob("*.yaml"))
MARK = "# refused: "

# Runs the program on every file as the engine would start it, with a monitor that counts registrations.
RUNNER = """
import json, runpy, sys, time
from pathlib import Path
import pulumi
from preflight import stackfile
import settings

registered = []

class Counting(pulumi.runtime.Mocks):
    def new_resource(self, args):
        registered.append(args.typ)
        return args.name, args.inputs
    def call(self, args):
        registered.append(args.token)
        return {}

pulumi.runtime.set_mocks(Counting(), project="tpu-slices", stack="corpus")
answers = {}
for name in sys.argv[1:]:
    started = time.monotonic()
    try:
        config = stackfile.config_of(Path(name).read_text(), "Pulumi.stack.yaml")
        pulumi.runtime.set_all_config(*stackfile.engine_config(config))
        runpy.run_path("__main__.py")
        said = "accepted"
    except (settings.SettingsError, pulumi.RunError) as refusal:
        said = str(refusal)
    answers[Path(name).stem] = {"said": said, "seconds": time.monotonic() - started}
providers = [module for module in ("pulumi_gcp", "pulumi_kubernetes") if module in sys.modules]
print(json.dumps({"answers": answers, "registered": registered, "providers": providers}))
"""


def expected(path: Path) -> list[str]:
    return [line.removeprefix(MARK) for line in path.read_text().splitlines() if line.startswith(MARK)]


def lines(error: str) -> list[str]:
    return [line.removeprefix("  - ") for line in error.splitlines()[1:]]


def test_the_corpus_holds_at_least_sixty_files() -> None:
    assert len(FILES) >= 60


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_wrong_stack_file_is_refused_with_its_sentences(path: Path) -> None:
    with pytest.raises(settings.SettingsError) as refusal:
        settings.load(stackfile.config_of(path.read_text(), "Pulumi.stack.yaml"))
    assert [str(problem) for problem in refusal.value.problems] == expected(path)
    assert expected(path)


@pytest.fixture(scope="module")
def run() -> dict:
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *map(str, FILES)],
        cwd=CORPUS.parents[1],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def test_the_program_says_the_same_when_the_engine_runs_it(run: dict) -> None:
    said = {path.stem: lines(run["answers"][path.stem]["said"]) for path in FILES}
    # The engine opens a secret inside a section and calls the whole section secret.
    outer = ["`tpu-slices:cluster` must not be a secret"]
    assert [line.split(": the plan")[0] for line in said.pop("inner-value-is-secret")] == outer
    assert said == {name: expected(CORPUS / f"{name}.yaml") for name in said}


def test_nothing_is_registered_and_no_provider_package_is_imported(run: dict) -> None:
    assert run["registered"] == []
    assert run["providers"] == []


def test_each_is_refused_within_three_seconds(run: dict) -> None:
    assert max(answer["seconds"] for answer in run["answers"].values()) < 3


def test_no_sentence_repeats_the_token(run: dict) -> None:
    everything = json.dumps(run) + "".join("\n".join(expected(path)) for path in FILES)
    assert "Canary" not in everything
    # The control: the files do hold it.
    assert any("Canary" in path.read_text() for path in FILES)


def test_a_sentence_has_path_rule_reason_and_way_out() -> None:
    for path in FILES:
        for sentence in expected(path):
            assert re.fullmatch(r"`\S+` must .+: .+\. .+(\.|hfToken|\?)", sentence), path.stem
