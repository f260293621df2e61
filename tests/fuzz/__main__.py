"""`make fuzz NAME=maintenance N=5000 SEED=7`: a fuzzer; each failure prints its replay."""

from __future__ import annotations

import argparse
import importlib
import random
import sys

FUZZERS = {
    "api": "tests.api.fuzz",
    "graphs": "tests.graphdb.oracle.fuzz",
    "maintenance": "tests.maintenance.differential.fuzz",
    "reconcile": "tests.reconcile.oracle.fuzz",
    "snapshots": "tests.graph_server.roundtrip.fuzz",
}
"""Modules with `run(cases, seed)`, which prints failures and returns their number."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", choices=sorted(FUZZERS))
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="random when it is left out")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    failures = importlib.import_module(FUZZERS[options.name]).run(options.cases, seed)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
