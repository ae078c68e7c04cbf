"""`python -m simulator COMMAND`: the region alone (start, stop, status, reset), and a stack on it (up, down, env).

`make` calls up, down and env; the rest is for whoever wants the region by itself.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from simulator import lifecycle, up
from simulator.engine import EngineError
from simulator.lifecycle import DEFAULT_REGION_FILE, StartOptions
from simulator.region_folder import RegionFolder
from simulator.toolchain import ToolchainError, ensure


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit status."""
    given = _parser().parse_args(arguments)
    region = RegionFolder.of_checkout()
    try:
        _run(given, region)
    except (ToolchainError, lifecycle.RegionError, up.UpError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _run(given: argparse.Namespace, region: RegionFolder) -> None:
    if given.command == "up":
        up.up(region, given.stack, StartOptions(time_scale=given.time_scale))
    elif given.command == "down":
        up.down(region)
    elif given.command == "env":
        for name, value in region.environment().items():
            print(f"export {name}={shlex.quote(value)}")
    elif given.command == "start":
        lifecycle.prepare_folder(region, ensure(up.say))
        options = StartOptions(given.region.absolute(), given.time_scale, tuple(given.without))
        print("started" if lifecycle.start(region, options) else "already running")
    elif given.command == "stop":
        print("stopped" if lifecycle.stop(region) else "not running")
    elif given.command == "reset":
        lifecycle.reset(region)
        print("the region is stopped and its state is gone")
    else:
        up.print_status(region)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    scale = argparse.ArgumentParser(add_help=False)
    scale.add_argument(
        "--time-scale",
        type=float,
        default=float("inf"),
        metavar="N",
        help="how many times faster than in the cloud operations go (1: as long as there; default: at once)",
    )
    bring_up = commands.add_parser("up", parents=[scale], help="toolchain, region and `pulumi up` of a stack")
    bring_up.add_argument("stack", nargs="?", default="local")
    commands.add_parser("down", help="`pulumi destroy` of the stack, then stop the region")
    commands.add_parser("env", help="exports for a shell that drives the region by hand")
    start = commands.add_parser("start", parents=[scale], help="start the region alone")
    start.add_argument(
        "--region", type=Path, default=DEFAULT_REGION_FILE, metavar="FILE", help="a region file"
    )
    start.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["slice-controller"],
        help="leave the stand-in out: its Deployment is Ready once your own process serves (see status)",
    )
    commands.add_parser("stop", help="stop the region; its state stays")
    commands.add_parser("status", help="what runs, as JSON")
    commands.add_parser("reset", help="stop the region and forget its state")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
