"""Run as a child: reads one query to its end and reports how much memory that took at most.

python -m tests.sources.memory '{"kind": …, "config": …, "secrets": …, "sql": …}'
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from penstock.sources.contract import Chunk
from penstock.sources.registry import open_source


def memory_mb(name: str) -> float:
    """By the kernel's own account of this image; getrusage would count the parent's, from before
    the exec."""
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)
    ]
    return int(line.split()[1]) / 1024


async def main(kind: str, config: dict[str, object], secrets: dict[str, str], sql: str) -> None:
    rows = size = 0
    async with open_source(kind, config, secrets) as source:
        await source.test()
        before = memory_mb("VmRSS")
        async for batch in source.stream(Chunk(number=0, sql=sql)):
            rows += batch.num_rows
            size += batch.nbytes
    print(  # noqa: T201
        json.dumps({"rows": rows, "mb": size / 1e6, "before": before, "peak": memory_mb("VmHWM")})
    )


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
