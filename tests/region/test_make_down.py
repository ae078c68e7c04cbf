"""A region from nothing to nothing: the first preview, what a wrong stack leaves behind, and `make down`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.cloud.inventory import left_behind
from tests.region.conftest import Checkout, copy_checkout


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Iterator[Checkout]:
    checkout = Checkout(copy_checkout(repository, tmp_path / "checkout"))
    yield checkout
    checkout.simulator("stop")


def traces_of(folder: Path) -> dict[str, list[str]]:
    """Processes and mounts that belong to the folder, and sockets in it."""
    name = str(folder)
    processes = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                command = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if name in command:
                processes.append(command)
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    sockets = [str(path) for path in folder.rglob("*") if path.is_socket()]
    return {"processes": processes, "mounts": mounts, "sockets": sockets}


def test_the_first_preview_of_an_empty_region_passes_and_down_leaves_nothing(checkout: Checkout) -> None:
    checkout.simulator("start")
    checkout.pulumi("stack", "init", "local", "--secrets-provider=passphrase")
    preview = checkout.pulumi("preview", "--stack", "local")
    assert "to create" in preview
    assert left_behind(checkout.region / "inventory.json") == [], "a preview makes nothing"

    checkout.simulator("up", "local")
    before = traces_of(checkout.region)
    assert before["processes"], "the control: the search finds a region that runs"
    assert before["sockets"]

    said = checkout.simulator("down")
    assert "no process, node or resource is left" in said
    assert traces_of(checkout.region) == {"processes": [], "mounts": [], "sockets": []}
    assert left_behind(checkout.region / "inventory.json") == []
    assert list((checkout.region / "clusters").iterdir()) == []
    assert "nothing runs here" in checkout.simulator("down")


def test_three_cubes_of_a_reservation_of_two_are_refused_before_a_region_is_started(
    checkout: Checkout,
) -> None:
    def ask_for_three(config: dict[str, Any]) -> None:
        config["tpu-slices:slicePools"][0]["cubes"] = 3

    checkout.change_settings("local", ask_for_three)
    said = checkout.simulator("up", "local", expect=1, timeout=120)
    assert "slicePools[0].cubes" in said
    assert not (checkout.region / "region.json").exists()


def test_a_misspelt_key_is_refused_before_a_region_is_started(checkout: Checkout) -> None:
    def misspell(config: dict[str, Any]) -> None:
        config["tpu-slices:slicePool"] = config.pop("tpu-slices:slicePools")

    checkout.change_settings("local", misspell)
    said = checkout.simulator("up", "local", expect=1, timeout=30)
    assert "slicePool" in said
    assert "slicePools" in said
    assert not (checkout.region / "region.json").exists()
