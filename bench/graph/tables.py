"""Benchmarks SQL engines on the generator's Parquet, in their own process: `… tables
duckdb|datafusion FOLDER`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import median
from bench.graph.data import TABLES
from bench.graph.questions import SQL, SUPPLIERS

if TYPE_CHECKING:
    from collections.abc import Callable


def duckdb(folder: Path) -> Callable[[str], object]:
    import duckdb

    connection = duckdb.connect()
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
    return lambda text: connection.execute(text).fetchall()


def datafusion(folder: Path) -> Callable[[str], object]:
    from datafusion import SessionContext

    context = SessionContext()
    for name in TABLES:
        context.register_parquet(name, str(folder / f"{name}.parquet"))
    return lambda text: context.sql(text).collect()


def main(way: str, folder: Path) -> None:
    ask = {"duckdb": duckdb, "datafusion": datafusion}[way](folder)
    print(json.dumps({name: _asked(ask, text) for name, text in SQL.items()}))


def _asked(ask: Callable[[str], object], text: str) -> float:
    times = []
    ask(text.format(k=SUPPLIERS[0]))
    for key in SUPPLIERS:
        began = time.perf_counter()
        ask(text.format(k=key))
        times.append(time.perf_counter() - began)
    return median(times)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
