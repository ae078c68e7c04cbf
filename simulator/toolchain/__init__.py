"""The programs that the simulated region and the engine are made of, built from their published Go modules.

`ensure` returns them as paths in a cache outside the checkout, and builds what the cache misses. Standard library
and `facts` only, so that it can check a fresh machine before anything is installed.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from simulator.toolchain import machine, official
from simulator.toolchain.build import Builder
from simulator.toolchain.cache import Cache, cache_root
from simulator.toolchain.errors import ToolchainError
from simulator.toolchain.programs import OFFICIAL_PULUMI_REPLACES, PROGRAMS, Program, folder_name

__all__ = ["Toolchain", "ToolchainError", "ensure", "missing_programs"]


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Where everything is. The paths stay valid as long as the cache does; a region links to them."""

    programs: Mapping[str, Path]
    """Each program by the name that it must have on PATH."""
    charts: Mapping[str, Path]
    """Helm chart folders by name: kueue, jobset, lws."""
    crds: Mapping[str, Path]
    """Folders with the CRDs of kueue, jobset and lws."""
    kwok_stages: Path
    """KWOK's stock stages: folders `node/fast`, `pod/fast`, …"""
    kubernetes_provider: Path
    """The provider's binary, for `pulumi plugin install resource kubernetes VERSION --file`."""
    pulumi_version: str
    """Of the engine that `programs` has: ours, or the official one on PATH."""
    pulumi_is_official: bool


def ensure(say: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Toolchain:
    """Returns the whole toolchain, building what is missing.

    `say` gets one line of progress at a time, at least every ten seconds while something is built; with all
    programs in the cache it gets none. Raises `ToolchainError`, whose text is for a person.
    """
    platform = machine.go_platform()
    cache = Cache(cache_root(environ))
    installed = official.find(environ, cache.root, say)
    wanted = _wanted(installed)
    found = _find(cache, wanted, platform)
    if len(found) < len(wanted):
        cache.open()
        with cache.locked(say):
            found = _find(cache, wanted, platform)  # another checkout may have built them meanwhile
            if missing := [program for program in wanted if program.name not in found]:
                Builder(cache, platform, say, environ).build(missing)
                found = _find(cache, wanted, platform)
                for name in cache.prune(frozenset(folder.name for folder in found.values())):
                    say(f"toolchain: removed {name}, unused for a month")
            cache.drop_build_files()
    elif cache.has_leftovers():
        cache.try_drop_leftovers()
    return _toolchain(found, installed)


def missing_programs(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names of what `ensure` would build."""
    cache = Cache(cache_root(environ))
    wanted = _wanted(official.find(environ, cache.root, lambda _: None))
    found = _find(cache, wanted, machine.go_platform())
    return [program.name for program in wanted if program.name not in found]


def _wanted(installed: official.OfficialPulumi | None) -> list[Program]:
    replaced = OFFICIAL_PULUMI_REPLACES if installed else frozenset()
    return [program for program in PROGRAMS if program.name not in replaced]


def _find(cache: Cache, wanted: list[Program], platform: str) -> dict[str, Path]:
    folders = {program.name: cache.find(folder_name(program, platform), program.files) for program in wanted}
    return {name: folder for name, folder in folders.items() if folder}


def _toolchain(found: Mapping[str, Path], installed: official.OfficialPulumi | None) -> Toolchain:
    programs = {name: folder / name for name, folder in found.items()}
    if installed:
        programs |= installed.programs
        pulumi_version = installed.version
    else:
        programs["pulumi-language-python-exec"] = (
            found["pulumi-language-python"] / "pulumi-language-python-exec"
        )
        pulumi_version = next(program.version for program in PROGRAMS if program.name == "pulumi")
    controllers = ("kueue", "jobset", "lws")
    return Toolchain(
        programs=programs,
        charts={name: found[name] / "chart" / name for name in controllers},
        crds={name: found[name] / "crds" for name in controllers},
        kwok_stages=found["kwok"] / "stage",
        kubernetes_provider=programs["pulumi-resource-kubernetes"],
        pulumi_version=pulumi_version,
        pulumi_is_official=installed is not None,
    )
