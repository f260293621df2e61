"""`make bench NAME=load`: a whole Penstock under the load of wrk, and 5,000 workers that wait.

Small Cypher queries through the control plane beside the same ones asked of a graph server
directly, lists of jobs, enqueues, and all of them mixed, from 1 to 256 clients. wrk is light, but
it is on the same cores.

`ARGS=query` (or several of query, list, mixed, enqueue, waiters) measures that alone, `ARGS="query
0.2"` for a fifth of the time; neither writes the ledger.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from bench.figures import Figure, publish, show
from bench.folder import temporary_folder
from bench.load import places, scenarios, waiters
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Sequence

WAITERS = "waiters"


async def main(arguments: Sequence[str]) -> int:
    logging.configure(level="ERROR")
    names = [name for name in arguments if name in (*scenarios.SCENARIOS, WAITERS)]
    parts = [float(argument) for argument in arguments if argument not in names]
    part = parts[0] if parts else 1.0
    names = names or [*scenarios.SCENARIOS, WAITERS]
    figures: dict[str, Figure] = {}
    with temporary_folder() as folder:
        if asked := [name for name in names if name != WAITERS]:
            async with places.graph_server(folder) as direct, places.plane(folder) as plane:
                rounds = scenarios.ROUNDS if part == 1 else 1
                results = await scenarios.measure(
                    plane, direct, asked, folder, rounds=rounds, seconds=scenarios.SECONDS * part
                )
            figures |= scenarios.figures(results)
        if WAITERS in names:
            figures |= await waiters.figures(folder / "waiters", part=part)
    return show("load", figures) if arguments else publish("load", figures)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
