"""Makes `.venv`, the checkout's virtual environment, from `requirements.lock`. Run by `make`, with any python3.

It owns the folder `.venv` and nothing else: it refuses a platform or a Python that the locked wheels do not
serve, and never builds a package from source. Standard library only, and no syntax newer than Python 3.6:
a Python that is too old must get as far as the line that says so.
"""

import os
import shutil
import sys

OLDEST = (3, 11)
NEWEST = (3, 14)


def choose_python(version, which=shutil.which):
    """Returns None if `version` may run this, else the path of a Python on PATH that may ("" if there is none)."""
    if OLDEST <= version <= NEWEST:
        return None
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = which("python3.%d" % minor)
        if found:
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
        os.execv(other, [other] + sys.argv)

import fcntl
import hashlib
import json
import platform
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = "bootstrap.json"
FREE_DISK_BYTES = 1500 * 1000**2
"""The packages take 1.0 GB installed, and pip unpacks the largest of them (160 MB) beside that."""
MACHINES = ("x86_64", "aarch64")
HEARTBEAT_SECONDS = 10


def say(text):
    """One line of progress. On stderr: the stdout of `make -s env` holds exports only."""
    print(text, file=sys.stderr, flush=True)


def refuse(text):
    """Ends with one line on stderr and exit status 1."""
    sys.exit("error: " + text)


def check_platform(system, machine):
    """Refuses a machine for which neither the wheels nor the toolchain are made."""
    if system != "Linux" or machine not in MACHINES:
        refuse(
            "this runs on Linux x86_64 or aarch64 (got %s %s): the simulated hosts are Linux processes in their own "
            "namespaces. Use a Linux machine, or a virtual machine with 2 cores and 12 GB."
            % (system, machine)
        )


def venv_package_line(os_release):
    """The command that installs what `python3 -m venv` misses, for this distribution."""
    named = os_release.replace('"', "").lower()
    if "id=debian" in named or "id_like=debian" in named or "id=ubuntu" in named or "ubuntu" in named:
        return "sudo apt-get install -y python%d.%d-venv" % sys.version_info[:2]
    if "alpine" in named:
        return "sudo apk add py3-pip"
    return "install your distribution's package with Python's modules `venv` and `ensurepip`"


def check_venv_module():
    """Refuses a Python that cannot make virtual environments (Debian splits that off)."""
    try:
        import ensurepip
        import venv  # noqa: F401 - only whether it is there

        ensurepip.version()
    except Exception:  # noqa: BLE001 - Debian's stub and a broken wheel folder fail in ways of their own
        try:
            os_release = Path("/etc/os-release").read_text(encoding="utf-8")
        except OSError:
            os_release = ""
        refuse(
            "%s cannot make a virtual environment (no `ensurepip`). This installs it: %s"
            % (sys.executable, venv_package_line(os_release))
        )


def check_disk(folder, needed=FREE_DISK_BYTES):
    """Refuses to start what the disk cannot hold."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        refuse(
            "%s has %.1f GB free and the virtual environment needs %.1f GB: free some space, or clone to a larger disk."
            % (folder, free / 1e9, needed / 1e9)
        )


def wanted_stamp(venv):
    """What a finished environment of this lock, place and interpreter looks like.

    The place is part of it because the scripts in `bin/` hold absolute paths: a moved checkout needs a new one.
    """
    return {
        "lock": hashlib.sha256(LOCK.read_bytes()).hexdigest(),
        "place": str(venv),
        "python": platform.python_version(),
        "interpreter": os.path.realpath(sys.executable),
    }


def is_ready(venv, wanted):
    """Whether the environment was finished, and for exactly this. The stamp is written last."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(stamp == wanted and os.access(venv / "bin" / "python", os.X_OK))


def why_again(venv, wanted):
    """The reason for replacing an environment that is there."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "it was not finished, or not made here"
    names = {
        "lock": "requirements.lock changed",
        "place": "the checkout was moved",
        "python": "python3 changed its version",
        "interpreter": "python3 is another one",
    }
    changed = [text for key, text in names.items() if stamp.get(key) != wanted[key]]
    return " and ".join(changed) or "its interpreter is gone"


def remove(path):
    """Removes a folder, or the link that stands in its place."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def run(step, command, log, env):
    """Runs one command into the log, with a line at least every ten seconds; its last lines on failure."""
    started = time.monotonic()
    said = started
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
        try:
            while True:
                try:
                    status = process.wait(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() - said >= HEARTBEAT_SECONDS:
                        said = time.monotonic()
                        say("  %s … %d s" % (step, said - started))
        except BaseException:
            process.kill()
            process.wait()
            raise
    if status:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        say("\n".join("  | " + line for line in tail))
        refuse("%s failed (status %d); the whole log is %s" % (step, status, log))
    return time.monotonic() - started


def clean_environment(environ):
    """The caller's environment less what would make Python or pip install somewhere else."""
    unwanted = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
    kept = {key: value for key, value in environ.items() if key not in unwanted}
    kept.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
    return kept


def create(venv, wanted):
    """Makes the environment in place; whatever ends this early leaves no stamp, so that it is redone."""
    check_venv_module()
    check_disk(venv.parent)
    if venv.is_symlink() or venv.exists():
        say("virtual environment: replaced, since %s" % why_again(venv, wanted))
        remove(venv)
    env = clean_environment(os.environ)
    say("virtual environment: .venv from requirements.lock with Python %s, about a minute" % wanted["python"])
    venv.mkdir()
    log = venv / "bootstrap.log"
    # A virtual environment's own interpreter would be linked as the new one's base: name the real one.
    base = getattr(sys, "_base_executable", None) or sys.executable
    seconds = run("making the environment", [base, "-m", "venv", str(venv)], log, env)
    python = str(venv / "bin" / "python")
    install = [python, "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:", "--no-compile"]
    seconds += run("installing the packages", [*install, "-r", str(LOCK)], log, env)
    temporary = venv / (STAMP + ".new")
    temporary.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
    temporary.replace(venv / STAMP)
    say("virtual environment: ready after %d s" % seconds)


def main():
    """Makes sure that `.venv` is there; two at once wait for each other."""
    check_platform(platform.system(), platform.machine())
    with LOCK.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("virtual environment: another make is making it; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = wanted_stamp(VENV)
        if not is_ready(VENV, wanted):
            create(VENV, wanted)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
