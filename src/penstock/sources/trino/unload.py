"""The unload capability of Trino: it writes the files itself, by Starburst's unload function or by
a table (CTAS) that any Trino can create.

A table is unregistered once its files belong to their reader, and dropped, with its files, when its
query failed. Polling is that of `statements`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.kit.errors import InvalidInput
from penstock.sources.contract import ParkedQuery, QueryStep, UnloadRequest, WrittenFile
from penstock.sources.errors import SourceQueryError
from penstock.sources.trino.rewrite import literal, quoted, trimmed
from penstock.sources.trino.statements import Statements

if TYPE_CHECKING:
    from penstock.sources.trino.client import Client
    from penstock.sources.trino.headers import Session

TableKind: TypeAlias = Literal["hive", "iceberg"]
Compression: TypeAlias = Literal["ZSTD", "SNAPPY", "GZIP", "LZ4", "NONE"]


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


class TrinoUnload:
    """Queries that write files, under one role."""

    product = "Trino"

    def __init__(self, client: Client, session: Session) -> None:
        self._client = client
        self._session = session
        self._statements = Statements(client, session)
        self.patience = client.config.client_timeout

    async def submit(self, request: UnloadRequest) -> ParkedQuery:
        if not request.through_table:
            sql = unload_sql(request.sql, catalog=self._catalog(request), location=request.location)
            table = None
        else:
            table = self._table(request)
            sql = ctas_sql(request.sql, _target(table), location=request.location.rstrip("/"))
        submitted = await self._statements.submit(sql)
        return ParkedQuery(query_id=submitted.query_id, next_uri=submitted.next_uri, table=table)

    async def poll(self, query: ParkedQuery) -> QueryStep:
        return await self._statements.poll(query.next_uri, rows=query.rows)

    async def files(self, query: ParkedQuery) -> list[WrittenFile] | None:
        if query.table is None:
            return None
        target = _target(query.table)
        try:
            return await self._iceberg_files(target)
        except SourceQueryError:
            return await self._hive_files(target)

    async def cancel(self, query: ParkedQuery) -> None:
        await self._statements.cancel(query.query_id, query.next_uri)

    async def drop(self, query: ParkedQuery) -> None:
        if query.table is not None:
            sql = f"DROP TABLE IF EXISTS {_target(query.table)}"
            await self._client.rows(sql, self._session)

    async def forget(self, query: ParkedQuery) -> None:
        if query.table is None:
            return
        catalog, schema, name = query.table
        arguments = f"{literal(schema)}, {literal(name)}"
        call = f"CALL {quoted(catalog)}.system.unregister_table({arguments})"
        await self._client.rows(call, self._session)

    def _table(self, request: UnloadRequest) -> tuple[str, str, str]:
        schema = request.schema or self._client.config.schema
        if not schema:
            raise InvalidInput("The mode ctas needs a target_schema.")
        if changed := [name for name in request.columns if name != name.lower()]:
            raise InvalidInput(
                f"Column {changed[0]!r} has upper-case letters, which Trino tables do not keep.",
                hint="Use the mode direct or unload, or rename the column.",
                column=changed[0],
            )
        return self._catalog(request), schema, request.name

    def _catalog(self, request: UnloadRequest) -> str:
        catalog = request.catalog or self._client.config.catalog
        if not catalog:
            mode = "ctas" if request.through_table else "unload"
            raise InvalidInput(f"The mode {mode} needs a target_catalog.")
        return catalog

    async def _iceberg_files(self, target: Target) -> list[WrittenFile]:
        """The data files that the table's snapshot has, with their row counts."""
        return await self._files(
            "SELECT file_path, record_count, file_size_in_bytes"
            f" FROM {target.metadata('files')} WHERE content = 0"
        )

    async def _hive_files(self, target: Target) -> list[WrittenFile]:
        return await self._files(
            f'SELECT "$path", count(*), max("$file_size") FROM {target} GROUP BY 1'
        )

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


def _target(table: tuple[str, str, str]) -> Target:
    catalog, schema, name = table
    return Target(catalog=catalog, schema=schema, table=name)
