from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.contract import Column, Key, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.mysql.source import MySQLSource

# MySQL has no schemas below a database, so the database is the schema of one catalog.
_CATALOG = "def"

_TABLES = """
SELECT table_schema, table_name, table_type LIKE '%VIEW' FROM information_schema.tables
WHERE table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
ORDER BY table_schema, table_name
"""
_COLUMNS = """
SELECT column_name, column_type, is_nullable = 'YES', ordinal_position, column_default
FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_KEYS = """
SELECT table_name, constraint_name, column_name,
  referenced_table_schema, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = %s AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL)
ORDER BY table_name, constraint_name <> 'PRIMARY', constraint_name, ordinal_position
"""


class MySQLCatalog:
    def __init__(self, source: MySQLSource) -> None:
        self._source = source

    async def tables(self) -> Sequence[Table]:
        rows = await self._source.ask(_TABLES)
        return [
            Table(catalog=_CATALOG, schema=schema, name=name, kind="view" if view else "table")
            for schema, name, view in rows
        ]

    async def columns(self, table: Table) -> Sequence[Column]:
        rows = await self._source.ask(_COLUMNS, table.schema, table.name)
        return [
            Column(
                name=name,
                data_type=kind,
                nullable=bool(nullable),
                position=position,
                default=default,
            )
            for name, kind, nullable, position, default in rows
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:  # noqa: ARG002
        keys: dict[tuple[str, str], Key] = {}
        for table, name, column, other_schema, other, theirs in await self._source.ask(
            _KEYS, schema
        ):
            key = keys.get((table, name), Key(table=table, columns=()))
            references = other if other_schema in {None, schema} else f"{other_schema}.{other}"
            keys[table, name] = Key(
                table=table,
                columns=(*key.columns, column),
                references=references,
                referenced_columns=(*key.referenced_columns, theirs) if theirs else (),
            )
        return list(keys.values())
