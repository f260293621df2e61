"""`make bench NAME=exports`: our export path and its peers on the same data, by client CPU.

A peer that is not there (no Maven for Trino, no wheel of DuckDB's scanner) is left out with a line
that says so.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import asyncpg
from rich.console import Console
from tests.servers.process import free_ports

from bench.child import child
from bench.exports import chunks, waiting
from bench.exports.apart import duckdb_scanner
from bench.figures import Figure, figure, publish
from bench.server import Measured, measured
from penstock.kit import logging
from penstock.kit.postgres import Tcp

HERE = Path(__file__).parent
ROWS = 5_000_000
FEWER = {"polars": 2_000_000, "pandas": 300_000}
WAYS = ("ours", "adbc", "adbc_tuned", "connectorx", "polars", "pandas")
FLAT = (1_000_000, 10_000_000, 50_000_000)
say = Console(stderr=True).print


async def main() -> int:
    logging.configure(level="ERROR")
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-out-"))
    try:
        [port] = free_ports(1)
        async with measured(Tcp(port=port)) as server:
            figures = await _postgres(server, scratch)
        figures |= await _trino(scratch)
        figures |= await waiting.cost(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return publish("exports", figures)


async def _postgres(server: Measured, scratch: Path) -> dict[str, Figure]:
    dsn = await server.fresh("ledger")
    connection = await asyncpg.connect(dsn)
    statement = (HERE / "table.sql").read_text().replace(":rows", str(ROWS))
    await connection.execute(statement, timeout=600)
    await connection.execute("CREATE INDEX ON ledger (id)", timeout=600)
    shuffled = "CREATE TABLE shuffled AS SELECT * FROM ledger WHERE id % 5 = 0 ORDER BY digest, id"
    await connection.execute(shuffled, timeout=600)
    for text in (
        "CREATE INDEX ON shuffled (id)",
        "VACUUM ANALYZE ledger",
        "VACUUM ANALYZE shuffled",
    ):
        await connection.execute(text, timeout=600)
    await connection.close()
    figures = await _ways(server, dsn, scratch)
    figures |= await _memory(server, dsn, scratch)
    figures |= await chunks.cost(dsn, "correlated", "ledger")
    return figures | await chunks.cost(dsn, "shuffled", "shuffled")


async def _ways(server: Measured, dsn: str, scratch: Path) -> dict[str, Figure]:
    tcp = server.cluster.tcp_dsn("ledger")
    cpu: dict[str, float] = {}
    results: dict[str, Any] = {}
    for way in WAYS:
        sql = "SELECT * FROM ledger" + (f" WHERE id <= {FEWER[way]}" if way in FEWER else "")
        results[way] = await child("bench.exports.methods", way, dsn, tcp, sql, str(scratch / way))
        cpu[way] = results[way]["cpu"] / results[way]["rows"] * 1e6
        say(
            f"{way}: {cpu[way]:.2f} CPU s per million rows, {results[way]['peak_mb']:.0f} MB,"
            f" {results[way]['rows']:,} rows"
        )
    if (scanned := await duckdb_scanner(tcp, scratch)) is not None:
        cpu["duckdb"] = scanned["cpu"] / scanned["rows"] * 1e6
        say(f"duckdb scanner: {cpu['duckdb']:.2f} CPU s a million rows")
    best = min(value for way, value in cpu.items() if way != "ours")
    figures = {
        f"postgres_cpu_{way}": figure(value, "CPU s / 1 M rows") for way, value in cpu.items()
    }
    return figures | {
        "postgres_cpu_vs_best_peer": figure(cpu["ours"] / best, "x", "<= 1.1"),
        "postgres_peak_memory": figure(results["ours"]["peak_mb"], "MB", "<= 500"),
    }


async def _memory(server: Measured, dsn: str, scratch: Path) -> dict[str, Figure]:
    """Resident memory over rows that are made as they are read: a curve that must be flat."""
    tcp = server.cluster.tcp_dsn("ledger")
    figures: dict[str, Figure] = {}
    for rows in FLAT:
        sql = (
            "SELECT g AS id, g % 1000 AS kind, 'r' || g AS name"
            f" FROM generate_series(1::bigint, {rows}) g"
        )
        result = await child(
            "bench.exports.methods", "ours", dsn, tcp, sql, str(scratch / f"flat{rows}")
        )
        shutil.rmtree(scratch / f"flat{rows}")
        figures[f"memory_{rows // 1_000_000}m_rows"] = figure(result["peak_mb"], "MB", "<= 500")
        say(f"{rows:,} rows: {result['peak_mb']:.0f} MB")
    return figures


async def _trino(scratch: Path) -> dict[str, Figure]:
    from tests.servers.parts import Missing
    from tests.servers.trino import trino

    sql = "SELECT * FROM tpch.sf1.lineitem WHERE orderkey <= 1000000"
    (scratch / "trino").mkdir()
    try:
        with trino(scratch / "trino") as server:
            rate = {}
            for way in ("official", "ours"):
                result = await child(
                    "bench.exports.pages", way, server.url, sql, str(scratch / f"pages-{way}")
                )
                rate[way] = result["rows"] / result["cpu"]
                say(f"trino {way}: {rate[way]:,.0f} rows per CPU second of {result['rows']:,}")
    except Missing as e:
        say(f"No Trino here: {e}")
        return {}
    return {
        "trino_rows_per_cpu_second": figure(rate["ours"], "rows/s"),
        "trino_vs_official_client": figure(rate["ours"] / rate["official"], "x", ">= 8"),
    }


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
