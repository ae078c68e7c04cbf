"""Makes `.venv`, the checkout's virtual environment, from `requirements.lock`. Run by `make`, with any python3.

It owns the folder `.venv` and nothing else: it refuses a platform or a Python that the locked wheels do not
serve, and never builds a package from source. With `--with-toolchain` it first refuses a machine that could not
build the toolchain either; with `--clean-cache` it only removes what the toolchain has built. Standard library
only, and no syntax newer than Python 3.6: a Python that is too old must get as far as the line that says so.
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 14)


def runs(python):
    """Whether this Python starts: a version manager's shim may stand for nothing."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    return subprocess.call([python, "-c", ""], **quiet) == 0


def choose_python(version, which=shutil.which, runs=runs):
    """Returns None if `version` may run this, else the path of a Python on PATH that may ("" if there is none)."""
    if OLDEST <= version <= NEWEST:
        return None
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = which("python3.%d" % minor)
        if found and runs(found):
            return found
    return ""


if __name__ == "__main__":
    other = choose_python(sys.version_info[:2])
    if other == "":
        sys.exit(
            "error: python3 is Python %d.%d (%s): the locked packages have wheels for Python %d.%d to %d.%d only. "
            "Install one of these, or name it: make PYTHON=/path/to/python3.12 …"
            % (sys.version_info[:2] + (sys.executable,) + OLDEST + NEWEST)
        )
    if other:
        os.execv(other, [other, "-m", "simulator.bootstrap"] + sys.argv[1:])

import fcntl
import hashlib
import json
import platform
from pathlib import Path

from simulator.toolchain import machine
from simulator.toolchain import __main__ as toolchain_command
from simulator.toolchain.errors import ToolchainError
from simulator.toolchain.process import CommandFailed, run_logged

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = "bootstrap.json"
FREE_DISK_BYTES = 1500 * 1000**2
"""Installed, the packages take 0.7 GB and grow to 1 GB as they are used; pip unpacks beside that."""
UNWANTED_VARIABLES = frozenset(
    (
        *("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    )
)
"""What would make Python or pip install, or put its bytecode, somewhere else or nowhere."""


IMPORTED_EVERYWHERE = """
import pulumi.provider.experimental, pulumi_kubernetes, pulumi_gcp as gcp
import aiohttp.web, cryptography.x509, googleapiclient.discovery, grpc.aio, pydantic, yaml
import kubernetes.aio.client, kubernetes.aio.watch, kubernetes.client, kubernetes.informer
gcp.compute.Network, gcp.compute.ResourcePolicy, gcp.container.Cluster, gcp.container.NodePool
gcp.projects.Service, gcp.projects.IAMMember, gcp.serviceaccount.Account, gcp.storage.Bucket
gcp.organizations.get_project, gcp.Provider
pulumi_kubernetes.core.v1.Namespace, pulumi_kubernetes.helm.v4.Chart
"""
"""What every `pulumi` command and every part of the region imports. Importing it once leaves its bytecode in the
environment: without, each of them would compile for ten seconds what it only needs to load. Compiling all of the
packages instead would take minutes for types that nobody uses."""


def say(text: str) -> None:
    """One line of progress. On stderr: the stdout of `make -s env` holds exports only."""
    print(text, file=sys.stderr, flush=True)


def venv_package_line(os_release: str) -> str:
    """The command that installs what `python3 -m venv` misses, for this distribution."""
    families = {
        word
        for line in os_release.splitlines()
        for word in line.replace('"', "").lower().split("=")[-1].split()
    }
    if families & {"debian", "ubuntu"}:
        return "sudo apt-get install -y python{}.{}-venv".format(*sys.version_info)
    return "install your distribution's package with Python's modules `venv` and `ensurepip`"


def check_venv_module() -> None:
    """Refuses a Python that cannot make virtual environments (Debian splits that off)."""
    try:
        import ensurepip
        import venv  # noqa: F401 - only whether it is there

        ensurepip.version()
    except Exception as error:  # noqa: BLE001 - Debian's stub and a missing wheel fail in ways of their own
        os_release = Path("/etc/os-release")
        text = os_release.read_text(encoding="utf-8") if os_release.exists() else ""
        raise ToolchainError(
            f"{sys.executable} cannot make a virtual environment ({error}). This installs what is missing: "
            + venv_package_line(text)
        ) from error


def check_disk(folder: Path, needed: int = FREE_DISK_BYTES) -> None:
    """Refuses to start what the disk cannot hold."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ToolchainError(
            f"{folder} has {free / 1e9:.1f} GB free and the virtual environment needs {needed / 1e9:.1f} GB: free "
            "some space, or clone to a larger disk."
        )


def wanted_stamp(venv: Path, lock: Path) -> dict[str, str]:
    """What a finished environment of this lock and place looks like, with the interpreter that it has.

    The place is part of it because the scripts in `bin/` hold absolute paths: a moved checkout needs a new one.
    Another python3 on PATH is no reason to make it again, as long as its own interpreter is there.
    """
    return {
        "lock": hashlib.sha256(lock.read_bytes()).hexdigest(),
        "place": str(venv),
        "interpreter": os.path.realpath(venv / "bin" / "python"),
    }


def difference(venv: Path, lock: Path) -> str:
    """Why the environment cannot be used as it is; "" if it can. The stamp is written last."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "it was not finished, or not made here"
    wanted = wanted_stamp(venv, lock)
    reasons = {"lock": "requirements.lock changed", "place": "the checkout was moved"}
    changed = [text for key, text in reasons.items() if stamp.get(key) != wanted[key]]
    if stamp.get("interpreter") != wanted["interpreter"] or not os.access(venv / "bin" / "python", os.X_OK):
        changed.append("its Python is gone")
    return " and ".join(changed)


def remove(path: Path) -> None:
    """Removes a folder, or the link that stands in its place."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def create(venv: Path, lock: Path) -> None:
    """Makes the environment in place; whatever ends this early leaves no stamp, so that it is redone."""
    check_venv_module()
    check_disk(venv.parent)
    remove(venv)
    say(
        f"virtual environment: .venv from requirements.lock, Python {platform.python_version()}, about a minute"
    )
    venv.mkdir()
    env = {name: value for name, value in os.environ.items() if name not in UNWANTED_VARIABLES}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    # A virtual environment's own interpreter would be linked as the new one's base: name the real one.
    base = getattr(sys, "_base_executable", None) or sys.executable
    install = [
        "-m",
        "pip",
        "install",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--no-compile",
        "-r",
        str(lock),
    ]
    steps = {
        "making it": [base, "-m", "venv", str(venv)],
        "installing the packages": [str(venv / "bin" / "python"), *install],
        "compiling what is imported": [str(venv / "bin" / "python"), "-c", IMPORTED_EVERYWHERE],
    }
    seconds = 0.0
    for step, command in steps.items():
        try:
            seconds += run_logged(
                command,
                log=venv / "bootstrap.log",
                env=env,
                heartbeat=lambda now, step=step: say(f"virtual environment: {step} … {now:.0f} s"),
            )
        except CommandFailed as error:
            raise ToolchainError(f"virtual environment: {step} failed with {error}") from error
    fresh = venv / (STAMP + ".new")
    fresh.write_text(json.dumps(wanted_stamp(venv, lock), indent=1), encoding="utf-8")
    fresh.replace(venv / STAMP)
    say(f"virtual environment: ready after {seconds:.0f} s")


def ensure(venv: Path, lock: Path) -> None:
    """Makes sure that the environment is there; two at once wait for each other."""
    with lock.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("virtual environment: another make is at it; waiting")
            fcntl.flock(held, fcntl.LOCK_EX)
        reason = difference(venv, lock)
        if reason:
            if venv.is_symlink() or venv.exists():
                say(f"virtual environment: made again, since {reason}")
            create(venv, lock)


def main() -> int:
    """Checks the machine, then makes `.venv`, or removes the cache; returns the exit status."""
    if "--clean-cache" in sys.argv[1:]:
        return toolchain_command.main(["--clean"])
    try:
        machine.go_platform()
        if "--with-toolchain" in sys.argv[1:]:
            toolchain_command.check()
        ensure(VENV, LOCK)
    except ToolchainError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
