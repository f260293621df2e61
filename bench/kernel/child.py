"""One measured piece of work in a process of its own: `python -m bench.kernel.child SYSTEM ACTION DSN JOBS SIZE`."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
import time
from typing import TYPE_CHECKING

import uvloop

from bench.kernel import ours, peers
from penstock.kit import logging as kit_logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ACTIONS: dict[str, Callable[[str, int, int], Awaitable[object]]] = {
    "ours bulk": ours.bulk,
    "ours singles": ours.singles,
    "ours own": ours.own,
    "ours drain": ours.drain,
    "ours claims": ours.claims,
    "ours pickup": ours.pickup,
    "ours pickup-http": ours.pickup_http,
    "pgqueuer bulk": peers.pgqueuer_bulk,
    "pgqueuer singles": peers.pgqueuer_singles,
    "pgqueuer drain": peers.pgqueuer_drain,
    "procrastinate bulk": peers.procrastinate_bulk,
    "procrastinate singles": peers.procrastinate_singles,
    "procrastinate drain": peers.procrastinate_drain,
}


def main(system: str, action: str, dsn: str, jobs: str, size: str) -> None:
    logging.disable(logging.CRITICAL)
    kit_logging.configure(level="ERROR")
    work = ACTIONS[f"{system} {action}"]
    before = _cpu()
    started = time.perf_counter()
    value = uvloop.run(_run(work(dsn, int(jobs), int(size))))
    wall = time.perf_counter() - started
    json.dump({"wall": wall, "cpu": _cpu() - before, "value": value}, sys.stdout)


async def _run(work: Awaitable[object]) -> object:
    return await asyncio.ensure_future(work)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
