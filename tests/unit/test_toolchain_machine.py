"""Machines that cannot build, commands that fail or take long: one clear line each, in a second."""

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from simulator.toolchain import __main__ as command
from simulator.toolchain import machine, process
from simulator.toolchain.errors import ToolchainError


@pytest.mark.parametrize(("name", "expected"), [("x86_64", "linux-amd64"), ("aarch64", "linux-arm64")])
def test_linux_on_both_processors_is_supported(name: str, expected: str) -> None:
    assert machine.go_platform("Linux", name) == expected


@pytest.mark.parametrize(
    ("system", "name"), [("Darwin", "arm64"), ("Linux", "riscv64"), ("Windows", "AMD64")]
)
def test_another_platform_is_refused_by_name(system: str, name: str) -> None:
    with pytest.raises(ToolchainError, match=rf"Linux x86_64 or aarch64 \(got {system} {name}\)"):
        machine.go_platform(system, name)


class Usage(NamedTuple):
    free: int


def test_too_little_disk_is_refused_with_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: Usage(3 * 10**9))
    with pytest.raises(ToolchainError, match=r"needs 16 GB of disk, of which 3.0 GB are there"):
        machine.check_disk(tmp_path / "not" / "there" / "yet", 16 * 10**9)


def test_what_a_stopped_build_left_counts_as_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: Usage(900))
    (tmp_path / "build").mkdir()
    with pytest.raises(ToolchainError):
        machine.check_disk(tmp_path, 1000)
    (tmp_path / "build" / "module").write_bytes(b"x" * 100)
    machine.check_disk(tmp_path, 1000)


def fake_proc(folder: Path, available_kib: int, swap_kib: int) -> Path:
    folder.mkdir()
    (folder / "meminfo").write_text(
        f"MemTotal: 99 kB\nMemAvailable: {available_kib} kB\nSwapFree: {swap_kib} kB\nHugePages_Total: 0\n",
        encoding="utf-8",
    )
    return folder


def test_free_memory_is_the_kernels_estimate_and_swap(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path / "proc", 4000, 500)
    assert machine.available_memory(proc, tmp_path / "no-cgroups") == 4500 * 1024


@pytest.mark.parametrize(
    ("limit", "expected"), [("1000000", 1000000 - 300000 + 200000), ("max", 4000 * 1024)]
)
def test_a_containers_limit_counts_without_its_file_pages(tmp_path: Path, limit: str, expected: int) -> None:
    proc = fake_proc(tmp_path / "proc", 4000, 0)
    cgroups = tmp_path / "cgroups"
    cgroups.mkdir()
    (cgroups / "memory.max").write_text(f"{limit}\n", encoding="utf-8")
    (cgroups / "memory.current").write_text("300000\n", encoding="utf-8")
    (cgroups / "memory.stat").write_text(
        "anon 1\ninactive_file 150000\nactive_file 50000\n", encoding="utf-8"
    )
    assert machine.available_memory(proc, cgroups) == expected


def test_too_little_memory_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_memory", lambda: 2 * 10**9)
    with pytest.raises(ToolchainError, match=r"needs 5 GB of free memory \(got 2.0 GB\)"):
        machine.check_memory(5 * 10**9)


def test_a_command_prints_the_error_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    assert command.main(["--check"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: this runs on Linux")
    assert "Traceback" not in printed.err


def test_a_machine_that_has_all_programs_needs_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "missing_programs", list)
    monkeypatch.setattr(machine, "check_disk", lambda *_: pytest.fail("looked at the disk"))
    assert command.main(["--check"]) == 0


def test_a_long_command_says_that_it_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HEARTBEAT_SECONDS", 0.3)
    beats: list[float] = []
    program = "import time; time.sleep(1.2)"
    process.run_logged(
        [sys.executable, "-c", program], log=tmp_path / "log", env=os.environ, heartbeat=beats.append
    )
    assert beats
    assert beats == sorted(beats)


def test_a_failed_command_shows_its_own_last_lines_only(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier command\n", encoding="utf-8")
    program = "import sys; print('\\n'.join(f'line {n}' for n in range(50))); sys.exit(3)"
    with pytest.raises(process.CommandFailed) as failure:
        process.run_logged([sys.executable, "-c", program], log=log, env=os.environ, heartbeat=lambda _: None)
    text = str(failure.value)
    assert text.startswith(f"status 3; the last lines of {log}:")
    assert text.endswith("  | line 49")
    assert "earlier" not in text


def test_a_compiler_that_the_kernel_killed_hints_at_memory(tmp_path: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(process.CommandFailed, match=r"signal 9 \(killed: out of memory\?\)"):
        process.run_logged(
            [sys.executable, "-c", program], log=tmp_path / "log", env=os.environ, heartbeat=lambda _: None
        )


def test_stopping_us_ends_the_command_and_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "HEARTBEAT_SECONDS", 0.3)
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )

    def interrupt(_: float) -> None:
        if pids.exists() and pids.read_text(encoding="utf-8"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.run_logged(
            [sys.executable, "-c", program], log=tmp_path / "log", env=os.environ, heartbeat=interrupt
        )
    grandchild = Path(f"/proc/{pids.read_text(encoding='utf-8')}/stat")
    deadline = time.monotonic() + 20
    while _runs(grandchild) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(grandchild)


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
