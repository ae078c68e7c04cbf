"""The build cache: whole programs or none, one builder at a time, nothing lost or deleted by accident."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simulator.toolchain.cache import UNUSED_DAYS, Cache, cache_root
from simulator.toolchain.errors import ToolchainError

FILES = ("etcd", "stage")
DEADLINE_SECONDS = 20
HOLDER = """
import sys, time
from pathlib import Path
from simulator.toolchain.cache import Cache
with Cache(Path(sys.argv[1])).locked(print):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    opened = Cache(tmp_path / "cache")
    opened.open()
    return opened


def made_program(cache: Cache, name: str = "etcd-1-abc") -> Path:
    folder = cache.build / "work" / name
    (folder / "stage").mkdir(parents=True)
    (folder / "etcd").write_text("program", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TPU_SLICES_CACHE": "/big/disk", "XDG_CACHE_HOME": "/x"}, "/big/disk"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/tpu-slices"),
    ],
)
def test_the_cache_is_where_the_environment_says(environ: dict[str, str], expected: str) -> None:
    assert cache_root(environ) == Path(expected)


@pytest.mark.parametrize("environ", [{}, {"XDG_CACHE_HOME": "relative"}, {"TPU_SLICES_CACHE": ""}])
def test_the_cache_is_in_the_home_folder_otherwise(environ: dict[str, str]) -> None:
    assert cache_root(environ) == Path.home() / ".cache" / "tpu-slices"


def test_a_program_is_found_only_after_it_was_published(cache: Cache) -> None:
    folder = made_program(cache)
    assert cache.find("etcd-1-abc", FILES) is None
    cache.publish(folder, "etcd-1-abc")
    assert cache.find("etcd-1-abc", FILES) == cache.programs / "etcd-1-abc"
    assert not folder.exists()


def test_a_program_that_lost_a_file_is_built_and_published_again(cache: Cache) -> None:
    published = cache.publish(made_program(cache), "etcd-1-abc")
    (published / "etcd").unlink()
    assert cache.find("etcd-1-abc", FILES) is None
    cache.publish(made_program(cache), "etcd-1-abc")
    assert cache.find("etcd-1-abc", FILES) == published


def test_what_nobody_asked_for_in_a_month_goes_at_the_next_build(cache: Cache) -> None:
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    for name in ("wanted", "forgotten", "of-another-checkout"):
        cache.publish(made_program(cache, name), name)
    for name in ("wanted", "forgotten"):
        os.utime(cache.programs / name, (long_ago, long_ago))
    assert cache.prune(frozenset({"wanted"})) == ["forgotten"]
    assert sorted(path.name for path in cache.programs.iterdir()) == ["of-another-checkout", "wanted"]


def test_asking_for_a_program_counts_as_use(cache: Cache) -> None:
    published = cache.publish(made_program(cache), "etcd-1-abc")
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    os.utime(published, (long_ago, long_ago))
    cache.find("etcd-1-abc", FILES)
    assert cache.prune(frozenset()) == []


def test_a_second_builder_waits_and_says_for_whom(cache: Cache) -> None:
    said: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with Cache(cache.root).locked(said.append, poll_seconds=0.01):
            entered.set()

    with cache.locked(said.append):
        assert said == []
        waiting = threading.Thread(target=second)
        waiting.start()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert f"process {os.getpid()} runs in {Path.cwd()}" in said[0]
        assert not entered.is_set()
    waiting.join(DEADLINE_SECONDS)
    assert entered.is_set()


def test_the_lock_of_a_killed_builder_is_free(cache: Cache, repository: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(cache.root)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=repository,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    said: list[str] = []
    with cache.locked(said.append):
        assert said == []


def test_a_lock_on_a_cache_that_was_cleaned_meanwhile_does_not_count(cache: Cache) -> None:
    said: list[str] = []
    taken = cache._take_lock()
    assert taken is not None
    cache._lock.unlink()
    with cache.locked(said.append):
        assert Cache(cache.root)._take_lock() is None
    taken.close()


def test_clean_removes_the_whole_cache(cache: Cache) -> None:
    cache.publish(made_program(cache), "etcd-1-abc")
    cache.clean(lambda _: None)
    assert not cache.root.exists()


def test_clean_leaves_a_folder_alone_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ToolchainError, match="not a cache of ours"):
        Cache(tmp_path).clean(lambda _: None)
    assert (tmp_path / "thesis.txt").exists()


def test_a_folder_with_other_files_is_refused_as_a_cache(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ToolchainError, match="point TPU_SLICES_CACHE to an empty folder"):
        Cache(tmp_path).open()


def test_a_cache_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ToolchainError, match="cannot be written"):
        Cache(tmp_path / "file" / "cache").open()


def test_a_killed_removal_is_finished_later(cache: Cache) -> None:
    half_removed = cache.root / "dropped-1"
    half_removed.mkdir()
    (half_removed / "module").write_text("", encoding="utf-8")
    assert cache.has_leftovers()
    cache.try_drop_leftovers()
    assert not cache.has_leftovers()
    assert not half_removed.exists()


def test_build_files_stay_while_another_process_builds(cache: Cache) -> None:
    made_program(cache)
    with cache.locked(lambda _: None):
        Cache(cache.root).try_drop_leftovers()
        assert cache.build.exists()
    cache.try_drop_leftovers()
    assert not cache.build.exists()
