"""What a region's folder is laid out with: programs where the engine looks for them, and nothing twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator.lifecycle import prepare_folder
from simulator.region_folder import RegionFolder
from simulator.toolchain import Toolchain, official

ENGINE = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    cache = tmp_path / "cache"
    cache.mkdir()
    programs = {}
    for name in (*ENGINE, "etcd", "pulumi-resource-kubernetes"):
        path = cache / name
        path.write_text("#!/bin/sh\necho v3.276.0\n")
        path.chmod(0o755)
        programs[name] = path
    charts = {"kueue": cache / "chart"}
    return Toolchain(
        programs=programs,
        charts=charts,
        crds={},
        kwok_stages=cache,
        kubernetes_provider=programs["pulumi-resource-kubernetes"],
        pulumi_version="3.276.0",
        pulumi_is_official=False,
    )


def test_the_engine_lies_beside_its_language_host(tmp_path: Path, toolchain: Toolchain) -> None:
    region = RegionFolder(tmp_path / "region")
    prepare_folder(region, toolchain)
    prepare_folder(region, toolchain)
    folders = {Path(os.path.realpath(region.bin / name)).parent for name in ENGINE}
    assert folders == {Path(os.path.realpath(region.bin))}


def test_the_kubernetes_provider_is_a_plugin_and_not_on_path(tmp_path: Path, toolchain: Toolchain) -> None:
    region = RegionFolder(tmp_path / "region")
    prepare_folder(region, toolchain)
    assert not (region.bin / "pulumi-resource-kubernetes").exists()
    assert list(region.pulumi_home.glob("plugins/resource-kubernetes-v*/pulumi-resource-kubernetes"))


def test_a_regions_own_pulumi_is_not_taken_for_an_official_one(tmp_path: Path, toolchain: Toolchain) -> None:
    region = RegionFolder(tmp_path / "region")
    prepare_folder(region, toolchain)
    environment = {"PATH": f"{region.bin}{os.pathsep}{os.defpath}"}
    assert official.find(environment, tmp_path / "another-cache", print) is None
    (region.bin / official.REGION_MARK).unlink()
    assert official.find(environment, tmp_path / "another-cache", print) is not None, "the control"


def test_the_stand_in_for_the_auth_plugin_answers_for_this_region(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    region = RegionFolder(tmp_path / "region")
    prepare_folder(region, toolchain)
    assert str(region.root) in (region.bin / "gke-gcloud-auth-plugin").read_text()
