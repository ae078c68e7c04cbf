"""Which container images run as local processes, and which program stands for each.

Kueue, JobSet and LeaderWorkerSet run as their real selves; the slice controller's image is closed to us, so
its stand-in runs in its place. Every other image is simulated by KWOK.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from simulator.region_folder import CHECKOUT

SLICE_CONTROLLER = "kueue-slice-controller"
_BUILT_PROGRAMS = {"kueue": "kueue", "jobset": "jobset", "lws": "lws"}
IMAGE_NAMES = (*_BUILT_PROGRAMS, SLICE_CONTROLLER)


@dataclass(frozen=True)
class Program:
    """What stands for an image: `argv` before the container's own args, and the host paths that it needs."""

    name: str
    argv: tuple[str, ...]
    host_paths: tuple[Path, ...]
    environment: tuple[tuple[str, str], ...] = ()


def image_name(image: str) -> str:
    """The last part of an image reference without tag and digest: `a.b/c/kueue:v1@sha256:…` is `kueue`."""
    return image.split("@", maxsplit=1)[0].rsplit("/", 1)[-1].split(":", maxsplit=1)[0]


def program_for(image: str, programs: Path, time_scale: float) -> Program | None:
    """The program that stands for `image`, or None where KWOK simulates it."""
    name = image_name(image)
    if name in _BUILT_PROGRAMS:
        path = (programs / _BUILT_PROGRAMS[name]).resolve()
        return Program(name, (str(path),), (path,))
    if name == SLICE_CONTROLLER:
        return Program(
            name,
            (sys.executable, "-m", "simulator.slice_controller"),
            (CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)),
            (("PYTHONPATH", str(CHECKOUT)), ("TPU_SLICES_TIME_SCALE", str(time_scale))),
        )
    return None
