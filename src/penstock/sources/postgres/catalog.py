from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.contract import Column, Key, Table, keys_of
from penstock.sources.postgres.session import SQL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.postgres.source import PostgresSource

_KINDS = {"f": "foreign table", "m": "materialized view", "p": "table", "r": "table", "v": "view"}


class PostgresCatalog:
    def __init__(self, source: PostgresSource) -> None:
        self._source = source

    async def tables(self) -> Sequence[Table]:
        rows = await self._source.ask(SQL.tables)
        return [
            Table(catalog=c, schema=s, name=name, kind=_KINDS[kind]) for c, s, name, kind in rows
        ]

    async def columns(self, table: Table) -> Sequence[Column]:
        rows = await self._source.ask(SQL.columns, schema=table.schema, table=table.name)
        return [
            Column(name=name, data_type=kind, nullable=nullable, position=position, default=default)
            for position, (name, kind, nullable, default) in enumerate(rows, start=1)
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:  # noqa: ARG002 - a connection sees one database
        return keys_of(await self._source.ask(SQL.keys, schema=schema))
