"""The unload mode: Trino writes the files itself, and the job is parked between polls.

`submit` only registers the query: persist its `next_uri`, then `poll`, which starts it. A poll is
one GET. The last page read may be requested again, so a poller that dies before it persists the
response loses nothing, and another poller continues from the persisted state. Two concurrent
pollers would take each other's pages: poll under the job's fence. There is no keep-alive between
polls, so no delay may exceed a third of the server's client timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

from penstock.sources.trino.failure import QueryLost, error_type
from penstock.sources.trino.rewrite import literal, quoted, trimmed

if TYPE_CHECKING:
    from penstock.kit.errors import PenstockError
    from penstock.sources.trino.client import Client
    from penstock.sources.trino.headers import Session
    from penstock.sources.trino.reply import Reply

TableKind = Literal["hive", "iceberg"]
Compression = Literal["ZSTD", "SNAPPY", "GZIP", "LZ4", "NONE"]

_LAST_STATES = frozenset({"FINISHING", "FINISHED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    query_id: str
    next_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Persist `next_uri` and `rows`, then poll again: immediately if `at_once`, else after
    `poll_delay`."""

    next_uri: str
    state: str
    rows: int | None = None
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """`rows` is the count that Trino reports, if any; the files' footers must match it."""

    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: PenstockError

    @property
    def unsupported(self) -> bool:
        """The server lacks the function: export directly instead."""
        return (
            error_type(self.error) == "FUNCTION_NOT_FOUND" or "not registered" in self.error.message
        )

    @property
    def lost(self) -> bool:
        """Abandoned, or read by another client: a new attempt has to start over."""
        return isinstance(self.error, QueryLost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table that a CTAS creates; its name must be unique to one attempt."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(quoted(part) for part in (self.catalog, self.schema, self.table))

    def metadata(self, name: str) -> str:
        return ".".join(
            quoted(part) for part in (self.catalog, self.schema, f"{self.table}${name}")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    path: str
    rows: int
    size: int


class Unload:
    """Queries that write files, under one role. Stateless: each call may be in a different
    process."""

    def __init__(self, client: Client, session: Session) -> None:
        self._client = client
        self._session = session

    async def submit(self, sql: str) -> Submitted:
        """Register a statement of `unload_sql` or `ctas_sql`; it starts with the first poll."""
        reply = await self._client.submit(sql, self._session)
        return Submitted(query_id=reply.query_id, next_uri=reply.next_uri or "")

    async def poll(self, next_uri: str, *, rows: int | None = None) -> Running | Finished | Failed:
        """One step; pass the `rows` of the previous poll, because Trino reports them only once."""
        try:
            reply = await self._client.advance(next_uri)
        except QueryLost as e:
            return Failed(error=e)
        if reply.error is not None:
            return Failed(error=reply.error)
        written = _rows_written(reply)
        rows = rows if written is None else written
        if reply.next_uri is None:
            return Finished(rows=rows)
        moved = written is not None or reply.state in _LAST_STATES
        return Running(next_uri=reply.next_uri, state=reply.state, rows=rows, at_once=moved)

    async def cancel(self, query_id: str, next_uri: str | None = None) -> None:
        await self._client.cancel(query_id, next_uri)

    async def iceberg_files(self, target: Target) -> list[WrittenFile]:
        """The data files that a CTAS into an Iceberg catalog committed, with their row counts."""
        return await self._files(
            "SELECT file_path, record_count, file_size_in_bytes"
            f" FROM {target.metadata('files')} WHERE content = 0"
        )

    async def hive_files(self, target: Target) -> list[WrittenFile]:
        return await self._files(
            f'SELECT "$path", count(*), max("$file_size") FROM {target} GROUP BY 1'
        )

    async def drop(self, target: Target) -> None:
        """Drop the table of a CTAS, with its files unless it is external."""
        await self._client.rows(f"DROP TABLE IF EXISTS {target}", self._session)

    async def forget(self, target: Target) -> None:
        """Remove the table of a CTAS from its Iceberg catalog and keep its files."""
        arguments = f"{literal(target.schema)}, {literal(target.table)}"
        call = f"CALL {quoted(target.catalog)}.system.unregister_table({arguments})"
        await self._client.rows(call, self._session)

    async def _files(self, sql: str) -> list[WrittenFile]:
        records = await self._client.rows(f"{sql} ORDER BY 1", self._session)
        return [WrittenFile(path=path, rows=rows, size=size) for path, rows, size in records]


def unload_sql(sql: str, *, catalog: str, location: str, compression: Compression = "ZSTD") -> str:
    """A query with Starburst's unload function. `location` must be empty, so use one per attempt;
    `catalog` must be on an object store."""
    return (
        f"SELECT * FROM TABLE({quoted(catalog)}.system.unload("
        f"input => TABLE(\n{trimmed(sql)}\n), location => {literal(location)}, "
        f"format => 'PARQUET', compression => {literal(compression)}))"
    )


def ctas_sql(
    sql: str, target: Target, *, location: str | None = None, kind: TableKind = "iceberg"
) -> str:
    """A CTAS for plain Trino: a table of Parquet files in an Iceberg or Hive catalog, committed
    atomically."""
    place = "location" if kind == "iceberg" else "external_location"
    where = f", {place} = {literal(location)}" if location is not None else ""
    return f"CREATE TABLE {target} WITH (format = 'PARQUET'{where}) AS\n{trimmed(sql)}"


def _rows_written(reply: Reply) -> int | None:
    """The rows written: a CTAS reports an update count; an unload returns one row in all or one
    per file, with a count column."""
    if reply.update_count is not None:
        return reply.update_count
    counts = [
        n
        for n, column in enumerate(reply.columns or ())
        if _is_count(column["name"], column["type"])
    ]
    if reply.rows is None or len(counts) != 1:
        return None
    return sum(int(row[counts[0]]) for row in orjson.loads(reply.rows))


def _is_count(name: str, kind: str) -> bool:
    return kind in ("bigint", "integer") and "row" in name.lower()
