"""The DuckDB engine, in process: memory-limited, spilling to its scratch folder, and sandboxed.

It may read the folders of the registered files and its own scratch folder, nothing else. Settings
are locked before the first query of a recipe runs.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from duckdb.func import ARROW

from penstock.engines.column_names import ROW, copy, inner_name, needs_copy, one_schema
from penstock.engines.contract import ROW_BITS, EngineLimits, Row
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

    from penstock.engines.contract import Row, Unit

_KIND = re.compile(r"(?P<kind>[A-Za-z ]+) Error: (?P<reason>.*)", re.DOTALL)
_OURS = frozenset(
    {"Binder", "Catalog", "Conversion", "Invalid Input", "Out of Range", "Parser", "Syntax"}
)
_MEMORY_PER_THREAD = 128 * 1024**2
"""Each thread keeps buffers of its own that cannot be spilled: two sorting in 64 MB fail."""

_BATCH_ROWS = 65_536


def connect(scratch: Path, limits: EngineLimits) -> DuckDbEngine:
    return DuckDbEngine(scratch, limits)


class DuckDbDialect(OwnFunctions):
    def day(self, date: str) -> str:
        return f"CAST(CAST({date} AS DATE) - DATE '1970-01-01' AS INTEGER)"

    def date(self, day: str) -> str:
        return f"(DATE '1970-01-01' + CAST({day} AS INTEGER))"

    def date_text(self, date: str) -> str:
        return far_date_or(self.day(date), f"CAST({date} AS VARCHAR)")

    def stamp(self, micros: str) -> str:
        near = f"strftime(make_timestamp({micros}), '%Y-%m-%dT%H:%M:%S.%f')"
        return far_stamp_or(micros, near)

    def ticks(self, moment: str, unit: Unit) -> str:
        # DuckDB reads the extreme values as infinity, and returns null for them.
        last = f"CASE WHEN {moment} > TIMESTAMP 'epoch' THEN {2**63 - 1} ELSE {1 - 2**63} END"
        endless = f"CASE WHEN {moment} IS NOT NULL THEN {last} END"
        return f"COALESCE(epoch_{unit}({moment}), {endless})"

    def clock_ticks(self, time: str, unit: Unit) -> str:
        return f"epoch_{unit}({time})"

    def hexadecimals(self, data: str) -> str:
        return f"lower(hex({data}))"

    def is_float(self, number: str) -> str:
        return f"typeof({number}) IN ('DOUBLE', 'FLOAT')"

    def floor_div(self, number: str, by: int) -> str:
        return f"({number} // {by} - CASE WHEN {number} % {by} < 0 THEN 1 ELSE 0 END)"

    def whole_quotient(self, number: str, by: str) -> str:
        return f"CAST(CAST({number} AS HUGEINT) // CAST({by} AS HUGEINT) AS DECIMAL(33, 0))"

    def like(self, text: str, pattern: str) -> str:
        return f"({text} LIKE '{escaped(pattern)}' ESCAPE '\\')"

    def replace(self, text: str, pattern: str, to: str) -> str:
        return f"REGEXP_REPLACE({text}, '{escaped(pattern)}', '{escaped(to)}', 'g')"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_matches({text}, '{escaped(pattern)}')"

    def edits(self, a: str, b: str) -> str:
        plain_bytes = f"strlen({a}) = length({a}) AND strlen({b}) = length({b})"
        return (
            f"CAST(CASE WHEN {plain_bytes} THEN levenshtein({a}, {b})"
            f" ELSE _edits({a}, {b}) END AS BIGINT)"
        )

    def shared(self, a: str, b: str) -> str:
        common = f"list_intersect(list_distinct({_split(a)}), list_distinct({_split(b)}))"
        return f"CAST(len({common}) AS BIGINT)"

    def words(self, a: str) -> str:
        return f"CAST(len(list_distinct({_split(a)})) AS BIGINT)"

    def marks(self, values: Sequence[str]) -> str:
        return f"hash({', '.join(values)})"


class DuckDbEngine:
    name = "duckdb"

    def __init__(self, scratch: Path, limits: EngineLimits) -> None:
        self.dialect = DuckDbDialect()
        self.scratch = scratch
        self._allowed = [f"{scratch}/"]
        self._locked = False
        self._spill = SpillLimit.of(scratch, limits.spill_bytes)
        with self._translated():
            self._db = duckdb.connect(":memory:", config=_settings(self._spill, limits))
            # Among the settings of `connect` it is listed but has no effect.
            self._db.execute("SET max_temp_directory_size = $1", [f"{self._spill.size}B"])
            self._db.execute("SET GLOBAL TimeZone = 'UTC'")
            self._db.create_function("_edits", _edits, ["VARCHAR", "VARCHAR"], "INTEGER")
            self._db.create_function("_shortest", shortest, ["DOUBLE"], "VARCHAR", type=ARROW)
            self._db.create_function("_date_text", date_texts, ["INTEGER"], "VARCHAR", type=ARROW)
            self._db.create_function("_stamp_text", stamp_texts, ["BIGINT"], "VARCHAR", type=ARROW)
            self._db.create_function(
                "_rounded", rounded, ["DOUBLE", "BIGINT"], "VARCHAR", type=ARROW
            )
            for name, function in FUNCTIONS.items():
                self._db.create_function(
                    name,
                    function,
                    ["VARCHAR"],
                    "VARCHAR",
                    type=ARROW,
                    side_effects=name == "_fail",
                )
            self._db.create_function(
                "_zone_offset",
                offsets,
                ["VARCHAR", "BIGINT"],
                "BIGINT",
                type=ARROW,
            )

    def __enter__(self) -> DuckDbEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """Must come before the first query: that query locks the sandbox."""
        if self._locked:
            raise EngineError("Files must be registered before the first query.")
        schema = one_schema(files)
        inner = ", ".join(inner_name(place) for place in range(len(schema)))
        if needs_copy(schema):
            copied = self.scratch / f"{name}.parquet"
            with writing(self.scratch):
                copy(files, copied)
            rows = f"SELECT {ROW}, {inner} FROM {_read_parquet([copied])}"
        else:
            self._allowed += [str(file) for file in files]
            place = f"(CAST(file_index AS BIGINT) << {ROW_BITS}) + file_row_number"
            rows = f"SELECT {place} AS {ROW}, {inner} FROM {_read_parquet(files)} AS t({inner})"
        with self._translated():
            self._db.execute(f"CREATE VIEW {name} AS {rows}")
        return plain(schema)

    def table(self, name: str, sql: str) -> int:
        self._lock()
        with self._translated():
            row = self._db.execute(f"CREATE TABLE {name} AS {sql}").fetchone()
        return int(row[0]) if row else 0

    def load(self, name: str, rows: pa.Table) -> None:
        self._lock()
        with self._translated():
            self._db.register("_loading", rows)
            self._db.execute(f"CREATE TABLE {name} AS SELECT * FROM _loading")
            self._db.unregister("_loading")

    def load_file(self, name: str, file: Path) -> None:
        self._lock()
        with self._translated():
            self._db.execute(f"CREATE TABLE {name} AS SELECT * FROM {_read_parquet([file])}")

    def drop(self, name: str) -> None:
        self._db.execute(f"DROP TABLE IF EXISTS {name}")

    def rows(self, sql: str) -> list[Row]:
        self._lock()
        with self._translated():
            return self._db.execute(sql).fetchall()

    def stream(self, sql: str) -> pa.RecordBatchReader:
        self._lock()
        with self._translated():
            reader = self._db.sql(sql).to_arrow_reader(_BATCH_ROWS)
        schema = plain(reader.schema)
        return pa.RecordBatchReader.from_batches(schema, self._read(reader, schema))

    def cancel(self) -> None:
        with suppress(duckdb.Error):
            self._db.interrupt()

    def _read(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._translated(), reader:
            yield from cast(schema, reader)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, OSError) as e:
            raise (self._spill.error(str(e)) or _explained(str(e))) from None

    def _lock(self) -> None:
        if self._locked:
            return
        with self._translated():
            self._db.execute("SET allowed_paths = $1", [self._allowed[1:]])
            self._db.execute("SET allowed_directories = $1", [self._allowed[:1]])
            self._db.execute("SET enable_external_access = false")
            self._db.execute("SET lock_configuration = true")
        self._locked = True


def _settings(
    spill: SpillLimit, limits: EngineLimits
) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": f"{limits.memory_bytes}B",
        "preserve_insertion_order": "false",
        "python_enable_replacements": "false",
        "temp_directory": str(spill.folder / "spill"),
        "threads": max(1, min(limits.threads, limits.memory_bytes // _MEMORY_PER_THREAD)),
    }


def _read_parquet(files: Sequence[Path]) -> str:
    paths = ", ".join(f"'{escaped(file)}'" for file in files)
    return f"read_parquet([{paths}], hive_partitioning = false)"


def _split(text: str) -> str:
    return f"list_filter(string_split({text}, ' '), lambda w: w <> '')"


def _edits(a: str, b: str) -> int:
    """Levenshtein distance in characters; DuckDB's own counts bytes."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def _explained(text: str) -> EngineError | EngineQueryError:
    """The engine's error without the SQL position: the statement is generated and shows values of
    other rows."""
    text = text.split("\n\nLINE ")[0]
    if FAILED in text:
        return EngineQueryError(text.split(FAILED)[1].split("\n")[0][:1000], kind="Invalid Input")
    parsed = _KIND.match(text)
    kind, reason = (parsed["kind"], parsed["reason"].strip()) if parsed else ("", text)
    if kind == "Out of Memory":
        message = f"DuckDB has too little memory: {reason[:300]}"
        return EngineFull(message, hint="Give the worker more memory.")
    return (
        EngineQueryError(reason[:1000], kind=kind)
        if kind in _OURS
        else EngineError(text[:1000], kind=kind)
    )
