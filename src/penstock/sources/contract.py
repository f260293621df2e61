"""What a source driver must do.

Streaming only: memory is flat in the rows and no value becomes a Python object on the way. Types
are exact; an all-null column keeps its declared type and a query of zero rows still has a schema.
Column order is the query's.

Blocking drivers (ADBC, DuckDB, PyMySQL) and asynchronous ones (Trino) meet in `stream`: an async
generator of record batches. A blocking driver runs its reads in a thread and hands batches over one
at a time (back-pressure).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a table or query may be cut: chunks of about `chunk_bytes`, at most `max_chunks` of them.

    With `chunk_rows` it is rows that count, where the source's statistics know them. `key` is the
    column to cut by where the source has nothing better.
    """

    chunk_bytes: int = 192 * 1024 * 1024
    max_chunks: int = 64
    chunk_rows: int | None = None
    key: str | None = None

    def count(self, *, size: float, rows: float | None) -> int:
        """Into how many chunks; none for what has nothing in it."""
        if self.chunk_rows is None or rows is None:
            return min(self.max_chunks, math.ceil(size / self.chunk_bytes))
        return min(self.max_chunks, math.ceil(rows / self.chunk_rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part that can be read apart from the others; all chunks of one plan see one moment.

    JSON-able, for it travels in a job's payload. `snapshot` names the moment where the source can
    share one.
    """

    number: int
    sql: str
    snapshot: str | None = None
    estimated_rows: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Chunks, and what keeps their moment alive: while `hold` is open the snapshot can be joined."""

    chunks: Sequence[Chunk]
    schema: pa.Schema
    hold: Hold | None = None


class Hold(Protocol):
    """An open transaction on the source that pins the moment; closing it frees the source."""

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


class Catalog(Protocol):
    """What the schema browser asks."""

    async def tables(self) -> Sequence[Table]: ...

    async def columns(self, table: Table) -> Sequence[Column]: ...

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]: ...


class Source(Protocol):
    """One configured source; opened with `async with`, safe for concurrent streams."""

    dialect: str
    """The sqlglot dialect its SQL is checked and re-emitted in."""

    async def __aenter__(self) -> Source: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def test(self) -> str:
        """Really connect, really ask; returns what answered (product and version), raises
        `SourceError`."""
        ...

    async def schema(self, sql: str) -> pa.Schema:
        """The exact Arrow schema of a query, without running it."""
        ...

    async def plan(self, sql: str, limits: Limits) -> Plan:
        """Cut a table (`SELECT … FROM one_table`) or query into chunks that see one moment; one
        chunk is fine."""
        ...

    def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        """Read a chunk. Closing the generator early (`aclose`) cancels the query at the source.

        `trace` (job and attempt) is shown to the source where it has a place for it.
        """
        ...

    @property
    def catalog(self) -> Catalog: ...
