"""Staging a PostgreSQL table: plan and chunk jobs compared with bare readers, by CPU, load on the
source, and memory.

`python -m bench.reconcile.staging DSN SQL OUT` runs Penstock's side in a separate process: the
plan, then its chunks one by one under its snapshot, each into parts as a worker writes them.
Readers are those of the exports' benchmark.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
from rich.console import Console
from tests.servers.process import free_ports

from bench.child import child
from bench.exports import chunks
from bench.exports.apart import duckdb_scanner
from bench.figures import Figure, figure, median, peak_mb
from bench.server import Measured, measured
from penstock.kit import logging
from penstock.kit.postgres import Tcp
from penstock.reconcile.staging.handlers import CHUNKS
from penstock.sources.registry import open_source
from penstock.storage.object_store import open_store
from penstock.storage.parquet_sink import write_parquet
from penstock.worker.arrow_memory import choose_pool

if TYPE_CHECKING:
    from penstock.sources.contract import Limits

EXPORTS = Path(__file__).parents[1] / "exports"
ROWS = 5_000_000
READERS = ("adbc_tuned", "connectorx")
ROUNDS = 2
say = Console(stderr=True).print


async def figures(scratch: Path, scale: float) -> dict[str, Figure]:
    [port] = free_ports(1)
    async with measured(Tcp(port=port)) as server:
        dsn = await server.fresh("ledger")
        await _fill(dsn, round(ROWS * scale))
        figures = await _compared(server, dsn, scratch)
        work = await chunks.cost(dsn, "correlated", "ledger")
    return figures | {"staging_source_work": work["chunks_correlated"]}


async def _fill(dsn: str, rows: int) -> None:
    say(f"staging: a table of {rows:,} rows is filled")
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        (EXPORTS / "table.sql").read_text().replace(":rows", str(rows)), timeout=600
    )
    for text in ("CREATE INDEX ON ledger (id)", "VACUUM ANALYZE ledger"):
        await connection.execute(text, timeout=600)
    await connection.close()


async def _compared(server: Measured, dsn: str, scratch: Path) -> dict[str, Figure]:
    tcp, sql = server.cluster.tcp_dsn("ledger"), "SELECT * FROM ledger"
    runs: dict[str, list[dict[str, Any]]] = {}
    for number in range(ROUNDS):
        place = scratch / f"staging-{number}"
        runs.setdefault("ours", []).append(
            await child("bench.reconcile.staging", dsn, sql, str(place / "ours"))
        )
        for way in READERS:
            measured = await child("bench.exports.methods", way, dsn, tcp, sql, str(place / way))
            runs.setdefault(way, []).append(measured)
        if (scanned := await duckdb_scanner(tcp, place)) is not None:
            runs.setdefault("duckdb_scanner", []).append(scanned)
        shutil.rmtree(place)
    cpu = {
        way: median([run["cpu"] / run["rows"] * 1e6 for run in results])
        for way, results in runs.items()
    }
    for way, value in cpu.items():
        say(
            f"staging {way}: {value:.2f} CPU s a million rows, "
            f"{max(r['peak_mb'] for r in runs[way]):.0f} MB"
        )
    best = min(value for way, value in cpu.items() if way != "ours")
    sharing = min(value for way, value in cpu.items() if way in READERS)
    return {
        f"staging_cpu_{way}": figure(value, "CPU s / 1 M rows") for way, value in cpu.items()
    } | {
        "staging_speed_vs_fastest_bare_reader": figure(best / cpu["ours"], "x", ">= 0.9"),
        "staging_speed_vs_fastest_that_joins_a_snapshot": figure(sharing / cpu["ours"], "x"),
        "staging_peak_memory": figure(max(run["peak_mb"] for run in runs["ours"]), "MB", "<= 500"),
        "staging_chunks": figure(runs["ours"][0]["chunks"], "chunks"),
    }


async def stage(dsn: str, sql: str, out: Path, limits: Limits = CHUNKS) -> tuple[int, int]:
    """Rows and chunks."""
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    config = {"database": parts.path[1:], "user": query["user"][0], "host": query["host"][0]}
    rows = 0
    async with open_source("postgres", config | {"port": int(query["port"][0])}, {}) as source:
        plan = await source.plan(sql, limits)
        store = open_store(str(out))
        for chunk in plan.chunks:
            written = await write_parquet(
                store,
                f"chunk-{chunk.number:02d}/",
                plan.schema,
                source.stream(chunk),
                attempt="0" * 32,
            )
            rows += written.rows
        if plan.hold is not None:
            await plan.hold.close()
    return rows, len(plan.chunks)


def main(dsn: str, sql: str, out: str) -> None:
    logging.configure(level="ERROR")
    choose_pool()
    for name in ("warm", "real"):
        (Path(out) / name).mkdir(parents=True)
    asyncio.run(stage(dsn, f"{sql} LIMIT 1000", Path(out) / "warm"))
    before, started = _cpu(), time.monotonic()
    rows, count = asyncio.run(stage(dsn, sql, Path(out) / "real"))
    wall, cpu = time.monotonic() - started, _cpu() - before
    peak = peak_mb()
    print(json.dumps({"rows": rows, "chunks": count, "wall": wall, "cpu": cpu, "peak_mb": peak}))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
