"""DuckDB with its PostgreSQL scanner, the cheapest reader there is, as a script for an environment
of its own.

Its extension exists as a wheel for DuckDB 1.5.5 only, which cannot live beside the DuckDB that
Penstock uses.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import duckdb
import duckdb_extension_postgres_scanner as extension


def main(conninfo: str, sql: str, out: str) -> None:
    [file] = Path(extension.__file__).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": "1"})
    connection.execute(f"LOAD '{file}'")
    connection.execute(f"ATTACH '{conninfo}' AS pg (TYPE postgres, READ_ONLY)")
    folder = Path(out)
    folder.mkdir(parents=True)
    copy = (
        "COPY ({}) TO '{}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1,"
        " ROW_GROUP_SIZE 262144)"
    )
    connection.execute(copy.format(sql + " LIMIT 1000", folder / "warm"))
    before, started = _cpu(), time.perf_counter()
    connection.execute(copy.format(sql, folder / "t.parquet"))
    wall, cpu = time.perf_counter() - started, _cpu() - before
    rows = connection.execute(f"SELECT count(*) FROM '{folder / 't.parquet'}'").fetchall()[0][0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = (folder / "t.parquet").stat().st_size / 1e6
    json.dump(
        {"rows": rows, "wall": wall, "cpu": cpu, "peak_mb": peak, "file_mb": size}, sys.stdout
    )


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
