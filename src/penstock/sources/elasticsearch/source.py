from __future__ import annotations

from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources.config import read as read_config
from penstock.sources.contract import Chunk, Limits, Plan
from penstock.sources.elasticsearch.catalog import ElasticsearchCatalog
from penstock.sources.elasticsearch.client import PRODUCT, Client, PointInTimeHold, in_path
from penstock.sources.elasticsearch.config import Config
from penstock.sources.elasticsearch.mapping import Field, read_mappings
from penstock.sources.elasticsearch.query import DIALECT, Column, columns_of, read_query, schema_of
from penstock.sources.elasticsearch.reading import SliceRead, read
from penstock.sources.errors import SourceError, SourceRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import pyarrow as pa

    from penstock.kit.json_value import JsonObject
    from penstock.sources.elasticsearch.query import Query

_MAX_SLICES = 1024  # the default of index.max_slices_per_pit


def connect(
    config: Mapping[str, object], secrets: Mapping[str, str], outbound: Outbound = FOR_OPERATOR
) -> ElasticsearchSource:
    return ElasticsearchSource(
        read_config(Config, config, secrets, source="elasticsearch"), outbound
    )


class ElasticsearchSource:
    """A cluster; the chunks of a plan are slices of one point in time, which its hold closes."""

    dialect = DIALECT

    def __init__(self, config: Config, outbound: Outbound = FOR_OPERATOR) -> None:
        self._client = Client(config, outbound)

    async def __aenter__(self) -> ElasticsearchSource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def test(self) -> str:
        version = (await self._client.document("GET", "/")).get("version") or {}
        if "number" not in version or version.get("distribution") == "opensearch":
            raise SourceError(f"The server is not {PRODUCT}.")
        return f"{PRODUCT} {version['number']}"

    async def schema(self, sql: str) -> pa.Schema:
        query = read_query(sql)
        columns = await self._columns(query)
        await self._condition(query)
        return schema_of(columns)

    async def plan(self, sql: str, limits: Limits) -> Plan:
        query = read_query(sql)
        columns, condition = await self._columns(query), await self._condition(query)
        slices, rows = await self._size(query.index, limits)
        pit = await self._client.open_point_in_time(query.index) if slices > 1 else None
        stored = {
            "columns": [asdict(column) for column in columns],
            "condition": condition,
            "slices": slices,
        }
        chunks = [
            Chunk(
                number=number,
                sql=sql,
                snapshot=pit,
                estimated_rows=None if rows is None else rows // slices,
                extra={**stored, "slice": number},
            )
            for number in range(slices)
        ]
        hold = None if pit is None else PointInTimeHold(self._client, pit)
        return Plan(chunks=chunks, schema=schema_of(columns), hold=hold)

    async def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        query = read_query(chunk.sql)
        slice_read = _planned(chunk.extra) or await self._slice_read(query)
        if chunk.snapshot is not None:
            async with aclosing(read(self._client, chunk.snapshot, slice_read, trace)) as batches:
                async for batch in batches:
                    yield batch
            return
        async with (
            self._client.point_in_time(query.index) as pit,
            aclosing(read(self._client, pit, slice_read, trace)) as batches,
        ):
            async for batch in batches:
                yield batch

    @property
    def catalog(self) -> ElasticsearchCatalog:
        return ElasticsearchCatalog(self._client)

    async def _slice_read(self, query: Query) -> SliceRead:
        return SliceRead(columns=await self._columns(query), condition=await self._condition(query))

    async def _columns(self, query: Query) -> list[Column]:
        mappings = await self._client.document("GET", f"/{in_path(query.index)}/_mapping")
        return columns_of(query, read_mappings(mappings))

    async def _condition(self, query: Query) -> JsonObject | None:
        if query.translatable is None:
            return None
        translated = await self._client.document(
            "POST", "/_sql/translate", body={"query": query.translatable}
        )
        condition: JsonObject | None = translated.get("query")
        return condition

    async def _size(self, index: str, limits: Limits) -> tuple[int, int | None]:
        """The number of slices, and the rows; one slice if the credentials cannot read sizes."""
        if limits.max_chunks == 1:
            return 1, None
        try:
            stats = await self._client.document("GET", f"/{in_path(index)}/_stats/docs,store")
        except SourceRefused:
            return 1, None
        total = stats["_all"]["primaries"]
        rows = total["docs"]["count"]
        slices = limits.count(size=total["store"]["size_in_bytes"], rows=rows)
        return max(1, min(slices, _MAX_SLICES)), rows


def _planned(extra: Mapping[str, Any]) -> SliceRead | None:
    if "columns" not in extra:
        return None
    columns = [
        Column(name=column["name"], field=Field(**column["field"])) for column in extra["columns"]
    ]
    return SliceRead(
        columns=columns, condition=extra["condition"], slice=extra["slice"], slices=extra["slices"]
    )
