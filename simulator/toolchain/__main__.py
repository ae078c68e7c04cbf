"""`python -m simulator.toolchain`: builds what is missing and prints where each program is.

`--check` only says whether this machine could build it; `--clean` removes the cache. Needs no virtual environment
but to build on a machine without Go.
"""

import argparse
import sys

from simulator.toolchain import ToolchainError, ensure, machine, missing_programs
from simulator.toolchain.cache import Cache, cache_root


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def check() -> None:
    """Refuses a machine that cannot have the toolchain; says nothing if all is there or can be built."""
    machine.go_platform()
    if missing_programs():
        machine.check_disk(cache_root())
        machine.check_memory()


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m simulator.toolchain", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="only check the machine")
    choice.add_argument("--clean", action="store_true", help="remove the cache")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            check()
        elif options.clean:
            Cache(cache_root()).clean(_say)
        else:
            for name, path in sorted(ensure(_say).programs.items()):
                print(f"{name:28} {path}")
    except ToolchainError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("stopped: what is built stays built, the same command goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
