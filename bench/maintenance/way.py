"""One way of maintaining one table, in a process of its own: `… way WAY FOLDER TABLE`. Says what it cost."""

from __future__ import annotations

import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from bench.maintenance import lake
from penstock.kit import logging
from penstock.maintenance import embedded
from penstock.maintenance.action import parse
from penstock.maintenance.lake import CatalogLake
from penstock.maintenance.probe import proven
from penstock.maintenance.run import Run

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

LATER = datetime.now(UTC) + timedelta(days=30)


def ours(opened: Catalog, name: str) -> None:
    _act(opened, name, {"name": "rewrite_data_files", "force": True})


def ours_manifests(opened: Catalog, name: str) -> None:
    _act(opened, name, "rewrite_manifests")


def ours_expire(opened: Catalog, name: str) -> None:
    _act(opened, name, {"name": "expire_snapshots", "retain_last": 1, "older_than_seconds": 0})


def naive(opened: Catalog, name: str) -> None:
    table = opened.load_table(("bench", name))
    table.overwrite(table.scan().to_arrow())


def pandas(opened: Catalog, name: str) -> None:
    import pyarrow as pa

    table = opened.load_table(("bench", name))
    frame = table.scan().to_pandas()
    table.overwrite(pa.Table.from_pandas(frame, schema=table.schema().as_arrow(), preserve_index=False))


def plan(opened: Catalog, name: str) -> None:
    list(opened.load_table(("bench", name)).scan().plan_files())


WAYS = {way.__name__: way for way in (ours, ours_manifests, ours_expire, naive, pandas, plan)}


def _act(opened: Catalog, name: str, action: Any) -> None:
    run = Run(job_id=1, attempt="bench", now=lambda: LATER)
    outcome = embedded.execute(CatalogLake(opened, ("bench", name)), run, parse([action])[0])
    if outcome.status != "completed":
        raise RuntimeError(f"{action} of {name}: {outcome.status} {outcome.message}")


def content(opened: Catalog, name: str) -> list[int]:
    """Rows and an order-independent sum over them, by DuckDB from the files that the table names."""
    paths = [task.file.file_path for task in opened.load_table(("bench", name)).scan().plan_files()]
    sql = "SELECT count(*), sum(hash(id, day, customer, amount, status, payload)::HUGEINT) FROM read_parquet(?)"
    with duckdb.connect() as engine:
        [(rows, total)] = engine.execute(sql, [paths]).fetchall()
    return [len(paths), int(rows), int(total)]


def main(way: str, folder: Path, name: str) -> None:
    logging.configure(level="ERROR")
    opened = lake.catalog(folder)
    if way == "content":
        sys.stdout.write(json.dumps({"content": content(opened, name)}))
        return
    if way == "ours":
        proven()
    cpu, wall = time.process_time(), time.monotonic()
    WAYS[way](opened, name)
    found = {
        "cpu": time.process_time() - cpu,
        "wall": time.monotonic() - wall,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
