"""A Trino result to Parquet, in a process of its own: `python -m bench.exports.pages ours|official
URL SQL DIR`."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit import logging

FETCH = 50_000


def ours(url: str, sql: str, out: Path) -> int:
    from penstock.sources.contract import Chunk
    from penstock.sources.registry import open_source
    from penstock.storage.object_store import open_store
    from penstock.storage.parquet_sink import write_parquet

    async def run() -> int:
        config = {
            "url": url,
            "user": "bench",
            "starburst_role": "bench",
            "role_catalog": None,
            "catalog": "tpch",
        }
        async with open_source("trino", config, {}) as source:
            schema = await source.schema(sql)
            plan = Chunk(number=0, sql=sql)
            store = open_store(str(out))
            return (
                await write_parquet(store, "t/", schema, source.stream(plan), attempt="0" * 32)
            ).rows

    return asyncio.run(run())


def official(url: str, sql: str, out: Path) -> int:
    import trino

    parts = urlsplit(url)
    connection = trino.dbapi.connect(
        host=parts.hostname, port=parts.port, user="bench", catalog="tpch"
    )
    cursor = connection.cursor()
    cursor.execute(sql)
    names = [column[0] for column in cursor.description]
    rows, writer = 0, None
    while page := cursor.fetchmany(FETCH):
        table = pa.table(dict(zip(names, map(list, zip(*page, strict=True)), strict=True)))
        writer = writer or pq.ParquetWriter(out / "t.parquet", table.schema, compression="zstd")
        writer.write_table(table)
        rows += len(page)
    if writer is not None:
        writer.close()
    return rows


def main(way: str, url: str, sql: str, out: str) -> None:
    work = {"ours": ours, "official": official}[way]
    work(url, f"{sql} LIMIT 1000", _fresh(Path(out) / "warm"))
    before, started = _cpu(), time.perf_counter()
    rows = work(url, sql, _fresh(Path(out) / "real"))
    json.dump(
        {"rows": rows, "wall": time.perf_counter() - started, "cpu": _cpu() - before}, sys.stdout
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
