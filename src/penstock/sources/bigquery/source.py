from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from penstock.kit.outbound import FOR_OPERATOR, Outbound
from penstock.sources import threaded_stream
from penstock.sources.bigquery.catalog import BigQueryCatalog
from penstock.sources.bigquery.config import Config
from penstock.sources.bigquery.credentials import Credentials
from penstock.sources.bigquery.jobs import PRODUCT, Described, Jobs
from penstock.sources.bigquery.streams import Reading, Storage
from penstock.sources.bigquery.types import cast_to_schema, schema_of
from penstock.sources.config import read
from penstock.sources.contract import Chunk, Limits, Plan

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import pyarrow as pa

FIELDS, LOCATION, STREAM = "fields", "location", "stream"


def connect(
    config: Mapping[str, object], secrets: Mapping[str, str], outbound: Outbound = FOR_OPERATOR
) -> BigQuerySource:
    return BigQuerySource(read(Config, config, secrets, source="bigquery"), outbound)


class BigQuerySource:
    """A BigQuery project; plans need no hold, because a read session lives for six hours."""

    dialect = "bigquery"

    def __init__(self, config: Config, outbound: Outbound = FOR_OPERATOR) -> None:
        credentials = Credentials(config, outbound)
        self._config = config
        self._jobs = Jobs(config, credentials, outbound)
        self._storage = Storage(config, credentials, outbound)

    async def __aenter__(self) -> BigQuerySource:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._jobs.close()
        await asyncio.to_thread(self._storage.close)

    async def test(self) -> str:
        """Read one row through all steps: the job, its table, the session and its stream."""
        [batch] = [batch async for batch in self.stream(Chunk(number=0, sql="SELECT 1 AS answer"))]
        return f"{PRODUCT} v2, project {self._config.project}: {batch.num_rows} row"

    async def schema(self, sql: str) -> pa.Schema:
        return schema_of((await self._jobs.describe(sql)).fields)

    async def plan(self, sql: str, limits: Limits) -> Plan:
        described = await self._jobs.describe(sql)
        schema = schema_of(described.fields)
        extra = {FIELDS: described.fields, LOCATION: described.location}
        if limits.max_chunks == 1:
            return Plan(chunks=[Chunk(number=0, sql=sql, extra=extra)], schema=schema)
        table = await self._jobs.run(sql, described.location, "plan")
        stored = await self._jobs.table(table.project, table.dataset, table.table)
        rows = int(stored["numRows"]) if "numRows" in stored else None
        stream_count = max(1, limits.count(size=int(stored.get("numBytes", 0)), rows=rows))
        session = await asyncio.to_thread(self._storage.session, table, stream_count)
        chunks = [
            Chunk(
                number=number,
                sql=sql,
                snapshot=session.name,
                estimated_rows=session.rows // max(1, len(session.streams)),
                extra={**extra, STREAM: stream},
            )
            for number, stream in enumerate(
                session.streams or [""]
            )  # a table without rows has no stream
        ]
        return Plan(chunks=chunks, schema=schema)

    async def stream(self, chunk: Chunk, *, trace: str = "") -> AsyncGenerator[pa.RecordBatch]:
        described = _planned(chunk.extra) or await self._jobs.describe(chunk.sql)
        schema = schema_of(described.fields)
        for stream in await self._streams(chunk, described.location, trace):
            reading = Reading(self._storage, stream)
            batches = threaded_stream.stream(
                reading.batches,
                reading.cancel,
                name="bigquery",
                silence=self._config.silence_seconds,
            )
            async with aclosing(batches):
                async for batch in batches:
                    yield cast_to_schema(batch, schema)

    @property
    def catalog(self) -> BigQueryCatalog:
        return BigQueryCatalog(self._config, self._jobs)

    async def _streams(self, chunk: Chunk, location: str | None, trace: str) -> tuple[str, ...]:
        if STREAM in chunk.extra:
            return (chunk.extra[STREAM],) if chunk.extra[STREAM] else ()
        table = await self._jobs.run(chunk.sql, location, trace)
        return (await asyncio.to_thread(self._storage.session, table, 1)).streams


def _planned(extra: Mapping[str, Any]) -> Described | None:
    return Described(fields=extra[FIELDS], location=extra[LOCATION]) if FIELDS in extra else None
