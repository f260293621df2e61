"""Run as a child that will be killed: submits a statement and polls it, printing what it would
persist.

python -m tests.sources.trino.poller '{"config": …, "sql": …}'
"""

from __future__ import annotations

import asyncio
import json
import sys

from penstock.kit import logging
from penstock.sources.contract import Running
from penstock.sources.trino import connect


async def main(config: dict[str, object], sql: str) -> None:
    logging.configure(level="WARNING")
    async with connect(config, {}) as source:
        statements = source.statements(trace="first")
        submitted = await statements.submit(sql)
        step = Running(next_uri=submitted.next_uri, state="")
        print(submitted.query_id, flush=True)  # noqa: T201
        for _ in range(3):
            print(step.next_uri, flush=True)  # noqa: T201
            polled = await statements.poll(step.next_uri)
            assert isinstance(polled, Running)
            step = polled
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
