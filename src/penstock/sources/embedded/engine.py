"""A DuckDB instance that is prepared, then locked, then queried.

Locked means: no files except one directory, no network, no extensions, no changes of settings, no
access to Python variables by name. COPY can still write to that directory, and DuckDB 2 also allows
COPY inside a WITH. So a query is first parsed alone and must be one SELECT, and then runs as a
subquery, where statements that write are not allowed.
"""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from penstock.kit.scratch import Scratch
from penstock.sources import batch_checks
from penstock.sources.embedded.failure import translated
from penstock.sources.embedded.types import REAL, projection, quoted
from penstock.sources.errors import SourceQueryError
from penstock.sources.single_table import bare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from penstock.sources.contract import Row

_MAX_CELLS = 1_000_000
_MIN_ROWS = 2048
_MAX_ROWS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    memory: str = "256MB"
    spill: str = "4GB"
    threads: int = 2


class Engine:
    def __init__(self, limits: Limits, directory: Path | None = None) -> None:
        self._limits = limits
        self._directory = directory
        self._cursor_lock = threading.Lock()
        self._path: Sequence[str] = ()
        self._spill = Scratch.create("duckdb")
        try:
            with translated():
                self._main = duckdb.connect(":memory:", config=self._settings())
                # In the config of `connect` it is accepted and has no effect.
                self._main.execute("SET max_temp_directory_size = $1", [self._limits.spill])
        except BaseException:
            self._spill.remove()
            raise

    def _settings(self) -> dict[str, str | bool | int | float | list[str]]:
        return {
            "allow_community_extensions": "false",
            "allow_persistent_secrets": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": self._limits.memory,
            "python_enable_replacements": "false",
            "temp_directory": str(self._spill.path / "spill"),
            "threads": self._limits.threads,
        }

    def prepare(self, attach: Callable[[DuckDBPyConnection], Sequence[str]]) -> None:
        """Run `attach`, which defines the readable data and returns the search path; then lock the
        instance."""
        with translated():
            self._path = attach(self._main)
            self._main.execute("SET GLOBAL TimeZone = 'UTC'")
            allowed = [f"{self._directory}/"] if self._directory else []
            self._main.execute("SET allowed_directories = $1", [allowed])
            self._main.execute("SET enable_external_access = false")
            self._main.execute("SET allowed_configs = ['search_path']")
            self._main.execute("SET lock_configuration = true")

    def session(self, streams: Mapping[str, object] | None = None) -> Session:
        """A session for one query; `streams` are Arrow streams that it sees as tables."""
        return Session(self, streams or {})

    def cursor(self) -> DuckDBPyConnection:
        with self._cursor_lock:
            cursor = self._main.cursor()
        if self._path:
            cursor.execute(f"SET search_path = '{','.join(map(quoted, self._path))}'")
        return cursor

    def close(self) -> None:
        self._main.close()
        self._spill.remove()


class Session:
    """One cursor, used by one thread; `cancel` may be called from another thread."""

    def __init__(self, engine: Engine, streams: Mapping[str, object]) -> None:
        self._engine = engine
        self._streams = streams
        self._lock = threading.Lock()
        self._cursor: DuckDBPyConnection | None = None

    def cancel(self) -> None:
        with self._lock:
            if self._cursor is not None:
                self._cursor.interrupt()

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Run an internal query."""
        with translated(), self._opened() as cursor:
            return cursor.execute(sql, list(values)).fetchall()

    def schema(self, sql: str) -> pa.Schema:
        with translated(), self._opened() as cursor:
            return _relation(cursor, sql).limit(0).to_arrow_reader().schema

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        with translated(), self._opened() as cursor:
            relation = _relation(cursor, sql)
            with relation.to_arrow_reader(_rows(len(relation.columns))) as reader:
                for batch in reader:
                    yield batch_checks.finite(batch, REAL)

    @contextmanager
    def _opened(self) -> Iterator[DuckDBPyConnection]:
        with closing(self._engine.cursor()) as cursor:
            for name, stream in self._streams.items():
                cursor.register(name, stream)
            with self._lock:
                self._cursor = cursor
            try:
                yield cursor
            finally:
                with self._lock:
                    self._cursor = None


def _relation(cursor: DuckDBPyConnection, sql: str) -> DuckDBPyRelation:
    """The query, bound but not run, with its columns in their output types."""
    alone = _only_select(cursor, sql)
    described = cursor.execute(f"DESCRIBE {alone}").fetchall()
    batch_checks.distinct([row[0] for row in described])
    inner = cursor.sql(f"SELECT * FROM (\n{alone}\n) AS q")
    return cursor.sql(f"SELECT {projection(inner.columns, inner.types)} FROM (\n{alone}\n) AS q")


def _only_select(cursor: DuckDBPyConnection, sql: str) -> str:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SourceQueryError("Sources are read-only: the query must be exactly one SELECT.")
    return bare(statements[0].query, "duckdb")


def _rows(columns: int) -> int:
    """Rows per batch; fewer for wide rows."""
    return max(_MIN_ROWS, min(_MAX_ROWS, _MAX_CELLS // max(columns, 1)))
