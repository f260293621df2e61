"""One connection, used by one thread at a time; `cancel` may be called from any thread."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

from adbc_driver_manager import dbapi
from adbc_driver_manager._reader import AdbcRecordBatchReader

from penstock.kit.sqlfile import load
from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused
from penstock.sources.postgres import types
from penstock.sources.postgres.attributes import check_functions
from penstock.sources.postgres.config import Config, conninfo, pinned_servers
from penstock.sources.postgres.failure import joining_snapshot, translated
from penstock.sources.single_table import trace_comment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.kit.outbound import Outbound
    from penstock.kit.sqlfile import Statement
    from penstock.sources.contract import Row

_DRIVER = str(files("adbc_driver_postgresql") / "libadbc_driver_postgresql.so")
SQL = load("penstock.sources.postgres.sql")
_BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Session:
    def __init__(
        self,
        config: Config,
        outbound: Outbound,
        *,
        trace: str = "",
        snapshot: str | None = None,
    ) -> None:
        self._config = config
        self._outbound = outbound
        self._trace = trace
        self._snapshot = snapshot
        self._checked: set[str] = set()
        self._lock = threading.Lock()
        self._connection: dbapi.Connection | None = None

    def open(self) -> None:
        with translated(self._config):
            servers = pinned_servers(self._config, self._outbound)
            connection = dbapi.connect(
                driver=_DRIVER, uri=conninfo(self._config, servers, trace=self._trace)
            )
            with self._lock:
                self._connection = connection
            self._execute(_BEGIN)
            if self._snapshot:
                with joining_snapshot():
                    self._execute(f"SET TRANSACTION SNAPSHOT {literal(self._snapshot)}")
            self.ask(SQL.settings)
            [(own_home,)] = self.ask(SQL.own_home)
            if own_home:
                raise SourceRefused(
                    "This is Penstock's own database; it cannot be a data source.",
                    hint="Use the database that contains the data to read.",
                )

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def opened(self) -> Iterator[Session]:
        try:
            self.open()
            yield self
        finally:
            self.close()

    def cancel(self) -> None:
        """Cancel the query at the server, over a separate connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.adbc_cancel()

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Run an internal query with a small result."""
        with translated(self._config), closing(self._cursor(copy=False)) as cursor:
            return cursor.execute(sql, list(values) or None).fetchall()

    def ask(self, statement: Statement, **values: object) -> list[Row]:
        return self.rows(statement.text, *statement.bind(values))

    def columns(self, sql: str) -> Sequence[types.OutputColumn]:
        """The columns of a query, from preparing it; the query does not run."""
        self._check(sql)
        with translated(self._config), closing(self._cursor()) as cursor:
            return types.output_columns(cursor.adbc_execute_schema(sql))

    def _check(self, sql: str) -> None:
        if sql not in self._checked:
            check_functions(
                sql, self.ask, callable_=SQL.callable, relation_columns=SQL.relation_columns
            )
            self._checked.add(sql)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        columns = self.columns(sql)
        schema = types.schema_of(columns)
        with self._numbers(columns), translated(self._config), closing(self._cursor()) as cursor:
            cursor.execute(f"{trace_comment(self._trace)}{types.query(columns, sql)}")
            stream = cursor.fetch_arrow()
            with closing(AdbcRecordBatchReader._import_from_c(stream.address)) as reader:
                for batch in reader:
                    yield types.convert(columns, schema, batch)

    def _execute(self, sql: str) -> None:
        with closing(self._cursor()) as cursor:
            cursor.execute(sql)

    def _cursor(self, *, copy: bool = True) -> dbapi.Cursor:
        if self._connection is None:
            raise SourceError("The PostgreSQL connection is closed.")
        return self._connection.cursor(
            adbc_stmt_kwargs={"adbc.postgresql.use_copy": str(copy).lower()}
        )

    @contextmanager
    def _numbers(self, columns: Sequence[types.OutputColumn]) -> Iterator[None]:
        """Name the numeric columns in the error for NaN or infinity; the server does not."""
        try:
            yield
        except SourceQueryError as e:
            if e.details.get("sqlstate") != "0A000" or "bigint" not in e.message:
                raise
            names = ", ".join(types.scaled_names(columns))
            raise SourceQueryError(
                f"A numeric column ({names}) has NaN or infinity, which decimals cannot represent.",
                hint="Replace it in the query, for example NULLIF(column, 'NaN').",
            ) from None


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
