"""What the schema browser asks of BigQuery: the configured project's tables, and the keys that were
declared."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.sources.contract import Column, Key, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.sources.bigquery.config import Config
    from penstock.sources.bigquery.jobs import Jobs

_VIEWS = frozenset({"MATERIALIZED_VIEW", "VIEW"})
_AT_ONCE = 8


class BigQueryCatalog:
    def __init__(self, config: Config, jobs: Jobs) -> None:
        self._config = config
        self._jobs = jobs
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def tables(self) -> Sequence[Table]:
        """Of the configured dataset, or of all of them."""
        datasets = [self._config.dataset] if self._config.dataset else await self._datasets()
        found = await asyncio.gather(*(self._tables(name) for name in datasets))
        return [table for tables in found for table in tables]

    async def columns(self, table: Table) -> Sequence[Column]:
        described = await self._jobs.table(table.catalog, table.schema, table.name)
        return [
            Column(
                name=field["name"],
                data_type=_told(field),
                nullable=field.get("mode") != "REQUIRED",
                position=position,
                default=field.get("defaultValueExpression"),
            )
            for position, field in enumerate(described["schema"].get("fields", ()), 1)
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:
        tables = await self._jobs.tables(catalog, schema)
        found = await asyncio.gather(
            *(
                self._described(catalog, schema, each["tableReference"]["tableId"])
                for each in tables
            )
        )
        return [key for table in found for key in _keys(table)]

    async def _datasets(self) -> list[str]:
        return sorted(each["datasetReference"]["datasetId"] for each in await self._jobs.datasets())

    async def _tables(self, dataset: str) -> list[Table]:
        async with self._room:
            found = await self._jobs.tables(self._config.project, dataset)
        return [
            Table(
                catalog=self._config.project,
                schema=dataset,
                name=each["tableReference"]["tableId"],
                kind="view" if each.get("type") in _VIEWS else "table",
            )
            for each in found
        ]

    async def _described(self, project: str, dataset: str, table: str) -> dict[str, Any]:
        async with self._room:
            return await self._jobs.table(project, dataset, table)


def _told(field: dict[str, Any]) -> str:
    digits = ", ".join(str(field[name]) for name in ("precision", "scale") if name in field)
    kind = f"{field['type']}({digits})" if digits else str(field["type"])
    return f"ARRAY<{kind}>" if field.get("mode") == "REPEATED" else kind


def _keys(table: dict[str, Any]) -> Iterator[Key]:
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
