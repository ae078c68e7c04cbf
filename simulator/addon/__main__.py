"""`python -m simulator.addon`: the add-on of one cluster as a process of its own, until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from pathlib import Path

from simulator.addon.service import Addon


def main() -> None:
    """Run until told to end."""
    parser = argparse.ArgumentParser(prog="python -m simulator.addon", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="an administrator's kubeconfig")
    parser.add_argument(
        "--cluster-folder", type=Path, required=True, help="holds cluster.json, pools/, knobs"
    )
    parser.add_argument(
        "--time-scale",
        type=float,
        default=1.0,
        help="divides what the cloud takes; inf is as fast as possible",
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    addon = Addon(options.kubeconfig, options.cluster_folder, time_scale=options.time_scale)
    addon.start()
    ended.wait()
    addon.stop()


if __name__ == "__main__":
    main()
