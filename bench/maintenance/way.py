"""Runs one implementation on one table in its own process and prints its cost as JSON.

Usage: `python -m bench.maintenance.way WAY FOLDER TABLE`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import duckdb
from pyiceberg.expressions import AlwaysTrue

from bench.figures import peak_mb
from bench.maintenance import dataset
from penstock.kit import logging
from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.actions.model import parse
from penstock.maintenance.actions.probe import proven
from penstock.maintenance.engines import embedded
from penstock.maintenance.tables.catalog.table_access import CatalogTableAccess
from penstock.worker.arrow_memory import choose_pool

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

LATER = datetime.now(UTC) + timedelta(days=30)
REPEATED = {"plan": 20, "scan": 5}
"""They take fractions of a second: what the library imports at the first one would hide them."""


def ours(opened: Catalog, name: str) -> None:
    _act(opened, name, {"name": "rewrite_data_files", "force": True})


def ours_sorted(opened: Catalog, name: str) -> None:
    _act(opened, name, {"name": "rewrite_data_files", "force": True, "sort_order": "customer, id"})


def ours_zorder(opened: Catalog, name: str) -> None:
    _act(
        opened,
        name,
        {"name": "rewrite_data_files", "force": True, "sort_order": "zorder(customer, id)"},
    )


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
    table.overwrite(
        pa.Table.from_pandas(frame, schema=table.schema().as_arrow(), preserve_index=False)
    )


def with_duckdb(opened: Catalog, name: str) -> None:
    """DuckDB reads and writes the files, with as much memory as we may take; the library commits
    them."""
    table = opened.load_table(("bench", name))
    paths = [task.file.file_path for task in table.scan().plan_files()]
    folder = Path(urlparse(table.location()).path) / "data" / "duckdb"
    folder.mkdir(parents=True)
    size = table.properties["write.target-file-size-bytes"]
    layout = (
        f", FILE_SIZE_BYTES {size}" if table.spec().is_unpartitioned() else ", PARTITION_BY (day)"
    )
    with duckdb.connect(
        config={"memory_limit": "4GB", "temp_directory": f"{folder}.tmp"}
    ) as engine:
        engine.execute("SET preserve_insertion_order = false")
        engine.execute(
            f"COPY (FROM read_parquet($paths)) TO '{folder}' "
            f"(FORMAT parquet, COMPRESSION zstd, WRITE_PARTITION_COLUMNS true{layout})",
            {"paths": paths},
        )
    with table.transaction() as transaction:
        transaction.delete(AlwaysTrue())
        transaction.add_files([f"file://{path}" for path in folder.rglob("*.parquet")])


def plan(opened: Catalog, name: str) -> None:
    """From the catalog's answer to the list of files, as each query begins."""
    list(opened.load_table(("bench", name)).scan().plan_files())


def scan(opened: Catalog, name: str) -> None:
    """Two of six columns, as a query would."""
    columns = ("customer", "amount")
    for _ in (
        opened.load_table(("bench", name)).scan(selected_fields=columns).to_arrow_batch_reader()
    ):
        pass


_OURS = (ours, ours_sorted, ours_zorder, ours_manifests, ours_expire)
WAYS = {way.__name__: way for way in (*_OURS, naive, pandas, plan, scan)} | {"duckdb": with_duckdb}


def _act(opened: Catalog, name: str, action: Any) -> None:
    run = ActionContext(job_id=1, attempt="bench", now=lambda: LATER)
    outcome = embedded.execute(CatalogTableAccess(opened, ("bench", name)), run, parse([action])[0])
    if outcome.status != "completed":
        raise RuntimeError(f"{action} of {name}: {outcome.status} {outcome.message}")


def content(opened: Catalog, name: str) -> list[int]:
    """Row count and an order-independent checksum of the table's files, by DuckDB."""
    paths = [task.file.file_path for task in opened.load_table(("bench", name)).scan().plan_files()]
    sql = (
        "SELECT count(*), sum(hash(id, day, customer, amount, status, payload)::HUGEINT) "
        "FROM read_parquet(?)"
    )
    with duckdb.connect() as engine:
        [(rows, total)] = engine.execute(sql, [paths]).fetchall()
    return [len(paths), int(rows), int(total)]


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(way: str, folder: Path, name: str) -> None:
    logging.configure(level="ERROR")
    opened = dataset.catalog(folder)
    if way == "content":
        sys.stdout.write(json.dumps({"content": content(opened, name)}))
        return
    if way.startswith("ours"):
        choose_pool()
        proven()
    times = REPEATED.get(way, 1)
    if way in REPEATED:
        WAYS[way](opened, name)
    before, wall = _spent(), time.monotonic()
    for _ in range(times):
        WAYS[way](opened, name)
    peak = peak_mb()
    figures = {
        "cpu": (_spent() - before) / times,
        "wall": (time.monotonic() - wall) / times,
        "peak_mb": peak,
    }
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
