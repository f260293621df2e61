"""`make bench NAME=scale`: a control plane with ten million jobs that are not over, asked over
HTTP; 5,000 workers that wait over HTTP; and how long a real failover takes, while producers and a
worker go on.

`ARGS=0.01` measures a hundredth of the jobs and waiters and one failover, and writes no ledger.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import httpx2
from rich.console import Console

from bench.figures import Figure, figure, median, publish, show
from bench.folder import temporary_folder
from bench.load import places
from bench.scale import failover, waiters
from penstock.cli.home import Home
from penstock.cli.stack import Stack
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
ASKED = 15
ROWS = 10_000_000
LISTS = {
    "all": "",
    "queued": "status=queued",
    "running": "status=running",
    "parked": "status=parked",
    "small_queue": "queue=small",
    "queued_in_large_queue": "status=queued&queue=large",
    "queued_in_small_queue": "status=queued&queue=small",
    "parked_in_small_queue": "status=parked&queue=small",
    "common_kind": "kind=common",
    "failed": "status=failed",
}
"""What people look at. A kind that one job in 100,000 has is none of these: its page is looked for
in every stretch of the table that has one."""
say = Console(stderr=True).print


async def main(arguments: Sequence[str]) -> int:
    logging.configure(level="ERROR")
    part = float(arguments[0]) if arguments else 1.0
    with temporary_folder() as folder:
        figures = await _backlog(folder, max(1, round(ROWS * part)))
        figures |= await waiters.figures(folder / "waiters", part=part)
        figures |= await failover.figures(folder, rounds=failover.ROUNDS if part == 1 else 1)
    return show("scale", figures) if arguments else publish("scale", figures)


async def _backlog(folder: Path, rows: int) -> dict[str, Figure]:
    async with Stack(Home(folder / "home"), port=0, workers=0) as stack:
        dsn = places.database_url(stack)
        connection = await asyncpg.connect(dsn)
        started = time.perf_counter()
        await connection.execute(f"SET bench.rows = {rows}")
        await connection.execute((HERE / "rows.sql").read_text(), timeout=3600)
        say(f"{rows:,} rows in {time.perf_counter() - started:.0f} s")
        await connection.close()
        headers = {"Authorization": f"Bearer {stack.home.secret('operator_token')}"}
        async with httpx2.AsyncClient(
            base_url=stack.url, headers=headers, timeout=60, trust_env=False
        ) as http:
            scraped = await _timed(http, "/metrics", pause=1.1)
            queues = await _timed(http, "/api/queues")
            lists = {
                name: await _timed(http, f"/api/jobs?limit=50&{query}")
                for name, query in LISTS.items()
            }
    slowest = max(lists, key=lambda name: median(lists[name]))
    say({name: f"{median(times):.1f} ms" for name, times in lists.items()}, f"slowest: {slowest}")
    return {
        "metrics_at_10m_live_rows": figure(median(scraped), "ms", "< 50"),
        "metrics_at_10m_live_rows_worst": figure(max(scraped), "ms"),
        "queues_at_10m_live_rows": figure(median(queues), "ms", "< 50"),
        "slowest_list_page_at_10m_live_rows": figure(median(lists[slowest]), "ms", "< 50"),
    }


async def _timed(http: httpx2.AsyncClient, path: str, pause: float = 0) -> list[float]:
    """Milliseconds of each answer; with a pause, so that none is of a look that is still fresh."""
    times = []
    for _ in range(ASKED):
        started = time.perf_counter()
        answer = await http.get(path)
        times.append((time.perf_counter() - started) * 1000)
        if not answer.is_success:
            raise SystemExit(f"{path}: {answer.status_code} {answer.text[:500]}")
        await asyncio.sleep(pause)
    return times


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
