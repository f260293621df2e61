"""Run as a child: reads one query to its end and reports how much memory that took at most.

python -m tests.sources.memory '{"kind": …, "config": …, "secrets": …, "sql": …}'
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from penstock.sources.contract import Chunk
from penstock.sources.registry import open_source


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1024 / 1024


async def main(kind: str, config: dict[str, object], secrets: dict[str, str], sql: str) -> None:
    rows = size = 0
    async with open_source(kind, config, secrets) as source:
        await source.test()
        before = resident_mb()
        async for batch in source.stream(Chunk(number=0, sql=sql)):
            rows += batch.num_rows
            size += batch.nbytes
    print(json.dumps({"rows": rows, "mb": size / 1e6, "before": before, "peak": peak_mb()}))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
