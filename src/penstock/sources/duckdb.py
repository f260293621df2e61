"""DuckDB driver: a database file, or the DuckDB, Parquet and CSV files of one directory. Read-only,
without access to other files or the network.

A file in the directory is a table named after it (`orders.parquet` is `orders`), a DuckDB file is a
catalog. A plan has one chunk: the engine parallelizes within a query, and one statement sees one
snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources import threaded_stream
from penstock.sources.ceilings import Size  # noqa: TC001 - pydantic reads it
from penstock.sources.config import read
from penstock.sources.contract import Chunk, Column, Key, Limits, Plan, Table, keys_of
from penstock.sources.embedded.engine import Engine
from penstock.sources.embedded.engine import Limits as EngineLimits
from penstock.sources.embedded.failure import translated
from penstock.sources.embedded.types import quoted
from penstock.sources.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from penstock.sources.contract import Row
    from penstock.sources.embedded.engine import Session

_MEMORY = "memory"
_READERS = {".csv": "read_csv", ".parquet": "read_parquet", ".tsv": "read_csv"}
_DATABASES = {".db", ".duckdb"}

log = logging.get("sources.duckdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    database: str | None = None
    directory: str | None = None
    memory_limit: Size = "256MB"
    spill_limit: Size = "4GB"
    """Temporary disk space for queries that exceed the memory limit."""
    threads: Annotated[int, Field(ge=1, le=256)] = 2


def connect(
    config: Mapping[str, object],
    secrets: Mapping[str, str],
    outbound: Outbound = FOR_OPERATOR,  # noqa: ARG001 - it opens files alone
) -> DuckDBSource:
    return DuckDBSource(read(Config, config, secrets, source="duckdb"))


class DuckDBSource:
    dialect = "duckdb"

    def __init__(self, config: Config) -> None:
        self._config = config
        self._engine: Engine | None = None

    async def __aenter__(self) -> DuckDBSource:
        self._engine = await threaded_stream.call(self._open, _no_cancel, name="duckdb")
        return self

    async def __aexit__(self, *_: object) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await threaded_stream.call(engine.close, _no_cancel, name="duckdb")

    async def test(self) -> str:
        [(version,)] = await self.ask("SELECT version()")
        return f"DuckDB {version}"

    async def schema(self, sql: str) -> pa.Schema:
        session = self._session()
        return await threaded_stream.call(
            lambda: session.schema(sql), session.cancel, name="duckdb"
        )

    async def plan(self, sql: str, limits: Limits) -> Plan:  # noqa: ARG002 - one chunk fits any limit
        return Plan(chunks=[Chunk(number=0, sql=sql)], schema=await self.schema(sql))

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:  # noqa: ARG002
        session = self._session()
        return threaded_stream.stream(
            lambda: session.batches(chunk.sql), session.cancel, name="duckdb"
        )

    @property
    def catalog(self) -> DuckDBCatalog:
        return DuckDBCatalog(self)

    async def ask(self, sql: str, *values: object) -> list[Row]:
        session = self._session()
        return await threaded_stream.call(
            lambda: session.rows(sql, *values), session.cancel, name="duckdb"
        )

    def _session(self) -> Session:
        if self._engine is None:
            raise SourceError("The DuckDB source is not open.")
        return self._engine.session()

    def _open(self) -> Engine:
        directory = Path(self._config.directory).resolve() if self._config.directory else None
        if directory is not None and not directory.is_dir():
            raise SourceError(f"There is no directory {directory}.")
        config = self._config
        limits = EngineLimits(
            memory=config.memory_limit, spill=config.spill_limit, threads=config.threads
        )
        engine = Engine(limits, directory)
        try:
            engine.prepare(lambda main: _attach(main, self._config.database, directory))
        except BaseException:
            engine.close()
            raise
        return engine


def _no_cancel() -> None:
    """Opening and closing are short and cannot be interrupted."""


def _attach(
    main: DuckDBPyConnection, database: str | None, directory: Path | None
) -> Sequence[str]:
    """Attach the database and the files; returns the catalogs of the search path."""
    path = [_MEMORY]
    if database is not None:
        name = Path(database).stem
        _attach_database(main, Path(database), name)
        path.insert(0, name)
    for file in _files(directory) if directory else ():
        _add_file(main, file)
    return path


def _files(directory: Path) -> Sequence[Path]:
    """The files, without links out of the directory: a database behind one would stay attached."""
    return [
        file for file in sorted(directory.iterdir()) if file.resolve().is_relative_to(directory)
    ]


def _add_file(main: DuckDBPyConnection, file: Path) -> None:
    """Add a file as a table or catalog; an unreadable file is skipped with a warning."""
    try:
        with translated():
            if file.suffix in _DATABASES:
                _attach_database(main, file, file.stem)
            elif reader := _READERS.get(Path(file.name.removesuffix(".gz")).suffix):
                name = quoted(file.name.split(".")[0])
                main.execute(f"CREATE VIEW {name} AS SELECT * FROM {reader}({_literal(file)})")
    except PenstockError as e:
        log.warning("source_file_left_out", file=file.name, reason=e.message)


def _attach_database(main: DuckDBPyConnection, file: Path, name: str) -> None:
    main.execute(f"ATTACH {_literal(file)} AS {quoted(name)} (READ_ONLY)")


def _literal(file: Path) -> str:
    return "'" + str(file).replace("'", "''") + "'"


class DuckDBCatalog:
    def __init__(self, source: DuckDBSource) -> None:
        self._source = source

    async def tables(self) -> Sequence[Table]:
        rows = await self._source.ask(
            "SELECT table_catalog, table_schema, table_name, table_type = 'VIEW'"
            " FROM information_schema.tables"
            " WHERE table_catalog NOT IN ('system', 'temp') ORDER BY ALL"
        )
        return [
            Table(catalog=c, schema=s, name=n, kind="view" if view else "table")
            for c, s, n, view in rows
        ]

    async def columns(self, table: Table) -> Sequence[Column]:
        rows = await self._source.ask(
            "SELECT column_name, data_type, is_nullable, column_index, column_default"
            " FROM duckdb_columns()"
            " WHERE database_name = $1 AND schema_name = $2 AND table_name = $3"
            " ORDER BY column_index",
            table.catalog,
            table.schema,
            table.name,
        )
        return [
            Column(name=name, data_type=kind, nullable=nullable, position=position, default=default)
            for name, kind, nullable, position, default in rows
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:
        rows = await self._source.ask(
            "SELECT table_name, constraint_column_names, referenced_table, referenced_column_names"
            " FROM duckdb_constraints() WHERE database_name = $1 AND schema_name = $2"
            " AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')"
            " ORDER BY table_oid, constraint_index",
            catalog,
            schema,
        )
        return keys_of(rows)
