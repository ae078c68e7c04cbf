"""The virtual environment of a checkout: made once, made again when it no longer fits, refused with one line."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator import bootstrap
from simulator.toolchain.errors import ToolchainError
from simulator.toolchain.process import CommandFailed


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.lock"
    file.write_text("pulumi==1\n", encoding="utf-8")
    return file


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would have been run; making an environment puts an interpreter there."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> float:
        ran.append(command)
        if command[1:3] == ["-m", "venv"]:
            folder = Path(command[3]) / "bin"
            folder.mkdir(parents=True)
            (folder / "python").symlink_to(sys.executable)
        return 1.0

    monkeypatch.setattr(bootstrap, "run_logged", run)
    monkeypatch.setattr(bootstrap, "check_venv_module", lambda: None)
    return ran


def test_the_first_time_it_is_made_from_hashes_and_wheels_only(
    tmp_path: Path, lock: Path, commands: list[list[str]]
) -> None:
    bootstrap.ensure(tmp_path / ".venv", lock)
    make, install, compile_what_is_imported = commands
    assert compile_what_is_imported[:2] == [install[0], "-c"]
    assert make[1:] == ["-m", "venv", str(tmp_path / ".venv")]
    assert install[0] == str(tmp_path / ".venv" / "bin" / "python")
    assert {"--require-hashes", "--only-binary", str(lock)} <= set(install)


def test_the_second_time_nothing_is_done_or_said(
    tmp_path: Path, lock: Path, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap.ensure(tmp_path / ".venv", lock)
    commands.clear()
    capsys.readouterr()
    bootstrap.ensure(tmp_path / ".venv", lock)
    assert commands == []
    assert capsys.readouterr() == ("", "")


def test_progress_leaves_stdout_to_the_exports(
    tmp_path: Path, lock: Path, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap.ensure(tmp_path / ".venv", lock)
    assert commands
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "ready after" in printed.err


def change_the_lock(venv: Path, lock: Path) -> None:
    lock.write_text("pulumi==2\n", encoding="utf-8")
    assert venv.exists()


def move_the_checkout(venv: Path, _: Path) -> None:
    stamp = json.loads((venv / bootstrap.STAMP).read_text(encoding="utf-8"))
    (venv / bootstrap.STAMP).write_text(json.dumps(stamp | {"place": "/before/.venv"}), encoding="utf-8")


def remove_its_python(venv: Path, _: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(venv / "gone")


def interrupt_its_making(venv: Path, _: Path) -> None:
    (venv / bootstrap.STAMP).unlink()


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (change_the_lock, "requirements.lock changed"),
        (move_the_checkout, "the checkout was moved"),
        (remove_its_python, "its Python is gone"),
        (interrupt_its_making, "it was not finished, or not made here"),
    ],
)
def test_it_is_made_again_when_it_no_longer_fits(
    tmp_path: Path,
    lock: Path,
    commands: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    event,
    reason: str,
) -> None:
    venv = tmp_path / ".venv"
    bootstrap.ensure(venv, lock)
    (venv / "of-before").write_text("", encoding="utf-8")
    commands.clear()
    event(venv, lock)
    bootstrap.ensure(venv, lock)
    assert commands[0][1:3] == ["-m", "venv"]
    assert not (venv / "of-before").exists()
    assert f"made again, since {reason}" in capsys.readouterr().err


def test_a_link_in_its_place_is_replaced_and_its_target_left(
    tmp_path: Path, lock: Path, commands: list[list[str]]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("", encoding="utf-8")
    (tmp_path / ".venv").symlink_to(elsewhere)
    bootstrap.ensure(tmp_path / ".venv", lock)
    assert commands
    assert (elsewhere / "mine").exists()
    assert not (tmp_path / ".venv").is_symlink()


def test_a_failed_install_is_redone_the_next_time(
    tmp_path: Path, lock: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = bootstrap.run_logged

    def no_network(command: list[str], **options: object) -> float:
        if "install" in command:
            raise CommandFailed(1, tmp_path / "log", "no route to host")
        return runs(command, **options)

    monkeypatch.setattr(bootstrap, "run_logged", no_network)
    with pytest.raises(ToolchainError, match=r"(?s)installing the packages failed .*no route to host"):
        bootstrap.ensure(tmp_path / ".venv", lock)
    monkeypatch.setattr(bootstrap, "run_logged", runs)
    commands.clear()
    bootstrap.ensure(tmp_path / ".venv", lock)
    assert commands[0][1:3] == ["-m", "venv"]


@pytest.mark.parametrize(
    ("version", "on_path", "expected"),
    [
        ((3, 11), [], None),
        ((3, 14), [], None),
        ((3, 10), [], ""),
        ((3, 15), [], ""),
        ((3, 8), ["python3.12", "python3.13"], "/bin/python3.13"),
        ((3, 8), ["python3.12", "broken python3.13"], "/bin/python3.12"),
    ],
)
def test_a_python_that_fits_is_found(
    version: tuple[int, int], on_path: list[str], expected: str | None
) -> None:
    found = {name.removeprefix("broken "): f"/bin/{name}" for name in on_path}
    assert bootstrap.choose_python(version, found.get, lambda path: "broken" not in path) == expected


@pytest.mark.parametrize(
    ("os_release", "expected"),
    [
        ('ID=debian\nVERSION_ID="12"', "sudo apt-get install -y python"),
        ('ID=pop\nID_LIKE="ubuntu debian"', "sudo apt-get install -y python"),
        ("ID=fedora", "distribution's package"),
        ("", "distribution's package"),
    ],
)
def test_the_line_that_installs_venv_fits_the_distribution(os_release: str, expected: str) -> None:
    assert expected in bootstrap.venv_package_line(os_release)


def test_a_python_without_ensurepip_is_refused_with_that_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(
        ToolchainError, match=r"cannot make a virtual environment .*This installs what is missing: \w+"
    ):
        bootstrap.check_venv_module()


def test_too_little_disk_is_refused_before_anything_is_made(
    tmp_path: Path, lock: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "FREE_DISK_BYTES", 10**18)
    monkeypatch.setattr(bootstrap.check_disk, "__defaults__", (10**18,))
    with pytest.raises(ToolchainError, match="GB free and the virtual environment needs"):
        bootstrap.ensure(tmp_path / ".venv", lock)
    assert commands == []
    assert not (tmp_path / ".venv").exists()


def syntax_error_in(source: str, version: tuple[int, int]) -> bool:
    try:
        ast.parse(source, feature_version=version)
    except SyntaxError:
        return True
    return False


def test_an_old_python_can_read_as_far_as_the_line_that_refuses_it() -> None:
    source = Path(bootstrap.__file__).read_text(encoding="utf-8")
    assert not syntax_error_in(source, (3, 6))
    assert syntax_error_in(source + "\nif (n := 1):\n    pass\n", (3, 6))
    before_the_check = source[: source.index('if __name__ == "__main__"')]
    assert "from simulator" not in before_the_check


def test_the_command_refuses_an_unsupported_python_in_one_line(repository: Path) -> None:
    program = (
        "import runpy, sys\nsys.version_info = (3, 9, 0)\nsys.argv = ['bootstrap']\n"
        "runpy.run_module('simulator.bootstrap', run_name='__main__')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=repository,
        env={"PATH": "/nowhere", "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error: python3 is Python 3.9")
    assert result.stderr.count("\n") == 1
