from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources import threaded_stream
from penstock.sources.config import read
from penstock.sources.contract import Chunk, Column, Key, Limits, Plan, SourceFile, Table
from penstock.sources.errors import DriverMissing
from penstock.sources.files.config import Config, column_types
from penstock.sources.files.place import Place
from penstock.sources.files.query import DIALECT
from penstock.sources.files.scan import Scan
from penstock.sources.files.tables import find_tables, piece, table

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path
    from typing import TypeVar

    import pyarrow as pa

    from penstock.sources.embedded.engine import Engine
    from penstock.sources.files.tables import Piece

    T = TypeVar("T")

_SCHEMA = "main"


def connect(
    config: Mapping[str, object], secrets: Mapping[str, str], outbound: Outbound = FOR_OPERATOR
) -> FilesSource:
    parsed = read(Config, config, secrets, source="files")
    for name in parsed.types:
        column_types(parsed, name)
    return FilesSource(parsed, Place(parsed, outbound))


class FilesSource:
    dialect = DIALECT

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    async def __aenter__(self) -> FilesSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await self.in_thread(engine.close)

    async def test(self) -> str:
        tables = await self.in_thread(lambda: find_tables(self.place, self.config))
        return f"{self.place.url} with {len(tables)} tables"

    async def schema(self, sql: str) -> pa.Schema:
        scan = self._scan(sql)
        return await self.in_thread(scan.schema, scan.cancel)

    async def on_disk(self, sql: str) -> Sequence[Path] | None:
        scan = self._scan(sql)
        return await self.in_thread(scan.on_disk, scan.cancel)

    def files(self, chunk: Chunk) -> list[SourceFile]:
        entries = {part.entry: None for parts in _pinned(chunk).values() for part in parts}
        return [
            SourceFile(
                path=entry.path, size=entry.size, etag=entry.etag, local=self.place.path(entry)
            )
            for entry in entries
        ]

    async def plan(self, sql: str, limits: Limits) -> Plan:
        scan = self._scan(sql)
        schema = await self.in_thread(scan.schema, scan.cancel)
        parts = await self.in_thread(lambda: scan.parts(limits), scan.cancel)
        return Plan(
            chunks=[_chunk(number, sql, part) for number, part in enumerate(parts)], schema=schema
        )

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:  # noqa: ARG002
        scan = self._scan(chunk.sql, _pinned(chunk))
        return threaded_stream.stream(
            scan.batches, scan.cancel, name="files", silence=self.config.silence_seconds
        )

    @property
    def catalog(self) -> FilesCatalog:
        return FilesCatalog(self)

    async def in_thread(
        self, work: Callable[[], T], cancel: Callable[[], None] = lambda: None
    ) -> T:
        return await threaded_stream.call(
            work, cancel, name="files", within=self.config.silence_seconds
        )

    def _scan(self, sql: str, pinned: Mapping[str, Sequence[Piece]] | None = None) -> Scan:
        return Scan(sql, place=self.place, config=self.config, engine=self._duckdb, pinned=pinned)

    def _duckdb(self) -> Engine:
        """The engine, created on first use; it can read only the streams that it is given."""
        with self._lock:
            if self._engine is None:
                self._engine = _new_engine(self.config)
            return self._engine


def _new_engine(config: Config) -> Engine:
    try:
        from penstock.sources.embedded.engine import Engine, Limits
    except ModuleNotFoundError as e:
        raise DriverMissing(
            f"A query over files that does more than select columns needs {e.name},"
            " which is not installed.",
            hint="pip install 'penstock[duckdb]'",
        ) from None
    engine = Engine(
        Limits(memory=config.memory_limit, spill=config.spill_limit, threads=config.threads)
    )
    engine.prepare(lambda _: ())
    return engine


def _pinned(chunk: Chunk) -> dict[str, list[Piece]]:
    """The pieces of each table that a plan gave to the chunk."""
    return {
        name: [piece(part) for part in parts]
        for name, parts in chunk.extra.get("pieces", {}).items()
    }


def _chunk(number: int, sql: str, part: Mapping[str, Sequence[Piece]]) -> Chunk:
    counts = [one.rows for pieces in part.values() for one in pieces]
    rows = [count for count in counts if count is not None]
    return Chunk(
        number=number,
        sql=sql,
        estimated_rows=sum(rows) if len(part) == 1 and len(rows) == len(counts) else None,
        extra={
            "pieces": {name: [one.as_json() for one in pieces] for name, pieces in part.items()}
        },
    )


class FilesCatalog:
    """The tables of the files; they have no keys, and every column is nullable."""

    def __init__(self, source: FilesSource) -> None:
        self._source = source

    async def tables(self) -> Sequence[Table]:
        names = await self._source.in_thread(
            lambda: find_tables(self._source.place, self._source.config)
        )
        return [Table(catalog="files", schema=_SCHEMA, name=name) for name in names]

    async def columns(self, table: Table) -> Sequence[Column]:
        schema = await self._source.in_thread(lambda: self._schema(table.name))
        return [
            Column(name=field.name, data_type=str(field.type), nullable=True, position=position)
            for position, field in enumerate(schema, start=1)
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:  # noqa: ARG002
        return []

    def _schema(self, name: str) -> pa.Schema:
        place, config = self._source.place, self._source.config
        entries = find_tables(place, config).get(name, [])
        return table(name, entries, place, config, threading.Event()).schema
