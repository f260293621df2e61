"""Fifty exports that wait for a Trino that is still thinking: what they cost the process that
waits.

The server is the protocol-true one, whose queries run until they are released; each GET is held for
a second, as a coordinator does. `python -m bench.exports.waiting URL SECONDS` is the process that
waits.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import TYPE_CHECKING

from bench.figures import Figure, figure
from penstock.kit import logging
from penstock.sources.contract import Chunk
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from pathlib import Path

EXPORTS = 50
SECONDS = 20


async def cost(_scratch: Path) -> dict[str, Figure]:
    from tests.servers.trino_fake import Script, TrinoFake

    async with TrinoFake() as server:
        server.long_poll = 1.0
        server.scripts.append(Script(match="SELECT", release=asyncio.Event()))
        command = [sys.executable, "-m", "bench.exports.waiting", server.url, str(SECONDS)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError("the waiting process failed")
    result = json.loads(output)
    return {
        "waiting_50_exports_cpu": figure(result["cpu_percent"], "% of a core", "< 5"),
        "waiting_50_exports_memory": figure(result["peak_mb"], "MB", "< 300"),
    }


async def _wait(url: str, seconds: float) -> dict[str, float]:
    config = {"url": url, "user": "bench", "starburst_role": "bench", "role_catalog": None}
    async with open_source("trino", config, {}) as source:

        async def one(number: int) -> None:
            async for _ in source.stream(Chunk(number=number, sql=f"SELECT {number}")):
                pass

        waiting = [asyncio.create_task(one(number)) for number in range(EXPORTS)]
        await asyncio.sleep(3)
        before, started = _cpu(), time.monotonic()
        await asyncio.sleep(seconds)
        spent, lasted = _cpu() - before, time.monotonic() - started
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu_percent": spent / lasted * 100, "peak_mb": peak}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    logging.configure(level="ERROR")
    json.dump(asyncio.run(_wait(sys.argv[1], float(sys.argv[2]))), sys.stdout)
