"""`python -m simulator.cloud --region-dir DIR --region-file FILE [--time-scale N]`: serve the simulated cloud."""

from __future__ import annotations

import argparse
import logging
import math
import sys
from pathlib import Path

from simulator.cloud.region_file import RegionFileError
from simulator.cloud.server import AlreadyServed, serve


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop; 1 with one message when it cannot begin."""
    parser = argparse.ArgumentParser(prog="python -m simulator.cloud", description=__doc__)
    parser.add_argument(
        "--region-dir", type=Path, required=True, help="folder that holds all state of the region"
    )
    parser.add_argument("--region-file", type=Path, required=True, help="what the region is made of")
    parser.add_argument(
        "--time-scale",
        type=float,
        default=math.inf,
        help="divides what operations last in the cloud; without it they last nothing",
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        serve(given.region_dir, given.region_file, given.time_scale)
    except (RegionFileError, AlreadyServed, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
