"""DuckDB in this process: limited in memory, spilling to its scratch folder, and shut in.

It may read the folders of the files that it was told of and its own scratch, nothing else; settings are locked before
the first query of a recipe is seen.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import ROW_BITS, EngineLimits
from penstock.engines.errors import EngineError, EngineFull, EngineQueryError
from penstock.engines.plain import cast, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_KIND = re.compile(r"(?P<kind>[A-Za-z ]+) Error: (?P<said>.*)", re.DOTALL)
_OURS = frozenset({"Binder", "Catalog", "Conversion", "Invalid Input", "Out of Range", "Parser", "Syntax"})
_BATCH_ROWS = 65_536


def connect(scratch: Path, limits: EngineLimits) -> DuckDbEngine:
    return DuckDbEngine(scratch, limits)


class DuckDbWords:
    def day(self, value: str) -> str:
        return f"CAST(CAST({value} AS DATE) - DATE '1970-01-01' AS INTEGER)"

    def micros(self, value: str) -> str:
        return f"epoch_us(CAST({value} AS TIMESTAMPTZ))"

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_matches({text}, '{_text(pattern)}')"

    def edits(self, a: str, b: str) -> str:
        plain_bytes = f"strlen({a}) = length({a}) AND strlen({b}) = length({b})"
        return f"CAST(CASE WHEN {plain_bytes} THEN levenshtein({a}, {b}) ELSE _edits({a}, {b}) END AS BIGINT)"

    def shared(self, a: str, b: str) -> str:
        return f"CAST(len(list_intersect(list_distinct({_split(a)}), list_distinct({_split(b)}))) AS BIGINT)"

    def words(self, a: str) -> str:
        return f"CAST(len(list_distinct({_split(a)})) AS BIGINT)"

    def marks(self, values: Sequence[str]) -> str:
        return f"hash({', '.join(values)})"


class DuckDbEngine:
    name = "duckdb"

    def __init__(self, scratch: Path, limits: EngineLimits) -> None:
        self.words = DuckDbWords()
        self._scratch = scratch
        self._allowed = [f"{scratch}/"]
        self._locked = False
        with _translated():
            self._db = duckdb.connect(":memory:", config=_settings(scratch, limits))
            self._db.execute("SET GLOBAL TimeZone = 'UTC'")
            self._db.create_function("_edits", _edits, ["VARCHAR", "VARCHAR"], "INTEGER")

    def __enter__(self) -> DuckDbEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """Before anything else is asked: the doors are shut by the first question."""
        if self._locked:
            raise EngineError("Files are named before the first query, not after it.")
        self._allowed += [str(file) for file in files]
        paths = ", ".join(f"'{_text(file)}'" for file in files)
        with _translated():
            self._db.execute(
                f"CREATE VIEW {name} AS SELECT (CAST(file_index AS BIGINT) << {ROW_BITS}) + file_row_number AS _id, *"
                f" FROM read_parquet([{paths}], hive_partitioning = false)"
            )
        return plain(pq.read_schema(files[0]))

    def table(self, name: str, sql: str) -> int:
        self._lock()
        with _translated():
            found = self._db.execute(f"CREATE TABLE {name} AS {sql}").fetchone()
        return int(found[0]) if found else 0

    def load(self, name: str, rows: pa.Table) -> None:
        self._lock()
        with _translated():
            self._db.register("_loading", rows)
            self._db.execute(f"CREATE TABLE {name} AS SELECT * FROM _loading")
            self._db.unregister("_loading")

    def drop(self, name: str) -> None:
        self._db.execute(f"DROP TABLE IF EXISTS {name}")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self._lock()
        with _translated():
            return self._db.execute(sql).fetchall()

    def stream(self, sql: str) -> pa.RecordBatchReader:
        self._lock()
        with _translated():
            reader = self._db.sql(sql).to_arrow_reader(_BATCH_ROWS)
        schema = plain(reader.schema)
        return pa.RecordBatchReader.from_batches(schema, _read(reader, schema))

    def cancel(self) -> None:
        with suppress(duckdb.Error):
            self._db.interrupt()

    def _lock(self) -> None:
        if self._locked:
            return
        with _translated():
            self._db.execute("SET allowed_paths = $1", [self._allowed[1:]])
            self._db.execute("SET allowed_directories = $1", [self._allowed[:1]])
            self._db.execute("SET enable_external_access = false")
            self._db.execute("SET lock_configuration = true")
        self._locked = True


def _settings(scratch: Path, limits: EngineLimits) -> dict[str, Any]:
    return {
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": f"{limits.memory_bytes}B",
        "preserve_insertion_order": "false",
        "python_enable_replacements": "false",
        "temp_directory": str(scratch / "spill"),
        "threads": limits.threads,
    }


def _read(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _translated(), reader:
        yield from cast(schema, reader)


def _split(text: str) -> str:
    return f"list_filter(string_split({text}, ' '), lambda w: w <> '')"


def _text(path: Path | str) -> str:
    return str(path).replace("'", "''")


def _edits(a: str, b: str) -> int:
    """The same in characters; the engine's own counts bytes."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, OSError) as e:
        raise _explained(str(e)) from None


def _explained(text: str) -> EngineError | EngineQueryError:
    found = _KIND.match(text)
    kind, said = (found["kind"], found["said"].strip()) if found else ("", text)
    if kind == "Out of Memory" or "No space left" in text:
        return EngineFull(f"DuckDB has too little memory or disk: {said[:300]}", hint="Give the worker more of it.")
    return EngineQueryError(said[:1000], kind=kind) if kind in _OURS else EngineError(text[:1000], kind=kind)
