"""Metadata for the schema browser: indices and data streams are tables, aliases are views. There
are no keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.contract import Column, Key, Table
from penstock.sources.elasticsearch.client import in_path
from penstock.sources.elasticsearch.mapping import read_mappings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.elasticsearch.client import Client

SCHEMA = "default"


class ElasticsearchCatalog:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def tables(self) -> Sequence[Table]:
        """Everything that the credentials may see except hidden indices."""
        cluster = str((await self._client.document("GET", "/"))["cluster_name"])
        groups = await self._client.document("GET", "/_resolve/index/*")
        kinds = {"indices": "table", "data_streams": "table", "aliases": "view"}
        named = [
            (item["name"], kind) for group, kind in kinds.items() for item in groups.get(group, ())
        ]
        return [
            Table(catalog=cluster, schema=SCHEMA, name=name, kind=kind)
            for name, kind in sorted(named)
            if not name.startswith(".")
        ]

    async def columns(self, table: Table) -> Sequence[Column]:
        fields = read_mappings(
            await self._client.document("GET", f"/{in_path(table.name)}/_mapping")
        )
        return [
            Column(name=path, data_type=field.kind, nullable=True, position=position)
            for position, (path, field) in enumerate(fields.by_path.items(), 1)
            if field.nested_in is None
        ]

    async def keys(self, catalog: str, schema: str) -> Sequence[Key]:  # noqa: ARG002 - there are none anywhere
        return []
