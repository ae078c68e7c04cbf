"""`python -m ops COMMAND …`.

Owns the list of commands. A command is a module of this package with `HELP`, `add_arguments(parser)` and
`run(arguments)`, which returns the exit code; it is imported only when it is asked for or its help is. Refuses
to hold anything of a command itself.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Protocol, cast

COMMANDS = ("check", "import-map", "render", "verify")


class Command(Protocol):
    """What a command's module offers."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m ops", description="Commands on a stack.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = [word for word in words[:1] if word in COMMANDS] or COMMANDS
    modules = {
        name: cast("Command", importlib.import_module(f"ops.{name.replace('-', '_')}")) for name in wanted
    }
    for name, module in modules.items():
        module.add_arguments(commands.add_parser(name, help=module.HELP, description=module.HELP))
    parsed = parser.parse_args(words)
    return modules[parsed.command].run(parsed)


if __name__ == "__main__":
    sys.exit(main())
