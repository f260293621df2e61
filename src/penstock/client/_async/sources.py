"""Data sources: where mappings and recipes read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.listing import listed
from penstock.client._async.resource import AsyncResource
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.models import DataSourceInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client.words import SourceType


class AsyncDataSources(AsyncResource):
    """The registry: what is connected, by number."""

    async def create(
        self,
        name: str,
        type_: SourceType | str,
        config: Mapping[str, object],
        credentials: Mapping[str, str] | None = None,
    ) -> DataSourceInfo:
        """Credentials go in and never come out again."""
        body = {
            "name": name,
            "type": type_,
            "config": dict(config),
            "credentials": dict(credentials or {}),
        }
        return decode(DataSourceInfo, await self._call("POST", "/api/data-sources", json=body))

    async def get(self, source_id: int) -> DataSourceInfo:
        return decode(
            DataSourceInfo, await self._call("GET", "/api/data-sources/{id}", id=source_id)
        )

    async def list(
        self, **filters: Unpack[shapes.DataSourcesFilters]
    ) -> AsyncIterator[DataSourceInfo]:
        async for item in listed(self._transport, "/api/data-sources", **filters):
            yield decode(DataSourceInfo, item)

    async def update(
        self,
        source_id: int,
        *,
        name: str | None = None,
        config: Mapping[str, object] | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> DataSourceInfo:
        body = given(name=name, config=config, credentials=credentials)
        return decode(
            DataSourceInfo,
            await self._call("PUT", "/api/data-sources/{id}", id=source_id, json=body),
        )

    async def delete(self, source_id: int) -> shapes.SourceDropped:
        gone: shapes.SourceDropped = await self._call(
            "DELETE", "/api/data-sources/{id}", id=source_id
        )
        return gone

    async def test(self, source_id: int) -> shapes.TestResult:
        """Really connects."""
        result: shapes.TestResult = await self._call(
            "POST", "/api/data-sources/{id}/test", id=source_id
        )
        return result

    async def make_default(self, source_id: int) -> DataSourceInfo:
        return decode(
            DataSourceInfo, await self._call("PUT", "/api/data-sources/{id}/default", id=source_id)
        )

    async def browse(
        self, source_id: int, prefix: str | None = None
    ) -> AsyncIterator[shapes.SourceTable]:
        """Its tables, or its files."""
        path = {"id": source_id}
        async for item in listed(
            self._transport, "/api/data-sources/{id}/browse", path, prefix=prefix
        ):
            yield item

    async def schema(self, source_id: int, table: str) -> shapes.TableSchema:
        table_schema: shapes.TableSchema = await self._call(
            "GET", "/api/data-sources/{id}/schema", id=source_id, query={"table": table}
        )
        return table_schema


class AsyncRecordSources(AsyncResource):
    """The same sources as recipes see them: by their alias, with a look at real rows."""

    async def connect(
        self,
        alias: str,
        type_: SourceType | str,
        config: Mapping[str, object],
        credentials: Mapping[str, str] | None = None,
    ) -> shapes.RecordSource:
        """A source that cannot be reached is not saved."""
        body = {
            "alias": alias,
            "type": type_,
            "config": dict(config),
            "credentials": dict(credentials or {}),
        }
        source: shapes.RecordSource = await self._call("POST", "/api/sources", json=body)
        return source

    async def list(
        self, **filters: Unpack[shapes.SourcesFilters]
    ) -> AsyncIterator[shapes.RecordSource]:
        async for item in listed(self._transport, "/api/sources", **filters):
            yield item

    async def preview(self, alias: str, table: str, *, limit: int = 20) -> shapes.Rows:
        """Its first rows."""
        query = {"table": table, "limit": limit}
        rows: shapes.Rows = await self._call(
            "GET", "/api/sources/{alias}/preview", alias=alias, query=query
        )
        return rows

    async def load_scoped(
        self,
        alias: str,
        *,
        table: str | None = None,
        query: str | None = None,
        filters: Sequence[Mapping[str, object]] = (),
        limit: int = 50,
    ) -> shapes.Rows:
        """The first rows of a table or a query that the filters let through."""
        body = given(
            table=table,
            query=query,
            filters=[dict(condition) for condition in filters],
            limit=limit,
        )
        rows: shapes.Rows = await self._call(
            "POST", "/api/sources/{alias}/load-scoped", alias=alias, json=body
        )
        return rows
