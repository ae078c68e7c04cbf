"""What no committed file may hold: package registries' hosts, and paths of one person's machine."""

import os
import re
import subprocess
from pathlib import Path

import pytest

REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "python" + "hosted.org",
            "proxy." + "golang.org",
            "sum." + "golang.org",
            "registry." + "npmjs",
            "crates" + ".io",
            "repo1." + "maven",
            "deb." + "debian.org",
        )
    )
)
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(?:root|home/\w+|Users|work|farm)/")


def committed_files(repository: Path) -> list[Path]:
    """What git knows; in an unpacked archive, all files that are not hidden."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if listed == [""]:
        return [path for path in repository.rglob("*") if path.is_file() and "/." not in str(path)]
    return [repository / name for name in listed if name and (repository / name).is_file()]


def hits(pattern: re.Pattern[str], path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return [
        f"{path.name}:{number}: {line[:120]}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("pattern", [REGISTRY_HOSTS, MACHINE_PATHS], ids=["registry host", "machine path"])
def test_no_committed_file_names_a_machine_or_a_package_registry(
    repository: Path, pattern: re.Pattern[str]
) -> None:
    files = committed_files(repository)
    assert len(files) > 50
    assert not [hit for path in files for hit in hits(pattern, path)]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY_HOSTS, "--index-url https://" + "pypi" + ".org/simple"),
        (MACHINE_PATHS, 'CACHE = "' + "/root" + '/.cache"'),
        (MACHINE_PATHS, "cd " + "/home" + "/someone/checkout"),
    ],
)
def test_the_scan_finds_what_it_looks_for(tmp_path: Path, pattern: re.Pattern[str], line: str) -> None:
    planted = tmp_path / "planted.txt"
    planted.write_text(f"first\n{line}\n", encoding="utf-8")
    assert hits(pattern, planted) == [f"planted.txt:2: {line}"]


@pytest.mark.parametrize("line", ["spec.template.spec", "https://example.com/home/page", "${HOME}/.cache"])
def test_the_scan_leaves_ordinary_lines_alone(tmp_path: Path, line: str) -> None:
    planted = tmp_path / "planted.txt"
    planted.write_text(line, encoding="utf-8")
    assert not hits(MACHINE_PATHS, planted)


def planned(repository: Path, *arguments: str) -> list[str]:
    """The commands that make would run."""
    result = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *arguments],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.splitlines()


def test_continuous_integration_runs_what_a_person_runs(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


def test_make_test_checks_the_machine_first_and_runs_every_kind_of_check(repository: Path) -> None:
    commands = planned(repository, "test")
    assert commands[0].endswith("-m simulator.bootstrap --with-toolchain")
    expected = (
        "ruff format --check",
        "ruff check",
        "mypy",
        "tests/unit",
        "simulator.toolchain",
        "tests/region",
    )
    found = [next(index for index, command in enumerate(commands) if part in command) for part in expected]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("up",), "-m simulator up local"),
        (("up", "STACK=prod"), "-m simulator up prod"),
        (("down",), "-m simulator down"),
        (("env",), "-m simulator env"),
    ],
)
def test_a_target_makes_the_environment_and_runs_its_command(
    repository: Path, arguments: tuple[str, ...], command: str
) -> None:
    setup, run = planned(repository, *arguments)
    assert "-m simulator.bootstrap" in setup
    assert run == f".venv/bin/python {command}"


def test_verify_runs_with_the_exports_of_the_region(repository: Path) -> None:
    _, run = planned(repository, "verify")
    assert run.index("-m simulator env") < run.index("eval") < run.index("-m ops verify local")


def test_every_target_for_a_person_has_a_line_of_help(repository: Path) -> None:
    text = (repository / "Makefile").read_text(encoding="utf-8")
    phony = set(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split())
    helped = set(re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE))
    assert phony - helped == {"lint", "unit-test", "region-test"}
