"""`make bench NAME=api`: the control plane as `penstock up` runs it, asked over HTTP.

Lists, the tree and creations are asked of a house without workers, so that nothing but the request
is measured; starts are of a house with one. Statements are counted in a process of their own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
from rich.console import Console

from bench.api import queries, starts
from bench.api.asking import Asker
from bench.figures import Figure, figure, median, publish, quantile
from bench.folder import temporary_folder
from bench.load import places
from penstock.cli.home import Home
from penstock.cli.stack import Stack
from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HERE = Path(__file__).parent
LISTS = 200
CREATES = 90
STARTS = 5
ROOMY = {
    "PENSTOCK_INSTANCE_MEMORY_PER_USER_GB": "1000",
    "PENSTOCK_INSTANCE_MEMORY_TOTAL_GB": "1000",
}
PAGES = (
    "limit=100",
    "limit=50&offset=5000",
    "owner=user7",
    "status=failed&limit=100",
    "search=instance%201",
)
say = Console(stderr=True).print


async def main() -> int:
    logging.configure(level="ERROR")
    with temporary_folder() as folder:
        figures = await _requests(folder)
        figures |= await _starts(folder)
    return publish("api", figures)


async def _requests(folder: Path) -> dict[str, Figure]:
    async with _house(folder / "quiet", workers=0) as (ask, dsn):
        connection = await asyncpg.connect(dsn)
        await connection.execute((HERE / "rows.sql").read_text(), timeout=120)
        tree = await connection.fetchval("SELECT max(mapping_id) FROM penstock.mapping")
        await connection.close()
        listed = await _timed(
            ask, [f"/api/instances?{PAGES[n % len(PAGES)]}" for n in range(LISTS)]
        )
        paths = {
            "few": "/api/instances?limit=1",
            "many": "/api/instances?limit=100",
            "tree": f"/api/mappings/{tree}/tree?include_instances=true",
        }
        counted = await queries.counts(dsn, folder / "counting", paths)
        walked = await _timed(ask, [paths["tree"]] * 20)
        creations = await _creations(ask, folder)
    say(
        f"list p95 {quantile(listed, 0.95):.1f} ms, create p95 {quantile(creations, 0.95):.1f} ms,"
        f" statements {counted}"
    )
    return {
        "list_instances_of_10000_p95": figure(quantile(listed, 0.95), "ms", "<= 50"),
        "list_instances_statements": figure(counted["many"], "queries"),
        "list_instances_statements_more_for_100_than_for_1": figure(
            counted["many"] - counted["few"], "queries", "<= 0"
        ),
        "tree_50_versions_20_snapshots_statements": figure(counted["tree"], "queries", "<= 10"),
        "tree_50_versions_20_snapshots_p95": figure(quantile(walked, 0.95), "ms"),
        "create_instance_p95": figure(quantile(creations, 0.95), "ms", "<= 100"),
        "create_instance_p50": figure(median(creations), "ms"),
    }


async def _creations(ask: Asker, folder: Path) -> list[float]:
    """Each writes a snapshot, its export jobs and the instance; nobody works on them."""
    await ask("PUT", "/api/config/concurrency", {"per_analyst": 100, "cluster_total": 1000})
    mapping = await starts.mapping(ask, folder)
    times = []
    for number in range(CREATES):
        started = time.perf_counter()
        await ask("POST", "/api/instances", {"mapping_id": mapping, "name": f"instance {number}"})
        times.append((time.perf_counter() - started) * 1000)
    return times


async def _starts(folder: Path) -> dict[str, Figure]:
    (warehouse := folder / "warehouse").mkdir()
    async with _house(folder / "busy", workers=1) as (ask, _):
        try:
            mapping = await starts.mapping(ask, warehouse)
            whole = [await starts.from_mapping(ask, mapping) for _ in range(STARTS)]
            ready = [await starts.from_snapshot(ask, whole[-1][1]) for _ in range(STARTS)]
        finally:
            await starts.ended(ask)
    say(
        f"from mapping {[round(s, 2) for s, _ in whole]} s, from snapshot"
        f" {[round(s, 2) for s in ready]} s"
    )
    return {
        "start_on_ready_snapshot_worst_of_5": figure(max(ready), "s", "<= 3"),
        "start_on_ready_snapshot_median": figure(median(ready), "s"),
        "start_from_mapping_worst_of_5": figure(max(s for s, _ in whole), "s", "<= 6"),
        "start_from_mapping_median": figure(median([s for s, _ in whole]), "s"),
    }


async def _timed(ask: Asker, paths: list[str]) -> list[float]:
    times = []
    for path in paths:
        started = time.perf_counter()
        await ask("GET", path)
        times.append((time.perf_counter() - started) * 1000)
    return times


@asynccontextmanager
async def _house(home: Path, *, workers: int) -> AsyncIterator[tuple[Asker, str]]:
    async with Stack(Home(home), port=0, workers=workers, environment=ROOMY) as stack:
        dsn = places.database_url(stack)
        async with Asker(stack.url, stack.home.secret("operator_token")) as ask:
            yield ask, dsn


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
