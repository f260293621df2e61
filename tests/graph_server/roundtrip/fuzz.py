"""More cases than the tests have, or one of them again: `make fuzz NAME=snapshots N=20 SEED=7`."""

from __future__ import annotations

import asyncio
import sys

from tests.graph_server.roundtrip import cases
from tests.graph_server.roundtrip.columns import KINDS


def run(count: int, seed: int) -> int:
    """Serve so many graphs by every engine; how many came back wrong, each printed with its own
    seed."""
    wrong = 0
    for number in range(seed, seed + count):
        for backend in KINDS:
            case = cases.make(number, backend)
            lines = asyncio.run(cases.run(case))
            wrong += bool(lines)
            for line in lines:
                sys.stdout.write(f"{case.replay}: {line}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count * len(KINDS)} graphs from seed {seed}: {wrong} came back wrong\n")
    return wrong
