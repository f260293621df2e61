"""One measured piece of work in a process of its own: `python -m bench.kernel.child SYSTEM ACTION
DSN JOBS SIZE NAME=PID…`, where the named processes are watched with all below them. Prints what the
timed section cost, as JSON."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
from dataclasses import asdict
from typing import Any

import asyncpg
import uvloop

from bench.kernel.section import Section

ENQUEUING = ("bulk", "singles", "alike", "own")


def main(system: str, action: str, dsn: str, jobs: str, size: str, *watched: str) -> None:
    logging.disable(logging.CRITICAL)
    module = importlib.import_module(f"bench.kernel.{system}")
    pids = (pair.split("=") for pair in watched)
    section = Section({name: int(pid) for name, pid in pids})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if action == "prepare":
            runner.run(module.setup(dsn))
            return
        value = runner.run(getattr(module, action)(section, dsn, int(jobs), int(size)))
        if section.spent is not None and action in ENQUEUING and hasattr(module, "JOBS"):
            runner.run(_check(dsn, module.JOBS, int(jobs)))
    answer: dict[str, Any] = {"value": value}
    if section.spent is not None:
        answer |= asdict(section.spent)
    print(json.dumps(answer))


async def _check(dsn: str, query: str, least: int) -> None:
    """What was enqueued is there."""
    connection = await asyncpg.connect(dsn)
    count = await connection.fetchval(query)
    await connection.close()
    if count < least:
        raise RuntimeError(f"{count} of {least} jobs are there")


if __name__ == "__main__":
    main(*sys.argv[1:])
