"""Building with a Go that only pretends: what is there after a success, a failure and a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from facts import versions
from simulator.toolchain import Toolchain, ToolchainError, cache, ensure, golang, machine, process
from simulator.toolchain.build import minutes
from simulator.toolchain.programs import PROGRAMS

DEADLINE_SECONDS = 60

FAKE_GO = r"""#!/bin/sh
# `go version`, `go list`, `go mod download -json MODULE` and `go build … -o FILE PACKAGE`, without any work.
home=${0%/*}
echo "$*" >> "$home/calls"
case "$1" in
version) read -r version < "$home/version"; echo "go version go$version linux/amd64" ;;
mod)
  module="$home/modules/$4"
  for folder in charts/kueue charts/jobset charts/lws config/crd/bases config/components/crd/bases kustomize/stage; do
    mkdir -p "$module/$folder"
    echo "from: $4" > "$module/$folder/file.yaml"
  done
  mkdir -p "$module/python/cmd" "$module/cmd/pulumi-resource-kubernetes"
  echo "#!/usr/bin/env python" > "$module/python/cmd/pulumi-language-python-exec"
  for name in schema terraform-mapping; do
    echo '{"name": "kubernetes"}' > "$module/cmd/pulumi-resource-kubernetes/$name.json"
  done
  echo "{\"Dir\": \"$module\"}" ;;
build)
  env > "$home/environment"
  while [ "$1" != "-o" ]; do shift; done
  [ -e "$home/do-${2##*/}" ] && read -r wanted < "$home/do-${2##*/}"
  case "$wanted" in
  fail)
    line=0
    while [ "$line" -lt 100 ]; do echo "compiler line $line"; line=$((line + 1)); done
    exit 1 ;;
  "wait for the downloads")
    while [ "$(grep -c ^list "$home/calls")" -lt 4 ]; do sleep 0.02; done ;;
  hang)
    echo half > "$2"
    echo $$ > "$home/hanging"
    exec sleep 600 ;;
  esac
  echo "#!/bin/sh" > "$2"
  chmod 755 "$2"
  [ ! -e schema.json ] || cp schema.json "$home/embedded-schema" ;;
esac
"""


class FakeGo:
    """A folder with a `go` that can be told what to do, and that notes what it was asked."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        program = folder / "go"
        program.write_text(FAKE_GO, encoding="utf-8")
        program.chmod(0o755)
        self.version = "1.26.8"

    @property
    def version(self) -> str:
        return (self.folder / "version").read_text(encoding="utf-8")

    @version.setter
    def version(self, version: str) -> None:
        (self.folder / "version").write_text(f"{version}\n", encoding="utf-8")

    def tell(self, program: str, wanted: str) -> None:
        (self.folder / f"do-{program}").write_text(f"{wanted}\n", encoding="utf-8")

    def calls(self) -> list[list[str]]:
        notes = self.folder / "calls"
        return (
            [line.split() for line in notes.read_text(encoding="utf-8").splitlines()]
            if notes.exists()
            else []
        )

    def built(self) -> list[str]:
        return [Path(call[call.index("-o") + 1]).name for call in self.calls() if call[0] == "build"]


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    return FakeGo(tmp_path / "go-on-path")


@pytest.fixture
def environ(tmp_path: Path, go: FakeGo) -> dict[str, str]:
    return {
        "PATH": f"{go.folder}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TPU_SLICES_CACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=vendor",
        "CGO_CFLAGS": "-O9",
        "GOPROXY": "off",
    }


@pytest.fixture(autouse=True)
def _a_machine_that_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "check_disk", lambda *_: None)
    monkeypatch.setattr(machine, "check_memory", lambda *_: None)


def quiet(_: str) -> None:
    return


def test_everything_is_there_after_a_build(environ: dict[str, str]) -> None:
    toolchain = ensure(quiet, environ)
    names = {program.name for program in PROGRAMS} | {"pulumi-language-python-exec"}
    assert set(toolchain.programs) == names
    assert all(os.access(path, os.X_OK) for path in toolchain.programs.values())
    assert (toolchain.charts["kueue"] / "file.yaml").read_text(
        encoding="utf-8"
    ) == "from: sigs.k8s.io/kueue\n"
    assert set(toolchain.charts) == set(toolchain.crds) == {"kueue", "jobset", "lws"}
    assert all((folder / "file.yaml").exists() for folder in toolchain.crds.values())
    assert (toolchain.kwok_stages / "file.yaml").exists()
    assert (toolchain.pulumi_version, toolchain.pulumi_is_official) == (versions.PULUMI, False)


def test_what_only_the_build_needed_is_gone_after_it(environ: dict[str, str]) -> None:
    ensure(quiet, environ)
    root = Path(environ["TPU_SLICES_CACHE"])
    assert sorted(path.name for path in root.iterdir()) == ["CACHEDIR.TAG", "lock", "logs", "programs"]


def test_a_second_time_nothing_is_built_or_said(environ: dict[str, str], go: FakeGo) -> None:
    first = ensure(quiet, environ)
    asked = len(go.calls())
    said: list[str] = []
    assert ensure(said.append, environ) == first
    assert (said, len(go.calls())) == ([], asked)


def test_each_step_says_what_it_is_and_what_comes_next(environ: dict[str, str]) -> None:
    said: list[str] = []
    ensure(said.append, environ)
    count = len(PROGRAMS)
    assert f"{count} programs to build with Go 1.26.8" in said[0]
    first, second = PROGRAMS[0], PROGRAMS[1]
    assert said[1] == (
        f"toolchain: [1/{count}] {first.name} {first.version}: building, about {minutes(first.expected_seconds)}; "
        f"next: {second.name}"
    )
    assert any(
        line.startswith(f"toolchain: [1/{count}] {first.name} {first.version}: ready after") for line in said
    )
    assert said[-2].endswith("next: nothing")


def test_go_sees_our_settings_and_none_of_the_persons(environ: dict[str, str], go: FakeGo) -> None:
    ensure(quiet, environ)
    lines = (go.folder / "environment").read_text(encoding="utf-8").splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    build = Path(environ["TPU_SLICES_CACHE"]) / "build"
    assert "CGO_CFLAGS" not in seen
    assert {
        name: seen[name] for name in ("CGO_ENABLED", "GOTOOLCHAIN", "GOMODCACHE", "GOCACHE", "GOPROXY")
    } == {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOMODCACHE": str(build / "modules"),
        "GOCACHE": str(build / "compiled"),
        "GOPROXY": "off",
    }
    assert "-modcacherw" in seen["GOFLAGS"]
    assert "vendor" not in seen["GOFLAGS"]


def test_later_modules_are_downloaded_while_the_first_is_built(environ: dict[str, str], go: FakeGo) -> None:
    go.tell("kube-apiserver", "wait for the downloads")
    ensure(quiet, environ)
    before_the_second = go.calls()[
        : [call[-1].endswith("kube-controller-manager") for call in go.calls()].index(True)
    ]
    listed = {call[-1] for call in before_the_second if call[0] == "list"}
    first_module = {
        program.package for program in PROGRAMS if program.module_folder == PROGRAMS[0].module_folder
    }
    assert listed == {program.package for program in PROGRAMS} - first_module


def test_the_providers_schema_gets_our_version(environ: dict[str, str], go: FakeGo) -> None:
    ensure(quiet, environ)
    schema = json.loads((go.folder / "embedded-schema").read_text(encoding="utf-8"))
    assert schema == {"name": "kubernetes", "version": versions.PULUMI_KUBERNETES}


def test_the_checkout_is_not_written_to(environ: dict[str, str], repository: Path) -> None:
    folder = repository / "simulator" / "toolchain"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in str(path)}
    ensure(quiet, environ)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in str(path)}
    assert after == before


def test_a_failed_build_shows_its_last_lines_and_keeps_what_is_built(
    environ: dict[str, str], go: FakeGo
) -> None:
    go.tell("kueue", "fail")
    with pytest.raises(ToolchainError) as failure:
        ensure(quiet, environ)
    text = str(failure.value)
    log = Path(environ["TPU_SLICES_CACHE"]) / "logs" / "kueue.log"
    assert f"building kueue {versions.KUEUE} failed with status 1; the last lines of {log}:" in text
    assert "compiler line 99" in text
    assert "compiler line 1\n" not in text
    assert "compiler line 1\n" in log.read_text(encoding="utf-8")
    go.tell("kueue", "")
    before = go.built()
    ensure(quiet, environ)
    names = [program.name for program in PROGRAMS]
    assert go.built()[len(before) :] == names[names.index("kueue") :]


RUN_ENSURE = """
import sys
from simulator.toolchain import ensure, machine
machine.check_disk = machine.check_memory = lambda *_: None
ensure(print)
"""


def test_a_killed_build_leaves_whole_programs_only_and_goes_on(
    environ: dict[str, str], go: FakeGo, repository: Path
) -> None:
    go.tell("kube-scheduler", "hang")
    hanging = go.folder / "hanging"
    builder = subprocess.Popen(
        [sys.executable, "-c", RUN_ENSURE], env=environ, cwd=repository, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (hanging.exists() and hanging.read_text(encoding="utf-8")) and time.monotonic() < deadline:
        time.sleep(0.02)
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    compiler = int(hanging.read_text(encoding="utf-8"))
    while is_running(compiler) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(compiler), "the compiler outlived the build that was killed"
    there = sorted(
        path.name.split("-1.")[0] for path in (Path(environ["TPU_SLICES_CACHE"]) / "programs").iterdir()
    )
    assert there == ["kube-apiserver", "kube-controller-manager"]
    go.tell("kube-scheduler", "")
    before = go.built()
    toolchain = ensure(quiet, environ)
    assert go.built()[len(before) :] == [program.name for program in PROGRAMS[2:]]
    assert toolchain.programs["kube-scheduler"].read_text(encoding="utf-8") == "#!/bin/sh\n"


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_module_that_keeps_its_chart_elsewhere_is_a_clear_error(
    environ: dict[str, str], go: FakeGo
) -> None:
    program = go.folder / "go"
    program.write_text(
        program.read_text(encoding="utf-8").replace("charts/kueue", "helm/kueue"), encoding="utf-8"
    )
    with pytest.raises(ToolchainError, match=r"kueue/charts/kueue is not in its module"):
        ensure(quiet, environ)


def test_a_module_that_cannot_be_downloaded_is_a_clear_error(environ: dict[str, str], go: FakeGo) -> None:
    program = go.folder / "go"
    text = program.read_text(encoding="utf-8")
    program.write_text(
        text.replace(r"{\"Dir\": \"$module\"}", r"{\"Error\": \"no route to host\"}"), encoding="utf-8"
    )
    with pytest.raises(
        ToolchainError, match=r"Go module sigs.k8s.io/kueue cannot be had: .*no route to host"
    ):
        ensure(quiet, environ)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8 linux/amd64", (1, 26, 8)),
        ("go1.27 linux/arm64", (1, 27, 0)),
        ("go1.27rc1 linux/amd64", (1, 27, 0)),
        ("devel go1.28-abc linux/amd64", (1, 28, 0)),
        ("1.26", (1, 26, 0)),
        ("something else", None),
    ],
)
def test_go_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert golang.parse_version(text) == version


@pytest.mark.parametrize("installed", ["1.22.5", ""])
def test_a_go_that_is_too_old_or_missing_is_taken_from_the_lock(
    environ: dict[str, str], go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str
) -> None:
    if installed:
        go.version = installed
    else:
        environ["PATH"] = "/usr/bin:/bin"
    commands: list[list[str]] = []

    def pip_puts_a_go_there(command: list[str], **_: object) -> float:
        commands.append(command)
        target = Path(command[command.index("--target") + 1]) / "go"
        target.mkdir(parents=True)
        FakeGo(target / "bin")
        return 0.0

    monkeypatch.setattr(golang, "run_logged", pip_puts_a_go_there)
    monkeypatch.setattr(
        golang.shutil, "which", lambda name, path: str(go.folder / name) if installed else None
    )
    said: list[str] = []
    ensure(said.append, environ)
    assert len(commands) == 1
    assert {"--require-hashes", "--no-deps", str(golang.LOCK)} <= set(commands[0])
    assert go.built() == []
    assert any("Go on PATH is 1.22.5" in line for line in said) is bool(installed)


def test_without_a_package_index_a_missing_go_is_a_clear_error(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: list[str], **__: object) -> float:
        raise process.CommandFailed(1, tmp_path / "go.log", "no route to host")

    monkeypatch.setattr(golang, "run_logged", fails)
    monkeypatch.setattr(golang.shutil, "which", lambda *_, **__: None)
    with pytest.raises(ToolchainError, match=r"(?s)Go is missing .*no route to host.*Install Go 1\.\d+"):
        ensure(quiet, environ)


def official_pulumi(folder: Path, version: str, without: str = "") -> None:
    folder.mkdir()
    for name in {"pulumi", "pulumi-language-python", "pulumi-language-python-exec"} - {without}:
        (folder / name).write_text(f"#!/bin/sh\necho v{version}\n", encoding="utf-8")
        (folder / name).chmod(0o755)


def with_official(environ: dict[str, str], folder: Path) -> Toolchain:
    environ["PATH"] = f"{folder}:{environ['PATH']}"
    return ensure(quiet, environ)


@pytest.mark.parametrize("version", [versions.PULUMI_CLI_MINIMUM, "3.999.0"])
def test_an_official_pulumi_that_we_support_is_used_as_it_is(
    environ: dict[str, str], go: FakeGo, tmp_path: Path, version: str
) -> None:
    official_pulumi(tmp_path / "official", version)
    toolchain = with_official(environ, tmp_path / "official")
    assert (toolchain.pulumi_version, toolchain.pulumi_is_official) == (version, True)
    for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
        assert toolchain.programs[name] == tmp_path / "official" / name
    assert {"pulumi", "pulumi-language-python"}.isdisjoint(go.built())
    assert "pulumi-resource-kubernetes" in go.built()


@pytest.mark.parametrize(
    ("version", "without"),
    [("3.200.0", ""), (versions.PULUMI_CLI_BELOW, ""), ("", ""), ("3.999.0", "pulumi-language-python-exec")],
)
def test_a_pulumi_that_we_do_not_support_is_passed_over(
    environ: dict[str, str], tmp_path: Path, version: str, without: str
) -> None:
    official_pulumi(tmp_path / "official", version, without)
    toolchain = with_official(environ, tmp_path / "official")
    assert (toolchain.pulumi_version, toolchain.pulumi_is_official) == (versions.PULUMI, False)


def test_our_own_pulumi_on_path_is_not_taken_for_an_official_one(
    environ: dict[str, str], tmp_path: Path
) -> None:
    first = ensure(quiet, environ)
    region_bin = tmp_path / "region-bin"
    region_bin.mkdir()
    for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
        (region_bin / name).symlink_to(first.programs[name])
    assert with_official(environ, region_bin) == first


def test_a_cache_that_is_used_by_another_version_of_the_table_stays(environ: dict[str, str]) -> None:
    ensure(quiet, environ)
    other = Path(environ["TPU_SLICES_CACHE"]) / "programs" / "kueue-0.1.0-of-another-checkout"
    other.mkdir()
    next(iter(ensure(quiet, environ).programs.values())).unlink()
    ensure(quiet, environ)
    assert other.exists()


def test_leftovers_of_a_killed_build_go_when_nothing_is_left_to_build(environ: dict[str, str]) -> None:
    ensure(quiet, environ)
    build = cache.Cache(Path(environ["TPU_SLICES_CACHE"])).build
    (build / "modules").mkdir(parents=True)
    ensure(quiet, environ)
    assert not build.exists()
