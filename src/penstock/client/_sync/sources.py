"""Data sources: where mappings and recipes read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client._sync.listing import listed
from penstock.client.bodies import given
from penstock.client.decoding import decode
from penstock.client.models import DataSourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from penstock.client import shapes
    from penstock.client._sync.transport import Transport
    from penstock.client.words import SourceType


class DataSources:
    """The registry: what is connected, by number."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        type_: SourceType | str,
        config: Mapping[str, Any],
        credentials: Mapping[str, str] | None = None,
    ) -> DataSourceInfo:
        """Credentials go in and never come out again."""
        body = {
            "name": name,
            "type": type_,
            "config": dict(config),
            "credentials": dict(credentials or {}),
        }
        return decode(
            DataSourceInfo,
            (self._transport.call("POST", "/api/data-sources", json=body))["data"],
        )

    def get(self, source_id: int) -> DataSourceInfo:
        return decode(DataSourceInfo, self._call("GET", "/api/data-sources/{id}", source_id))

    def list(self, **filters: Unpack[shapes.DataSourcesFilters]) -> Iterator[DataSourceInfo]:
        for item in listed(self._transport, "/api/data-sources", **filters):
            yield decode(DataSourceInfo, item)

    def update(
        self,
        source_id: int,
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> DataSourceInfo:
        body = given(name=name, config=config, credentials=credentials)
        return decode(
            DataSourceInfo, self._call("PUT", "/api/data-sources/{id}", source_id, json=body)
        )

    def delete(self, source_id: int) -> shapes.SourceDropped:
        gone: shapes.SourceDropped = self._call("DELETE", "/api/data-sources/{id}", source_id)
        return gone

    def test(self, source_id: int) -> shapes.TestResult:
        """Really connects."""
        result: shapes.TestResult = self._call("POST", "/api/data-sources/{id}/test", source_id)
        return result

    def make_default(self, source_id: int) -> DataSourceInfo:
        return decode(
            DataSourceInfo, self._call("PUT", "/api/data-sources/{id}/default", source_id)
        )

    def browse(self, source_id: int, prefix: str | None = None) -> Iterator[shapes.SourceTable]:
        """Its tables, or its files."""
        path = {"id": source_id}
        yield from listed(self._transport, "/api/data-sources/{id}/browse", path, prefix=prefix)

    def schema(self, source_id: int, table: str) -> shapes.TableSchema:
        table_schema: shapes.TableSchema = self._call(
            "GET", "/api/data-sources/{id}/schema", source_id, query={"table": table}
        )
        return table_schema

    def _call(
        self,
        method: str,
        template: str,
        source_id: int,
        *,
        json: object = None,
        query: Mapping[str, object] | None = None,
    ) -> Any:
        answer = self._transport.call(
            method, template, path={"id": source_id}, json=json, query=query
        )
        return None if answer is None else answer["data"]


class RecordSources:
    """The same sources as recipes see them: by their alias, with a look at real rows."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def connect(
        self,
        alias: str,
        type_: SourceType | str,
        config: Mapping[str, Any],
        credentials: Mapping[str, str] | None = None,
    ) -> shapes.RecordSource:
        """A source that cannot be reached is not saved."""
        body = {
            "alias": alias,
            "type": type_,
            "config": dict(config),
            "credentials": dict(credentials or {}),
        }
        source: shapes.RecordSource = (self._transport.call("POST", "/api/sources", json=body))[
            "data"
        ]
        return source

    def list(self, **filters: Unpack[shapes.SourcesFilters]) -> Iterator[shapes.RecordSource]:
        yield from listed(self._transport, "/api/sources", **filters)

    def preview(self, alias: str, table: str, *, limit: int = 20) -> shapes.Rows:
        """Its first rows."""
        path, query = {"alias": alias}, {"table": table, "limit": limit}
        answer = self._transport.call("GET", "/api/sources/{alias}/preview", path=path, query=query)
        rows: shapes.Rows = answer["data"]
        return rows

    def load_scoped(
        self,
        alias: str,
        *,
        table: str | None = None,
        query: str | None = None,
        filters: Sequence[Mapping[str, Any]] = (),
        limit: int = 50,
    ) -> shapes.Rows:
        """The first rows of a table or a query that the filters let through."""
        body = given(
            table=table,
            query=query,
            filters=[dict(condition) for condition in filters],
            limit=limit,
        )
        answer = self._transport.call(
            "POST", "/api/sources/{alias}/load-scoped", path={"alias": alias}, json=body
        )
        rows: shapes.Rows = answer["data"]
        return rows
