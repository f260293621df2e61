"""`make bench NAME=kernel`: our kernel and other job systems on one durable PostgreSQL, rounds
interleaved.

Each piece of work runs in a process of its own, which times it after everything is imported, opened
and registered. A ratio is of the same round, and its median is reported with the least and the
most: the machine may be busy, but it is busy for all. CPU is of client and server together, from
the kernel's accounts. A goal is against the best of the others, which may be another one for each
figure.

`ARGS=drain` (or several of drain, producers, bulk, depth, pickup, fence) measures that alone,
`ARGS="drain 0.1"` with a tenth of the jobs and two rounds; neither writes the ledger.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from bench.figures import Figure, figure, publish, show
from bench.kernel import depth, drain, enqueue, fence, pickup
from bench.kernel.measure import ROUNDS, Bench, say
from bench.server import measured
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

PARTS: dict[str, Callable[[Bench], Awaitable[dict[str, Figure]]]] = {
    "drain": drain.figures,
    "producers": enqueue.figures,
    "bulk": enqueue.bulk,
    "depth": depth.figures,
    "pickup": pickup.figures,
    "fence": fence.figures,
}
TRIAL_ROUNDS = 2


async def main(arguments: Sequence[str]) -> int:
    logging.configure(level="ERROR")
    names = [name for name in arguments if name in PARTS]
    parts = [float(argument) for argument in arguments if argument not in PARTS]
    trial = bool(arguments)
    figures: dict[str, Figure] = {}
    async with measured() as server:
        bench = Bench(
            server, rounds=TRIAL_ROUNDS if parts else ROUNDS, part=parts[0] if parts else 1.0
        )
        for name in names or PARTS:
            started = time.perf_counter()
            figures |= await PARTS[name](bench)
            say(f"{name}: {time.perf_counter() - started:.0f} s in all")
    for name, reason in bench.missing.items():
        figures[f"without_{name}"] = figure(0, reason)
    return show("kernel", figures) if trial else publish("kernel", figures)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
