"""DuckDB with its Iceberg extension, answering reads; `readers.py` runs it, apart from our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg

from tests.maintenance.differential.worker_loop import Metadata, answer_of, error_text, serve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.maintenance.differential.worker_loop import Request


def _connect() -> duckdb.DuckDBPyConnection:
    engine = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
    for module in (duckdb_extension_avro, duckdb_extension_iceberg):
        [path] = Path(module.__path__[0]).rglob("*.duckdb_extension")
        engine.execute(f"LOAD '{path}'")
    engine.execute("SET TimeZone = 'UTC'")
    engine.execute("SET arrow_lossless_conversion = true")
    return engine


class DuckDb:
    def __init__(self) -> None:
        self._engine = _connect()

    def read(self, request: Request) -> list[dict[str, object]]:
        file = str(request["metadata"])
        metadata = Metadata(file)
        return [self._read(file, read, metadata.schema(read)) for read in request["reads"]]

    def _read(
        self, file: str, snapshot: int | None, schema: Mapping[str, object]
    ) -> dict[str, object]:
        at = "" if snapshot is None else f", snapshot_from_id => {snapshot}"
        try:
            rows = self._engine.execute(f"SELECT * FROM iceberg_scan(?{at})", [file])
            return answer_of(rows.to_arrow_table(), schema)
        except (duckdb.FatalException, duckdb.InternalException) as e:
            # Such an error makes the engine refuse all that comes after it.
            self._engine.close()
            self._engine = _connect()
            return {"error": error_text(e)}
        except Exception as e:
            return {"error": error_text(e)}


if __name__ == "__main__":
    serve({"read": DuckDb().read})
