"""Run as a child: reads one query to its end; prints its rows and its peak of memory in MB, early
and at the end.

python -m tests.sources.trino.appetite '{"config": …, "secrets": …, "sql": …, "early": 100000}'
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from penstock.kit import logging
from penstock.sources.contract import Chunk
from penstock.sources.trino import connect


def peak_mb() -> int:
    """The high-water mark of this program; that of `getrusage` begins with the parent's size."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) // 1024


async def main(config: dict[str, object], secrets: dict[str, str], sql: str, early: int) -> None:
    logging.configure(level="WARNING")
    rows = first = 0
    async with connect(config, secrets) as source:
        async for batch in source.stream(Chunk(number=0, sql=sql)):
            rows += batch.num_rows
            if rows >= early and not first:
                first = peak_mb()
    print(rows, first, peak_mb())  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
