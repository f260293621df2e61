"""One matching in a process of its own, by `tight LEFT RIGHT SCRATCH MEMORY`: writes its counts and its peak memory."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from penstock.engines.contract import EngineLimits
from penstock.reconcile import validation
from penstock.reconcile.execution import Execution
from tests.reconcile.stand import recipe

RULE = {
    "name": "paid",
    "conditions": [
        {"left": "ref", "op": "eq", "right": "ref"},
        {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"},
    ],
}


def main(left: str, right: str, scratch: str, memory: str) -> None:
    evidence = (
        Execution(
            recipe=validation.read(recipe(rules=[RULE])),
            files={"left": [Path(left)], "right": [Path(right)]},
            scratch=Path(scratch),
            limits=EngineLimits(memory_bytes=int(memory)),
        )
        .run()
        .evidence
    )
    counts = {side: [totals.rows, totals.matched, totals.unmatched] for side, totals in evidence.sides.items()}
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    sys.stdout.write(json.dumps({"counts": counts, "peak": int(kilobytes) * 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
