"""Runs one cluster: see process.py."""

import sys

from simulator.cluster.process import main

sys.exit(main(sys.argv[1:]))
