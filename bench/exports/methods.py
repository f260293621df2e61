"""One way of taking a query to Parquet, in a process of its own: `… methods WAY DSN TCP SQL DIR`.

Every way ends in the same types: decimals exact, timestamps in microseconds UTC, zstd, row groups
of 262,144.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP = 262_144
DECIMALS = {"amount": pa.decimal128(12, 2), "rate": pa.decimal128(10, 4)}
LOW = ["status", "branch"]


def ours(dsn: str, _tcp: str, sql: str, out: Path) -> int:
    from penstock.sources.contract import Chunk
    from penstock.sources.registry import open_source
    from penstock.storage.object_store import open_store
    from penstock.storage.parquet_sink import write_parquet
    from penstock.worker.arrow_memory import choose_pool

    choose_pool()

    async def run() -> int:
        parts = urlsplit(dsn)
        query = parse_qs(parts.query)
        config = {"database": parts.path[1:], "user": query["user"][0], "host": query["host"][0]}
        async with open_source("postgres", config | {"port": int(query["port"][0])}, {}) as source:
            schema = await source.schema(sql)
            batches = source.stream(Chunk(number=0, sql=sql))
            store = open_store(str(out))
            return (await write_parquet(store, "t/", schema, batches, attempt="0" * 32)).rows

    return asyncio.run(run())


def adbc(dsn: str, _tcp: str, sql: str, out: Path) -> int:
    return _adbc(dsn, sql, out, use_dictionary=True)


def adbc_tuned(dsn: str, _tcp: str, sql: str, out: Path) -> int:
    return _adbc(dsn, sql, out, use_dictionary=LOW)


def _adbc(dsn: str, sql: str, out: Path, *, use_dictionary: bool | list[str]) -> int:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        reader = cursor.fetch_record_batch()
        return _write(map(_typed, reader), out, use_dictionary=use_dictionary)


def connectorx(_dsn: str, tcp: str, sql: str, out: Path) -> int:
    import connectorx as cx

    reader = cx.read_sql(tcp, sql, return_type="arrow_stream", batch_size=GROUP)
    return _write(map(_typed, reader), out, use_dictionary=LOW)


def polars(_dsn: str, tcp: str, sql: str, out: Path) -> int:
    import polars as pl

    frame = pl.read_database_uri(sql, tcp, engine="connectorx")
    frame = frame.with_columns(
        pl.col("amount").cast(pl.Decimal(12, 2)), pl.col("rate").cast(pl.Decimal(10, 4))
    )
    frame.write_parquet(
        out / "t.parquet", compression="zstd", compression_level=1, row_group_size=GROUP
    )
    return frame.height


def pandas(_dsn: str, tcp: str, sql: str, out: Path) -> int:
    import pandas as pd
    import psycopg

    with psycopg.connect(tcp) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        names = [column.name for column in cursor.description or ()]
        frame = pd.DataFrame(cursor.fetchall(), columns=names)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, out / "t.parquet", compression="zstd", row_group_size=GROUP)
    return table.num_rows


def _typed(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        decimal = DECIMALS.get(field.name)
        storage = column.storage if isinstance(column, pa.ExtensionArray) else column
        columns.append(
            pc.cast(storage, decimal)
            if decimal is not None and storage.type != decimal
            else storage
        )
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _write(batches, out: Path, *, use_dictionary: bool | list[str]) -> int:  # type: ignore[no-untyped-def]
    rows, writer, pending = 0, None, []
    for batch in batches:
        writer = writer or pq.ParquetWriter(
            out / "t.parquet",
            batch.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=use_dictionary,
        )
        pending.append(batch)
        rows += batch.num_rows
        if sum(b.num_rows for b in pending) >= GROUP:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=GROUP)
            pending = []
    if writer is not None:
        if pending:
            writer.write_table(pa.Table.from_batches(pending))
        writer.close()
    return rows


WAYS: dict[str, Callable[[str, str, str, Path], int]] = {
    "ours": ours,
    "adbc": adbc,
    "adbc_tuned": adbc_tuned,
    "connectorx": connectorx,
    "polars": polars,
    "pandas": pandas,
}


def main(way: str, dsn: str, tcp: str, sql: str, out: str) -> None:
    work, folder = WAYS[way], Path(out)
    work(dsn, tcp, sql + " LIMIT 1000", _fresh(folder / "warm"))
    before, started = _cpu(), time.perf_counter()
    rows = work(dsn, tcp, sql, _fresh(folder / "real"))
    wall = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(f.stat().st_size for f in (folder / "real").rglob("*.parquet")) / 1e6
    json.dump(
        {"rows": rows, "wall": wall, "cpu": _cpu() - before, "peak_mb": peak, "file_mb": size},
        sys.stdout,
    )


def _fresh(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    logging.configure(level="ERROR")
    main(*sys.argv[1:])
