"""Runs one matching in a separate process and prints its counts and peak memory.

Usage: `python -m tests.reconcile.measured_match LEFT RIGHT SCRATCH MEMORY [PATTERN]`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from penstock.engines.contract import EngineLimits
from penstock.reconcile.matching.execution import Execution
from penstock.reconcile.recipes import validation
from tests.reconcile.match_run import recipe

REF = {"left": "ref", "op": "eq", "right": "ref"}


def main(left: str, right: str, scratch: str, memory: str, pattern: str = "1:1") -> None:
    op = "tolerance" if pattern == "1:1" else "sum_within"
    near = {"left": "amount", "op": op, "right": "amount", "absolute": "0.02"}
    rules = [{"name": "paid", "pattern": pattern, "conditions": [REF, near]}]
    evidence = (
        Execution(
            recipe=validation.read(recipe(rules=rules, limits={"candidates_per_row": 100})),
            files={"left": [Path(left)], "right": [Path(right)]},
            scratch=Path(scratch),
            limits=EngineLimits(memory_bytes=int(memory)),
        )
        .run()
        .evidence
    )
    counts = {
        side: [totals.rows, totals.matched, totals.unmatched]
        for side, totals in evidence.sides.items()
    }
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    sys.stdout.write(json.dumps({"counts": counts, "peak": int(kilobytes) * 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
