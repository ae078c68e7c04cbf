"""Recognises an official Pulumi on PATH that we can use as it is, so that none has to be built.

It must be within the ledger's range and have its Python language host beside it, as every official archive has.
Our own build, which a person's shell may have on PATH, is not taken for one.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from facts import versions

REGION_MARK = ".tpu-slices-region"
"""A file that a region leaves in its folder of programs, so that what lies there is not taken for a person's own."""
COMPANIONS = ("pulumi-language-python", "pulumi-language-python-exec")


@dataclass(frozen=True)
class OfficialPulumi:
    """An installed Pulumi: its version, and its programs by name."""

    version: str
    programs: Mapping[str, Path]


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def find(environ: Mapping[str, str], cache: Path, say: Callable[[str], None]) -> OfficialPulumi | None:
    """The Pulumi on PATH if we support it; else None, with a line that says why one was passed over."""
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    elsewhere = [folder for folder in folders if not (Path(folder) / REGION_MARK).exists()]
    on_path = shutil.which("pulumi", path=os.pathsep.join(elsewhere))
    if not on_path:
        return None
    pulumi = Path(on_path).resolve()
    if pulumi.is_relative_to(cache.resolve()):
        return None
    try:
        answer = subprocess.run(
            [str(pulumi), "version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env=dict(environ) | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        say(f"toolchain: {on_path} does not run ({error}): our own Pulumi is used")
        return None
    found = re.fullmatch(r"v?(\d+\.\d+\.\d+)(?:[-+].*)?", answer.strip())
    lowest, below = versions.PULUMI_CLI_MINIMUM, versions.PULUMI_CLI_BELOW
    if not found or not _parsed(lowest) <= _parsed(found[1]) < _parsed(below):
        say(
            f"toolchain: {on_path} is {answer.strip() or 'of no version'}, and {lowest} to below {below} is "
            "supported: our own Pulumi is used"
        )
        return None
    programs = {"pulumi": pulumi}
    for name in COMPANIONS:
        beside = pulumi.parent / name
        if not os.access(beside, os.X_OK):
            say(f"toolchain: {on_path} has no {name} beside it: our own Pulumi is used")
            return None
        programs[name] = beside
    return OfficialPulumi(found[1], programs)
