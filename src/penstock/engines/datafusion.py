"""DataFusion in this process. It reads what it is told of by name; SQL that would name a file or make a table of one is
not understood by it, for nothing is registered that could read one.

Its hash join cannot spill: a join that is larger than its memory fails, with the name of the other engine.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions

from penstock.engines.contract import ROW_BITS, EngineLimits
from penstock.engines.errors import EngineError, EngineFull, EngineQueryError
from penstock.engines.plain import cast, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from datafusion import DataFrame

_OURS = ("SQL error", "Schema error", "Error during planning", "Arrow error", "Execution error", "This feature is not")


def connect(scratch: Path, limits: EngineLimits) -> DataFusionEngine:
    return DataFusionEngine(scratch, limits)


class DataFusionWords:
    def day(self, value: str) -> str:
        return f"CAST(CAST({value} AS DATE) AS INT)"

    def micros(self, value: str) -> str:
        return f"CAST(arrow_cast({value}, 'Timestamp(Microsecond, None)') AS BIGINT)"

    def matches(self, text: str, pattern: str) -> str:
        escaped = pattern.replace("'", "''")
        return f"regexp_like({text}, '{escaped}')"

    def edits(self, a: str, b: str) -> str:
        return f"CAST(levenshtein({a}, {b}) AS BIGINT)"

    def shared(self, a: str, b: str) -> str:
        return f"COALESCE(CAST(array_length(array_intersect({_split(a)}, {_split(b)})) AS BIGINT), 0)"

    def words(self, a: str) -> str:
        return f"COALESCE(CAST(array_length({_split(a)}) AS BIGINT), 0)"

    def marks(self, values: Sequence[str]) -> str:
        return ", ".join(values)


class DataFusionEngine:
    name = "datafusion"

    def __init__(self, scratch: Path, limits: EngineLimits) -> None:
        self.words = DataFusionWords()
        self._scratch = scratch
        self._stopped = False
        runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(limits.memory_bytes)
        config = SessionConfig({"datafusion.execution.time_zone": "UTC"}).with_target_partitions(limits.threads)
        self._context = SessionContext(config, runtime)
        self._options = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)

    def __enter__(self) -> DataFusionEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._context = SessionContext()

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """Its scan keeps no order, so the rows are copied once with their ids."""
        schema = plain(pq.read_schema(files[0]))
        target = self._scratch / f"{name}.parquet"
        with pq.ParquetWriter(target, pa.schema([pa.field("_id", pa.int64()), *schema])) as writer:
            for number, file in enumerate(files):
                for batch in _numbered(file, number << ROW_BITS, schema):
                    writer.write_batch(batch)
        with _translated():
            self._context.register_parquet(name, str(target))
        return schema

    def table(self, name: str, sql: str) -> int:
        with _translated():
            frame = self._query(sql)
            batches = frame.collect_partitioned()
            rows: int = sum(batch.num_rows for part in batches for batch in part)
            self._register(name, batches, frame.schema())
        return rows

    def load(self, name: str, rows: pa.Table) -> None:
        with _translated():
            self._register(name, [rows.to_batches()], rows.schema)

    def drop(self, name: str) -> None:
        if self._context.table_exist(name):
            self._context.deregister_table(name)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with _translated():
            batches = self._query(sql).collect()
        return [row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]

    def stream(self, sql: str) -> pa.RecordBatchReader:
        with _translated():
            frame = self._query(sql)
            schema = plain(frame.schema())
            found = frame.execute_stream()
        return pa.RecordBatchReader.from_batches(schema, self._read(found, schema))

    def cancel(self) -> None:
        """Between batches: a statement of this engine cannot be interrupted from outside."""
        self._stopped = True

    def _query(self, sql: str) -> DataFrame:
        if self._stopped:
            raise EngineError("The query was cancelled.")
        return self._context.sql_with_options(sql, self._options)

    def _register(self, name: str, batches: Sequence[Sequence[pa.RecordBatch]], schema: pa.Schema) -> None:
        self.drop(name)
        full = [list(part) for part in batches if part]
        self._context.register_record_batches(name, full or [[pa.RecordBatch.from_pylist([], schema=schema)]])

    def _read(self, found: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _translated():
            for batch in found:
                if self._stopped:
                    raise EngineError("The query was cancelled.")
                yield from cast(schema, [batch.to_pyarrow()])


def _numbered(file: Path, first: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        for batch in parquet.iter_batches(65_536):
            ids = pa.array(range(first, first + batch.num_rows), pa.int64())
            first += batch.num_rows
            columns = [batch.column(f.name).cast(f.type) for f in schema]
            yield pa.RecordBatch.from_arrays([ids, *columns], names=["_id", *schema.names])


def _split(text: str) -> str:
    return f"array_remove_all(array_distinct(string_to_array({text}, ' ')), '')"


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (EngineError, EngineQueryError):
        raise
    except Exception as e:
        raise _explained(str(e)) from None


def _explained(text: str) -> EngineError | EngineQueryError:
    said = text.removeprefix("DataFusion error: ").strip()[:1000]
    if "Resources exhausted" in text:
        return EngineFull(
            f"DataFusion has too little memory: {said[:300]}", hint="Run it on duckdb, whose joins spill to disk."
        )
    return EngineQueryError(said) if said.startswith(_OURS) else EngineError(said)
