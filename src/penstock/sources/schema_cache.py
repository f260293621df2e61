"""The schema browser's cache: the catalogs of all sources, in PostgreSQL and so shared by replicas.

A source is queried outside any transaction and its rows are replaced in one, so a reader sees its
old or its new catalog, never a part of it. A source that is unreachable keeps its cached rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from penstock.kit import logging
from penstock.kit.errors import DatabaseUnavailable, InvalidInput, NotFound, PenstockError
from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    import asyncpg

    from penstock.kit.db import Db, Tx
    from penstock.kit.sqlfile import Statement
    from penstock.sources.contract import Column, Table
    from penstock.sources.repository import DataSources

SQL = load("penstock.sources.sql")
log = logging.get(__name__)
MAX_SEARCH = 1000
PAGE = 100
FILLED_AT_ONCE = 10_000
CachedRow: TypeAlias = dict[str, object]
"""The columns of a statement by name, as the API answers them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    sources: int = 0
    failed: int = 0
    tables: int = 0

    @property
    def total(self) -> int:
        return self.sources + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The user who reads the cache."""

    username: str
    is_admin: bool


class SchemaCache:
    """Reads of the cache, and its replacement source by source."""

    def __init__(self, db: Db, sources: DataSources) -> None:
        self._db = db
        self._sources = sources

    async def catalogs(self, reader: Reader) -> list[CachedRow]:
        return await self._read(reader, SQL.schema_catalogs)

    async def schemas(self, reader: Reader, catalog: str) -> list[CachedRow]:
        return _found(
            await self._read(reader, SQL.schema_schemas, catalog=catalog), f"Catalog {catalog}"
        )

    async def tables(self, reader: Reader, catalog: str, schema: str) -> list[CachedRow]:
        rows = await self._read(reader, SQL.schema_tables, catalog=catalog, schema=schema)
        return _found(rows, f"Schema {catalog}.{schema}")

    async def columns(
        self, reader: Reader, catalog: str, schema: str, table: str
    ) -> list[CachedRow]:
        rows = await self._read(
            reader, SQL.schema_columns, catalog=catalog, schema=schema, table=table
        )
        return _found(rows, f"Table {catalog}.{schema}.{table}")

    async def search_tables(self, reader: Reader, text: str, limit: int = 100) -> list[CachedRow]:
        pattern = _pattern(text, limit)
        return await self._read(reader, SQL.schema_search_tables, pattern=pattern, limit=limit)

    async def search_columns(self, reader: Reader, text: str, limit: int = 100) -> list[CachedRow]:
        pattern = _pattern(text, limit)
        return await self._read(reader, SQL.schema_search_columns, pattern=pattern, limit=limit)

    async def stats(self) -> CachedRow:
        [row] = await self._rows(SQL.schema_stats)
        return row

    async def refresh(self, data_source_id: int) -> int:
        """Replace the cached catalog of one source; returns the number of its tables."""
        opening = await self._sources.opening(data_source_id)
        async with opening.opened() as source:
            tables = await source.catalog.tables()
            columns = [
                (table, column)
                for table in tables
                for column in await source.catalog.columns(table)
            ]
        async with self._db.transaction() as tx:
            await tx.changed(SQL.schema_clear, data_source_id=data_source_id)
            for start in range(0, len(columns), FILLED_AT_ONCE):
                await _fill(tx, data_source_id, columns[start : start + FILLED_AT_ONCE])
        return len(tables)

    async def _read(
        self, reader: Reader, statement: Statement, **values: object
    ) -> list[CachedRow]:
        """Rows of the sources that the reader may use; table names of others are not shown."""
        usable = await self._db.fetch(
            SQL.source_usable, username=reader.username, is_admin=reader.is_admin
        )
        sources = [row["data_source_id"] for row in usable]
        return await self._rows(statement, sources=sources, **values)

    async def _rows(self, statement: Statement, **values: object) -> list[CachedRow]:
        rows: list[asyncpg.Record] = await self._db.fetch(statement, **values)
        return [dict(r) for r in rows]


class SchemaRefresh(Loop[Refreshed]):
    name = "schema_cache"

    def __init__(
        self,
        db: Db,
        sources: DataSources,
        cache: SchemaCache,
        *,
        every: float,
        metrics: LoopMetrics,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._sources = sources
        self._cache = cache

    async def run_once(self) -> Refreshed:
        done = failed = tables = offset = 0
        while page := (await self._sources.page(offset=offset, limit=PAGE))[0]:
            for source in page:
                try:
                    tables += await self._cache.refresh(source.data_source_id)
                    done += 1
                except DatabaseUnavailable:
                    raise
                except PenstockError as e:
                    failed += 1
                    log.warning("schema_not_refreshed", data_source=source.name, error=e.message)
                except Exception:
                    failed += 1
                    log.exception("schema_not_refreshed", data_source=source.name)
            offset += PAGE
        return Refreshed(sources=done, failed=failed, tables=tables)


async def _fill(tx: Tx, data_source_id: int, columns: Sequence[tuple[Table, Column]]) -> None:
    await tx.changed(
        SQL.schema_fill,
        data_source_id=data_source_id,
        catalogs=[t.catalog for t, _ in columns],
        schemas=[t.schema for t, _ in columns],
        tables=[t.name for t, _ in columns],
        kinds=[t.kind for t, _ in columns],
        names=[c.name for _, c in columns],
        positions=[c.position for _, c in columns],
        types=[c.data_type for _, c in columns],
        nullable=[c.nullable for _, c in columns],
        defaults=[c.default for _, c in columns],
    )


def _found(rows: list[CachedRow], what: str) -> list[CachedRow]:
    if not rows:
        raise NotFound(
            f"{what} not found in cache.",
            hint="POST /api/schema/admin/refresh reloads the catalogs of the sources.",
        )
    return rows


def _pattern(text: str, limit: int) -> str:
    """The text, escaped for LIKE."""
    if not 1 <= limit <= MAX_SEARCH:
        raise InvalidInput(f"limit must be 1 to {MAX_SEARCH}.")
    if not 1 <= len(text) <= 200:
        raise InvalidInput("q must have 1 to 200 characters.")
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
