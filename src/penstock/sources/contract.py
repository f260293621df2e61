"""The protocol of a source driver.

Reads are streamed: memory does not grow with the rows, and values do not become Python objects.
Types are exact; an all-null column keeps its declared type and a query of zero rows still has a
schema. Column order is the query's.

Blocking drivers (ADBC, DuckDB, PyMySQL) and asynchronous ones (Trino) both implement `stream`, an
async generator of record batches. A blocking driver reads in a thread, with back-pressure (see
`threaded_stream`).

What only some sources can do is a protocol of its own, asked for with `isinstance`:
`UnloadSource` writes the files of a query itself, `SpoolSource` keeps the rows that it sent until
they are stored, the tables of a `FileSource` are files already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.kit.errors import PenstockError
    from penstock.sources.receipts import Receipts


Row: TypeAlias = tuple[Any, ...]
"""A row of a small internal query, in the values of the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How to split a table or query: chunks of about `chunk_bytes`, at most `max_chunks`.

    With `chunk_rows` the row count decides, if the source has statistics. `key` is the column to
    split by if the source has nothing better.
    """

    chunk_bytes: int = 192 * 1024 * 1024
    max_chunks: int = 64
    chunk_rows: int | None = None
    key: str | None = None

    def count(self, *, size: float, rows: float | None) -> int:
        """The number of chunks; 0 for an empty table."""
        if self.chunk_rows is None or rows is None:
            return min(self.max_chunks, math.ceil(size / self.chunk_bytes))
        return min(self.max_chunks, math.ceil(rows / self.chunk_rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a plan that can be read independently; all chunks of a plan see one snapshot.

    JSON-serializable, for a job's payload. `snapshot` is its id, if the source can share one.
    """

    number: int
    sql: str
    snapshot: str | None = None
    estimated_rows: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Chunks, and the hold that keeps their snapshot alive: readers can join it until `close`."""

    chunks: Sequence[Chunk]
    schema: pa.Schema
    hold: Hold | None = None


class Hold(Protocol):
    """Keeps the snapshot of a plan open on the source until it is closed."""

    async def alive(self) -> bool: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    catalog: str
    schema: str
    name: str
    kind: str = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    data_type: str
    nullable: bool
    position: int
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A declared primary key, or a foreign key when `references` is set."""

    table: str
    columns: tuple[str, ...]
    references: str | None = None
    referenced_columns: tuple[str, ...] = ()


def keys_of(rows: Iterable[Row]) -> list[Key]:
    """Keys from rows of table, columns, referenced table and its columns."""
    return [
        Key(
            table=table,
            columns=tuple(columns),
            references=other,
            referenced_columns=tuple(theirs),
        )
        for table, columns, other, theirs in rows
    ]


class Catalog(Protocol):
    """Metadata queries of the schema browser."""

    async def tables(self) -> Sequence[Table]: ...

    async def columns(self, table: Table) -> Sequence[Column]: ...

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]: ...


class Source(Protocol):
    """One configured source; opened with `async with`, safe for concurrent streams."""

    dialect: str
    """The sqlglot dialect in which its SQL is checked and re-emitted."""

    async def __aenter__(self) -> Source: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def test(self) -> str:
        """Connect and run a query; returns product and version, raises `SourceError`."""
        ...

    async def schema(self, sql: str) -> pa.Schema:
        """The exact Arrow schema of a query, without running it."""
        ...

    async def plan(self, sql: str, limits: Limits) -> Plan:
        """Split a table (`SELECT … FROM one_table`) or query into chunks of one snapshot; a single
        chunk is allowed."""
        ...

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        """Read a chunk. Closing the generator early (`aclose`) cancels the query at the source.

        `trace` (job and attempt) is sent to the source if its protocol has a field for it.
        """
        ...

    @property
    def catalog(self) -> Catalog: ...


@runtime_checkable
class SpoolSource(Protocol):
    """A source that spools its rows and may release them once they are stored."""

    def spooled_stream(
        self, chunk: Chunk, receipts: Receipts, *, trace: str = ""
    ) -> AsyncGenerator[pa.RecordBatch]:
        """Like `stream`; the consumer reports stored rows to `receipts`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One version of a file that a chunk reads; `local` is its path, if it is in a folder."""

    path: str
    size: int
    etag: str | None
    local: Path | None


@runtime_checkable
class FileSource(Protocol):
    """A source whose tables are files."""

    async def on_disk(self, sql: str) -> Sequence[Path] | None:
        """The local Parquet files of a query that selects one whole table; otherwise None."""
        ...

    def files(self, chunk: Chunk) -> Sequence[SourceFile]:
        """The files of a planned chunk; blocks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadRequest:
    """A query whose rows the source writes as Parquet files below `location`.

    `location` is an empty folder and `name` is unique: both belong to one attempt. `catalog` and
    `schema` are those of the source's configuration unless set.
    """

    sql: str
    columns: Sequence[str]
    location: str
    name: str
    through_table: bool = False
    """Create a table of this name, instead of calling the source's unload function."""
    catalog: str | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedQuery:
    """A query that runs at the source while no worker waits for it.

    JSON-serializable, for a job's state. `table` is the table (catalog, schema, name) that it
    creates; `rows` is the count that the source has reported so far.
    """

    query_id: str
    next_uri: str
    rows: int | None = None
    table: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Persist `next_uri` and `rows`, then poll again: immediately if `at_once`."""

    next_uri: str
    state: str
    rows: int | None = None
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """`rows` is the count that the source reports, if any; the files' footers must match it."""

    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: PenstockError
    unsupported: bool = False
    """The server cannot unload: read the query directly instead."""


QueryStep: TypeAlias = Running | Finished | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    path: str
    rows: int
    size: int


class Unload(Protocol):
    """Queries that write files at the source, submitted by one process and polled by any other.

    Stateless: everything between two calls is in the `ParkedQuery`. Poll under the job's fence,
    because two concurrent pollers may take each other's answers.
    """

    product: str
    """The source's name in messages."""
    patience: float
    """The seconds after which the source drops a query that nobody polls."""

    async def submit(self, request: UnloadRequest) -> ParkedQuery:
        """Register the query; it may start only with the first poll."""
        ...

    async def poll(self, query: ParkedQuery) -> QueryStep:
        """One step; a poll whose answer was lost can be repeated."""
        ...

    async def files(self, query: ParkedQuery) -> Sequence[WrittenFile] | None:
        """The files that a finished query wrote; None: all that are below its location."""
        ...

    async def cancel(self, query: ParkedQuery) -> None:
        """Stop the query; a query that is over, or unknown, stays as it is."""
        ...

    async def drop(self, query: ParkedQuery) -> None:
        """Remove the table of the query, if it created one, with its files."""
        ...

    async def forget(self, query: ParkedQuery) -> None:
        """Remove the table of a finished query, if it created one, and keep its files."""
        ...


@runtime_checkable
class UnloadSource(Protocol):
    """A source that can write the files of a query itself."""

    def unload(self, *, trace: str = "") -> Unload: ...
