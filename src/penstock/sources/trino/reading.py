"""Read one query to its end: prefetch segments, decode one ahead, yield batches in order.

Two tasks run in the background. One follows the query and fetches its segments, a few concurrently;
the other decodes them in a thread. Both have bounded queues, so memory is constant however slow the
consumer is. While the first one is blocked it sends keep-alive requests, or Trino would abandon the
query. However the consumer stops, both tasks end and an unfinished query is cancelled at Trino.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.sources.errors import SourceError
from penstock.sources.trino import spooling, types
from penstock.sources.trino.pages import PageDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    import pyarrow as pa

    from penstock.sources.receipts import Receipts
    from penstock.sources.trino.client import Client
    from penstock.sources.trino.headers import Session
    from penstock.sources.trino.reply import Reply
    from penstock.sources.trino.spooling import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingRows:
    """Rows not yet decoded: a direct page, or a segment that is being fetched."""

    raw: asyncio.Future[bytes]
    segment: Segment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    error: Exception | None = None


class Reading:
    """Reads a query whose columns must be `columns`."""

    def __init__(
        self,
        client: Client,
        sql: str,
        session: Session,
        *,
        columns: Sequence[types.Column],
        receipts: Receipts | None = None,
    ) -> None:
        self._client = client
        self._sql = sql
        self._session = session
        self._columns = columns
        self._decoder = PageDecoder(columns)
        self._receipts = receipts
        self._next_uri: str | None = None
        self._checked = False
        self._expected_row = 0
        self._arriving: asyncio.Queue[_PendingRows | _End] = asyncio.Queue(client.config.parallel)
        self._decoded: asyncio.Queue[tuple[pa.RecordBatch, Segment | None] | _End] = asyncio.Queue(
            1
        )
        self._fetches: set[asyncio.Task[bytes]] = set()

    async def batches(self) -> AsyncGenerator[pa.RecordBatch]:
        """The rows; one empty batch for a query without rows, for its schema."""
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._decode())]
        rows = batches = 0
        try:
            while not isinstance(item := await self._decoded.get(), _End):
                batch, segment = item
                rows, batches = rows + batch.num_rows, batches + 1
                self._defer_release(rows, segment)
                yield batch
            if item.error is not None:
                raise item.error
            if not batches:
                yield self._decoder.empty()
        finally:
            for task in (*tasks, *self._fetches):
                task.cancel()
            await asyncio.gather(*tasks, *self._fetches, return_exceptions=True)

    def _defer_release(self, rows: int, segment: Segment | None) -> None:
        if self._receipts is not None and segment is not None and segment.ack_uri is not None:
            self._receipts.on_stored(rows, partial(self._client.wire.acknowledge, segment.ack_uri))

    async def _follow(self) -> None:
        end = _End()
        try:
            async with aclosing(
                self._client.replies(self._sql, self._session, spooled=True)
            ) as replies:
                async for reply in replies:
                    self._next_uri = reply.next_uri
                    for pending in self._pending(reply):
                        await self._offer(pending)
        except Exception as e:
            end = _End(error=e)  # raised in the consumer, after the rows before it
        await self._offer(end)

    def _pending(self, reply: Reply) -> Iterator[_PendingRows]:
        if reply.columns and not self._checked:
            self._check(reply.columns)
        if reply.rows is not None:
            yield _PendingRows(raw=_completed(reply.rows))
        if reply.spool is not None:
            segments = spooling.segments(reply.spool, max_bytes=self._client.wire.max_bytes)
            yield from map(self._begin, segments)

    def _check(self, columns: Sequence[types.Described]) -> None:
        if types.shape(types.columns(columns)) != types.shape(self._columns):
            raise SourceError(
                "The query's columns have changed since it was planned.", hint="Plan it again."
            )
        self._checked = True

    def _begin(self, segment: Segment) -> _PendingRows:
        if segment.offset != self._expected_row:
            raise SourceError(
                f"Rows {self._expected_row} to {segment.offset} are missing in Trino's result."
            )
        self._expected_row += segment.rows
        if segment.data is not None:
            return _PendingRows(raw=_completed(segment.data), segment=segment)
        fetch = asyncio.create_task(self._client.wire.fetch(segment.uri, segment.headers))
        self._fetches.add(fetch)
        return _PendingRows(raw=fetch, segment=segment)

    async def _offer(self, item: _PendingRows | _End) -> None:
        """Wait for room in the queue, with keep-alive requests to Trino meanwhile."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._client.config.client_timeout / 3):
                    return await self._arriving.put(item)
            if self._next_uri is not None:
                await self._client.wire.head(self._next_uri)

    async def _decode(self) -> None:
        try:
            while not isinstance(item := await self._arriving.get(), _End):
                raw = await item.raw
                self._fetches.discard(item.raw)
                await self._decoded.put(
                    (await asyncio.to_thread(self._batch, raw, item.segment), item.segment)
                )
            await self._decoded.put(item)
        except Exception as e:
            await self._decoded.put(_End(error=e))

    def _batch(self, raw: bytes, segment: Segment | None) -> pa.RecordBatch:
        if segment is None:
            return self._decoder.decode(raw)
        return self._decoder.decode(spooling.unpack(segment, raw), rows=segment.rows)


def _completed(raw: bytes) -> asyncio.Future[bytes]:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    future.set_result(raw)
    return future
