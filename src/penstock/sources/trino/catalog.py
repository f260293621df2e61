"""Metadata of Trino for the schema browser. Trino has no keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.sources.contract import Column, Key, Table
from penstock.sources.trino.rewrite import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.trino.client import Client
    from penstock.sources.trino.headers import Session


class TrinoCatalog:
    def __init__(self, client: Client, session: Session) -> None:
        self._client = client
        self._session = session

    async def tables(self) -> Sequence[Table]:
        """Tables and views of the configured catalog, or of all catalogs, that the role may see."""
        listings = await asyncio.gather(*(self._tables(name) for name in await self._catalogs()))
        return [table for tables in listings for table in tables]

    async def columns(self, table: Table) -> Sequence[Column]:
        rows = await self._client.rows(
            "SELECT column_name, data_type, is_nullable, ordinal_position, column_default"
            f" FROM {quoted(table.catalog)}.information_schema.columns"
            f" WHERE table_schema = {literal(table.schema)} AND table_name = {literal(table.name)}"
            " ORDER BY ordinal_position",
            self._session,
        )
        return [
            Column(
                name=name,
                data_type=kind,
                nullable=nullable == "YES",
                position=position,
                default=default,
            )
            for name, kind, nullable, position, default in rows
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:  # noqa: ARG002 - there are none anywhere
        return []

    async def _catalogs(self) -> list[str]:
        if (mine := self._client.config.catalog) is not None:
            return [mine]
        rows = await self._client.rows(
            "SELECT catalog_name FROM system.metadata.catalogs"
            " WHERE catalog_name <> 'system' ORDER BY 1",
            self._session,
        )
        return [name for [name] in rows]

    async def _tables(self, catalog: str) -> list[Table]:
        rows = await self._client.rows(
            "SELECT table_schema, table_name, table_type"
            f" FROM {quoted(catalog)}.information_schema.tables"
            " WHERE table_schema <> 'information_schema' ORDER BY 1, 2",
            self._session,
        )
        return [
            Table(
                catalog=catalog,
                schema=schema,
                name=name,
                kind="view" if kind == "VIEW" else "table",
            )
            for schema, name, kind in rows
        ]
