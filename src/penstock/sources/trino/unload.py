"""Mode unload: Trino writes the files itself, and the job is parked between polls.

`submit` registers the query and starts nothing: persist its `next_uri` first, then `poll`, which
starts it. A poll is one GET: the page just read may be asked for again, so whoever dies between a
poll and writing down its answer has lost nothing, and any other poller goes on from what is
written. Two pollers at once would take each other's pages: poll under the job's fence. Between
polls nobody tells Trino that we are here, so no delay is longer than a third of the server's client
timeout.
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
    """Persist `next_uri` and `rows`, then poll again: `at_once` when the end is in sight, else
    after `poll_delay`."""

    next_uri: str
    state: str
    rows: int | None = None
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """`rows` is what Trino says it wrote, where it says so; the files' footers must agree with it."""

    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: PenstockError

    @property
    def unsupported(self) -> bool:
        """This server has no such function: export directly instead."""
        return (
            error_type(self.error) == "FUNCTION_NOT_FOUND" or "not registered" in self.error.message
        )

    @property
    def lost(self) -> bool:
        """Abandoned, or read by another: a new attempt has to begin anew."""
        return isinstance(self.error, QueryLost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A table that a CTAS makes; its name must belong to one attempt only."""

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
    """One role's way to queries that write; every call may come from another process than the one
    before."""

    def __init__(self, client: Client, session: Session) -> None:
        self._client = client
        self._session = session

    async def submit(self, sql: str) -> Submitted:
        """Register a statement of `unload_sql` or `ctas_sql`. Nothing runs before the first poll."""
        reply = await self._client.submit(sql, self._session)
        return Submitted(query_id=reply.query_id, next_uri=reply.next_uri or "")

    async def poll(self, next_uri: str, *, rows: int | None = None) -> Running | Finished | Failed:
        """One step. `rows` is what the poll before said, for Trino says it only once."""
        try:
            reply = await self._client.advance(next_uri)
        except QueryLost as e:
            return Failed(error=e)
        if reply.error is not None:
            return Failed(error=reply.error)
        told = _rows_written(reply)
        rows = rows if told is None else told
        if reply.next_uri is None:
            return Finished(rows=rows)
        moved = told is not None or reply.state in _LAST_STATES
        return Running(next_uri=reply.next_uri, state=reply.state, rows=rows, at_once=moved)

    async def cancel(self, query_id: str, next_uri: str | None = None) -> None:
        await self._client.cancel(query_id, next_uri)

    async def iceberg_files(self, target: Target) -> list[WrittenFile]:
        """What a CTAS into an Iceberg catalog committed, exactly: its data files with their row
        counts."""
        sql = f"SELECT file_path, record_count, file_size_in_bytes FROM {target.metadata('files')} WHERE content = 0"
        return await self._files(sql)

    async def hive_files(self, target: Target) -> list[WrittenFile]:
        return await self._files(
            f'SELECT "$path", count(*), max("$file_size") FROM {target} GROUP BY 1'
        )

    async def drop(self, target: Target) -> None:
        """Drop the table of a CTAS; unless it is external, its files go with it."""
        await self._client.rows(f"DROP TABLE IF EXISTS {target}", self._session)

    async def forget(self, target: Target) -> None:
        """Take the table of a CTAS out of its Iceberg catalog; its files stay."""
        call = f"CALL {quoted(target.catalog)}.system.unregister_table({literal(target.schema)}, {literal(target.table)})"
        await self._client.rows(call, self._session)

    async def _files(self, sql: str) -> list[WrittenFile]:
        found = await self._client.rows(f"{sql} ORDER BY 1", self._session)
        return [WrittenFile(path=path, rows=rows, size=size) for path, rows, size in found]


def unload_sql(sql: str, *, catalog: str, location: str, compression: Compression = "ZSTD") -> str:
    """Starburst's unload; `location` must be empty, so give each attempt its own, and `catalog` an
    object store's."""
    return (
        f"SELECT * FROM TABLE({quoted(catalog)}.system.unload("
        f"input => TABLE(\n{trimmed(sql)}\n), location => {literal(location)}, "
        f"format => 'PARQUET', compression => {literal(compression)}))"
    )


def ctas_sql(
    sql: str, target: Target, *, location: str | None = None, kind: TableKind = "iceberg"
) -> str:
    """Plain Trino's way: a table of Parquet files in an Iceberg or Hive catalog, committed as a
    whole."""
    place = "location" if kind == "iceberg" else "external_location"
    where = f", {place} = {literal(location)}" if location is not None else ""
    return f"CREATE TABLE {target} WITH (format = 'PARQUET'{where}) AS\n{trimmed(sql)}"


def _rows_written(reply: Reply) -> int | None:
    """A CTAS counts its rows; an unload answers with a row a file or one in all, and a column that
    counts them."""
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
