"""More cases than the tests have, or one of them again: `make fuzz NAME=graphs N=1000 SEED=7`.

A hundredth as many whole graphs go from a snapshot to a server's answers and are compared there,
which takes longer.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from tests.graph_server.roundtrip import fuzz as roundtrip
from tests.graphdb.oracle.cases import batches, check
from tests.graphdb.oracle.engines import BACKENDS, Engine

CASES_A_GRAPH = 100


def run(cases: int, seed: int) -> int:
    """Ask every engine so many queries; how many it got wrong, each printed with the seed that
    brings it back."""
    asked, wrong = 0, 0
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine(backend)) for backend in BACKENDS]
        for batch in batches(cases, seed):
            for engine in (engine for engine in engines if batch.fits(engine.backend)):
                engine.load(batch.graph)
                count, mistakes = check(engine, batch, seed)
                asked, wrong = asked + count, wrong + len(mistakes)
                for mistake in mistakes:
                    sys.stdout.write(f"{mistake}\n\n")
    sys.stdout.write(f"{asked} queries of {cases} cases with seed {seed}: {wrong} wrong\n")
    return wrong + roundtrip.run(cases // CASES_A_GRAPH, seed)
