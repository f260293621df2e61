"""The DataFusion engine, in process. Only registered relations can be read: SQL cannot name a file,
and DDL, DML and SET are refused.

Its hash join cannot spill: a join larger than the memory limit fails, and the error suggests
DuckDB.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions, udf

from penstock.engines.column_names import copy, one_schema
from penstock.engines.dates import date_texts, far_date_or, far_stamp_or, stamp_texts
from penstock.engines.errors import EngineError, EngineFull, EngineQueryError
from penstock.engines.floats import rounded, shortest
from penstock.engines.own_functions import OwnFunctions, escaped
from penstock.engines.plain_types import cast, plain
from penstock.engines.spill import SpillLimit, writing
from penstock.engines.texts import FAILED, FUNCTIONS
from penstock.engines.zones import offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from datafusion import DataFrame
    from datafusion.record_batch import RecordBatchStream

    from penstock.engines.contract import EngineLimits, Row, Unit

_CLASS = re.compile(r"\\(.)", re.DOTALL)
_ASCII = {
    "b": r"(?-u:\b)",
    "d": "[0-9]",
    "D": "[^0-9]",
    "s": r"[\t\n\f\r ]",
    "S": r"[^\t\n\f\r ]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
}
_SETTINGS = {
    "datafusion.execution.time_zone": "UTC",
    # Otherwise 0.1 in SQL is a double, and so is l.amount + 0.1.
    "datafusion.sql_parser.parse_float_as_decimal": "true",
}
_PLANNING = re.compile(r"^(Optimizer rule '[^']*' failed|[a-z_]+)\ncaused by\n")
"""Prefix of errors raised during query planning."""
_OURS = (
    "SQL error",
    "Schema error",
    "Error during planning",
    "Arrow error",
    "Execution error",
    "This feature is not",
)


def connect(scratch: Path, limits: EngineLimits) -> DataFusionEngine:
    return DataFusionEngine(scratch, limits)


class DataFusionDialect(OwnFunctions):
    def day(self, date: str) -> str:
        return f"CAST(CAST({date} AS DATE) AS INT)"

    def date(self, day: str) -> str:
        return f"CAST(CAST({day} AS INT) AS DATE)"

    def date_text(self, date: str) -> str:
        return far_date_or(self.day(date), f"CAST({date} AS VARCHAR)")

    def stamp(self, micros: str) -> str:
        moment = f"arrow_cast({micros}, 'Timestamp(Microsecond, None)')"
        return far_stamp_or(micros, f"to_char({moment}, '%Y-%m-%dT%H:%M:%S%.6f')")

    def ticks(self, moment: str, unit: Unit) -> str:
        kind = {"us": "Microsecond", "ns": "Nanosecond"}[unit]
        return f"CAST(arrow_cast({moment}, 'Timestamp({kind}, None)') AS BIGINT)"

    def clock_ticks(self, time: str, unit: Unit) -> str:
        kind = {"us": "Microsecond", "ns": "Nanosecond"}[unit]
        return f"arrow_cast(arrow_cast({time}, 'Time64({kind})'), 'Int64')"

    def hexadecimals(self, data: str) -> str:
        return f"encode({data}, 'hex')"

    def is_float(self, number: str) -> str:
        return f"arrow_typeof({number}) IN ('Float64', 'Float32')"

    def floor_div(self, number: str, by: int) -> str:
        return f"({number} / {by} - CASE WHEN {number} % {by} < 0 THEN 1 ELSE 0 END)"

    def whole_quotient(self, number: str, by: str) -> str:
        return f"CAST(({number} - {number} % {by}) / {by} AS DECIMAL(33, 0))"

    def like(self, text: str, pattern: str) -> str:
        return f"({text} LIKE '{escaped(pattern)}')"

    def replace(self, text: str, pattern: str, to: str) -> str:
        return f"REGEXP_REPLACE({text}, '{escaped(in_ascii(pattern))}', '{escaped(to)}', 'g')"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_like({text}, '{escaped(in_ascii(pattern))}')"

    def edits(self, a: str, b: str) -> str:
        return f"CAST(levenshtein({a}, {b}) AS BIGINT)"

    def shared(self, a: str, b: str) -> str:
        return (
            f"COALESCE(CAST(array_length(array_intersect({_split(a)}, {_split(b)})) AS BIGINT), 0)"
        )

    def words(self, a: str) -> str:
        return f"COALESCE(CAST(array_length({_split(a)}) AS BIGINT), 0)"

    def marks(self, values: Sequence[str]) -> str:
        return ", ".join(values)


class DataFusionEngine:
    name = "datafusion"

    def __init__(self, scratch: Path, limits: EngineLimits) -> None:
        self.dialect = DataFusionDialect()
        self.scratch = scratch
        self._stopped = False
        runtime = (
            RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(limits.memory_bytes)
        )
        config = SessionConfig(_SETTINGS).with_target_partitions(limits.threads)
        self._context = SessionContext(config, runtime)
        self._spill = SpillLimit.of(scratch, limits.spill_bytes)
        # Whole kilobytes are the smallest unit of this setting.
        kilobytes = max(1, self._spill.size // 1024)
        self._context.sql(
            f"SET datafusion.runtime.max_temp_directory_size = '{kilobytes}K'"
        ).collect()
        takes, gives = [pa.string(), pa.int64()], pa.int64()
        self._context.register_udf(udf(offsets, takes, gives, "immutable", "_zone_offset"))
        for name, text_of, kind in (
            ("_shortest", shortest, pa.float64()),
            ("_date_text", date_texts, pa.int32()),
            ("_stamp_text", stamp_texts, pa.int64()),
        ):
            own = udf(text_of, [kind], pa.string(), "immutable", name)
            self._context.register_udf(own)
        own = udf(rounded, [pa.float64(), pa.int64()], pa.string(), "immutable", "_rounded")
        self._context.register_udf(own)
        for name, function in FUNCTIONS.items():
            purity = "volatile" if name == "_fail" else "immutable"
            own = udf(function, [pa.string()], pa.string(), purity, name)
            self._context.register_udf(own)
        self._options = (
            SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        )

    def __enter__(self) -> DataFusionEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._context = SessionContext()

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """The scan keeps no order, so the rows are copied once with their ids."""
        schema, target = one_schema(files), self.scratch / f"{name}.parquet"
        with writing(self.scratch):
            copy(files, target)
        with self._translated():
            self._context.register_parquet(name, str(target))
        return plain(schema)

    def table(self, name: str, sql: str) -> int:
        with self._translated():
            frame = self._query(sql)
            batches = frame.collect_partitioned()
            rows: int = sum(batch.num_rows for part in batches for batch in part)
            self._register(name, batches, frame.schema())
        return rows

    def load(self, name: str, rows: pa.Table) -> None:
        with self._translated():
            self._register(name, [rows.to_batches()], rows.schema)

    def load_file(self, name: str, file: Path) -> None:
        self.load(name, pq.read_table(file))

    def drop(self, name: str) -> None:
        if self._context.table_exist(name):
            self._context.deregister_table(name)

    def rows(self, sql: str) -> list[Row]:
        with self._translated():
            batches = self._query(sql).collect()
        return [
            row
            for batch in batches
            for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        ]

    def stream(self, sql: str) -> pa.RecordBatchReader:
        with self._translated():
            frame = self._query(sql)
            schema = plain(frame.schema())
            batches = frame.execute_stream()
        return pa.RecordBatchReader.from_batches(schema, self._read(batches, schema))

    def cancel(self) -> None:
        """Takes effect between batches: DataFusion cannot interrupt a running statement."""
        self._stopped = True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (EngineError, EngineQueryError):
            raise
        except Exception as e:
            raise (self._spill.error(str(e)) or _explained(str(e))) from None

    def _query(self, sql: str) -> DataFrame:
        if self._stopped:
            raise EngineError("The query was cancelled.")
        return self._context.sql_with_options(sql, self._options)

    def _register(
        self, name: str, batches: Sequence[Sequence[pa.RecordBatch]], schema: pa.Schema
    ) -> None:
        self.drop(name)
        full = [list(part) for part in batches if part]
        self._context.register_record_batches(
            name, full or [[pa.RecordBatch.from_pylist([], schema=schema)]]
        )

    def _read(self, batches: RecordBatchStream, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._translated():
            for batch in batches:
                if self._stopped:
                    raise EngineError("The query was cancelled.")
                yield from cast(schema, [batch.to_pyarrow()])


def _split(text: str) -> str:
    return f"array_remove_all(array_distinct(string_to_array({text}, ' ')), '')"


def in_ascii(pattern: str) -> str:
    """A pattern whose character classes are those of ASCII, as in DuckDB; here they are
    Unicode's."""
    return _CLASS.sub(lambda escape: _ASCII.get(escape[1], escape[0]), pattern)


def _explained(text: str) -> EngineError | EngineQueryError:
    if FAILED in text:
        # Rust writes the exception as Python's repr, which ends with a quote of either kind.
        reason = re.split(r"\.['\"]\), traceback", text.split(FAILED)[1])[0]
        return EngineQueryError(f"{reason[:1000]}.")
    message = _PLANNING.sub("", text.removeprefix("DataFusion error: ")).strip()[:1000]
    if "Resources exhausted" in text:
        return EngineFull(
            f"DataFusion has too little memory: {message[:300]}",
            hint="Run it on duckdb, whose joins spill to disk.",
        )
    return EngineQueryError(message) if message.startswith(_OURS) else EngineError(message)
