"""What the schema browser asks of BigQuery: the configured project's tables, and the keys that were
declared."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.sources.contract import Column, Key, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.sources.bigquery.config import Config
    from penstock.sources.bigquery.jobs import Jobs
    from penstock.sources.bigquery.types import Field
    from penstock.sources.rest import Document

_VIEWS = frozenset({"MATERIALIZED_VIEW", "VIEW"})
_AT_ONCE = 8


class BigQueryCatalog:
    def __init__(self, config: Config, jobs: Jobs) -> None:
        self._config = config
        self._jobs = jobs
        self._concurrency = asyncio.Semaphore(_AT_ONCE)

    async def tables(self) -> Sequence[Table]:
        """The tables of the configured dataset, or of all datasets."""
        datasets = [self._config.dataset] if self._config.dataset else await self._datasets()
        listings = await asyncio.gather(*(self._tables(name) for name in datasets))
        return [table for tables in listings for table in tables]

    async def columns(self, table: Table) -> Sequence[Column]:
        described = await self._jobs.table(table.catalog, table.schema, table.name)
        return [
            Column(
                name=field["name"],
                data_type=_type_name(field),
                nullable=field.get("mode") != "REQUIRED",
                position=position,
                default=field.get("defaultValueExpression"),
            )
            for position, field in enumerate(described["schema"].get("fields", ()), 1)
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:
        tables = await self._jobs.tables(catalog, schema)
        described = await asyncio.gather(
            *(self._table(catalog, schema, item["tableReference"]["tableId"]) for item in tables)
        )
        return [key for table in described for key in _keys(table)]

    async def _datasets(self) -> list[str]:
        return sorted(item["datasetReference"]["datasetId"] for item in await self._jobs.datasets())

    async def _tables(self, dataset: str) -> list[Table]:
        async with self._concurrency:
            items = await self._jobs.tables(self._config.project, dataset)
        return [
            Table(
                catalog=self._config.project,
                schema=dataset,
                name=item["tableReference"]["tableId"],
                kind="view" if item.get("type") in _VIEWS else "table",
            )
            for item in items
        ]

    async def _table(self, project: str, dataset: str, table: str) -> Document:
        async with self._concurrency:
            return await self._jobs.table(project, dataset, table)


def _type_name(field: Field) -> str:
    digits = ", ".join(str(field[name]) for name in ("precision", "scale") if name in field)
    kind = f"{field['type']}({digits})" if digits else str(field["type"])
    return f"ARRAY<{kind}>" if field.get("mode") == "REPEATED" else kind


def _keys(table: Document) -> Iterator[Key]:
    name, constraints = table["tableReference"]["tableId"], table.get("tableConstraints", {})
    if primary := constraints.get("primaryKey"):
        yield Key(table=name, columns=tuple(primary["columns"]))
    for foreign in constraints.get("foreignKeys", ()):
        pairs = foreign["columnReferences"]
        yield Key(
            table=name,
            columns=tuple(pair["referencingColumn"] for pair in pairs),
            references=foreign["referencedTable"]["tableId"],
            referenced_columns=tuple(pair["referencedColumn"] for pair in pairs),
        )
