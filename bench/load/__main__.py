"""`make bench NAME=load`: a whole Penstock under the load of wrk.

Small Cypher queries through the control plane beside the same ones asked of a graph server
directly, lists of jobs, enqueues, and all of them mixed, from 1 to 256 clients. wrk is light, but
it is on the same cores.

`ARGS=query` (or several of query, list, mixed, enqueue) measures that alone, `ARGS="query
0.2"` for a fifth of the time; neither writes the ledger.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from bench.figures import publish, show
from bench.folder import temporary_folder
from bench.load import places, scenarios
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Sequence

UNLIMITED = {"PENSTOCK_USER_REQUESTS_PER_SECOND": "0"}
"""The 16 users of this bench ask more often than people are allowed to."""


async def main(arguments: Sequence[str]) -> int:
    logging.configure(level="ERROR")
    names = [name for name in arguments if name in scenarios.SCENARIOS]
    parts = [float(argument) for argument in arguments if argument not in names]
    part = parts[0] if parts else 1.0
    with temporary_folder() as folder:
        async with places.graph_server(folder) as direct, places.plane(folder, UNLIMITED) as plane:
            results = await scenarios.measure(
                plane,
                direct,
                names or list(scenarios.SCENARIOS),
                folder,
                rounds=scenarios.ROUNDS if part == 1 else 1,
                seconds=scenarios.SECONDS * part,
            )
    figures = scenarios.figures(results)
    return show("load", figures) if arguments else publish("load", figures)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
