"""Data sources: where mappings and recipes read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._async.listing import listed
from penstock.client.decoding import decode
from penstock.client.models import DataSourceInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.client._async.transport import AsyncTransport


class AsyncDataSources:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, name: str, type_: str, config: dict[str, Any], credentials: dict[str, str] | None = None
    ) -> DataSourceInfo:
        """Credentials go in and never come out again."""
        body = {"name": name, "type": type_, "config": config, "credentials": credentials or {}}
        return decode(DataSourceInfo, (await self._transport.call("POST", "/api/data-sources", json=body))["data"])

    async def get(self, source_id: int) -> DataSourceInfo:
        return decode(DataSourceInfo, await self._call("GET", "/api/data-sources/{id}", source_id))

    async def list(self, **filters: Any) -> AsyncIterator[DataSourceInfo]:
        async for item in listed(self._transport, "/api/data-sources", **filters):
            yield decode(DataSourceInfo, item)

    async def update(self, source_id: int, **changes: Any) -> DataSourceInfo:
        return decode(DataSourceInfo, await self._call("PUT", "/api/data-sources/{id}", source_id, json=changes))

    async def delete(self, source_id: int) -> None:
        await self._call("DELETE", "/api/data-sources/{id}", source_id)

    async def test(self, source_id: int) -> dict[str, Any]:
        """Really connects."""
        found: dict[str, Any] = await self._call("POST", "/api/data-sources/{id}/test", source_id)
        return found

    async def make_default(self, source_id: int) -> None:
        await self._call("PUT", "/api/data-sources/{id}/default", source_id)

    async def browse(self, source_id: int, prefix: str | None = None) -> Any:
        return await self._call("GET", "/api/data-sources/{id}/browse", source_id, query={"prefix": prefix})

    async def schema(self, source_id: int, table: str) -> Any:
        return await self._call("GET", "/api/data-sources/{id}/schema", source_id, query={"table": table})

    async def _call(
        self,
        method: str,
        template: str,
        source_id: int,
        *,
        json: object = None,
        query: Mapping[str, object] | None = None,
    ) -> Any:
        answer = await self._transport.call(method, template, path={"id": source_id}, json=json, query=query)
        return None if answer is None else answer["data"]
