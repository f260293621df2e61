"""One query read to its end: fetched ahead, decoded one ahead, given in order.

Two tasks run behind the consumer. One follows the query and begins to fetch each segment, a few at a time; the other
decodes what has arrived, in a thread. Both wait for room, so memory is flat however slow the consumer is; and while the
first waits it tells Trino that somebody is still here, or the query would be abandoned. Whatever way the consumer
leaves, both tasks end and a query that is not over is cancelled at Trino.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.sources.errors import SourceError
from penstock.sources.trino import spooling, types
from penstock.sources.trino.pages import PageDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from penstock.sources.trino.client import Client
    from penstock.sources.trino.receipts import Receipts
    from penstock.sources.trino.reply import Reply
    from penstock.sources.trino.spooling import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lump:
    """Rows on their way: a direct page, or a segment that is being fetched."""

    raw: asyncio.Future[bytes]
    segment: Segment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    error: Exception | None = None


class Reading:
    """Reads the query that `reply` registered, whose columns must be `columns`."""

    def __init__(
        self, client: Client, reply: Reply, columns: Sequence[types.Column], receipts: Receipts | None
    ) -> None:
        self._client = client
        self._reply = reply
        self._columns = columns
        self._decoder = PageDecoder(columns)
        self._receipts = receipts
        self._expected = 0
        self._arriving: asyncio.Queue[_Lump | _End] = asyncio.Queue(client.config.parallel)
        self._decoded: asyncio.Queue[tuple[pa.RecordBatch, Segment | None] | _End] = asyncio.Queue(1)
        self._fetches: set[asyncio.Task[bytes]] = set()

    async def batches(self) -> AsyncGenerator[pa.RecordBatch]:
        """The rows, and for a query without rows one empty batch, so that its schema is known."""
        behind = [asyncio.create_task(self._follow()), asyncio.create_task(self._decode())]
        rows = batches = 0
        try:
            while not isinstance(item := await self._decoded.get(), _End):
                batch, segment = item
                rows, batches = rows + batch.num_rows, batches + 1
                self._owe(rows, segment)
                yield batch
            if item.error is not None:
                raise item.error
            if not batches:
                yield self._decoder.empty()
        finally:
            await self._leave(behind)

    async def _leave(self, behind: Sequence[asyncio.Task[None]]) -> None:
        for task in (*behind, *self._fetches):
            task.cancel()
        try:
            await asyncio.gather(*behind, *self._fetches, return_exceptions=True)
        finally:
            if self._reply.next_uri is not None:
                await self._client.cancel(self._reply.query_id, self._reply.next_uri)

    def _owe(self, rows: int, segment: Segment | None) -> None:
        if self._receipts is not None and segment is not None and segment.ack_uri is not None:
            self._receipts.owe(rows, partial(self._client.wire.acknowledge, segment.ack_uri))

    async def _follow(self) -> None:
        end = _End()
        try:
            async for lump in self._lumps():
                await self._offer(lump)
        except Exception as e:
            end = _End(error=e)
        await self._offer(end)

    async def _lumps(self) -> AsyncIterator[_Lump]:
        described = False
        while self._reply.next_uri is not None:
            self._reply = await self._client.advance(self._reply.next_uri)
            self._reply.checked()
            if self._reply.columns and not described:
                self._check(self._reply.columns)
                described = True
            if self._reply.rows is not None:
                yield _Lump(raw=_present(self._reply.rows))
            if self._reply.spool is not None:
                for segment in spooling.segments(self._reply.spool):
                    yield self._begin(segment)

    def _check(self, found: Sequence[Mapping[str, Any]]) -> None:
        if types.shape(types.columns(found)) != types.shape(self._columns):
            raise SourceError("The query's columns changed since it was planned.", hint="Plan it again.")

    def _begin(self, segment: Segment) -> _Lump:
        if segment.offset != self._expected:
            raise SourceError(f"Trino left out rows {self._expected} to {segment.offset} of its result.")
        self._expected += segment.rows
        if segment.data is not None:
            return _Lump(raw=_present(segment.data), segment=segment)
        fetch = asyncio.create_task(self._client.wire.fetch(segment.uri, segment.headers))
        self._fetches.add(fetch)
        return _Lump(raw=fetch, segment=segment)

    async def _offer(self, item: _Lump | _End) -> None:
        """Wait for room, and let Trino know now and then that we do."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._client.config.client_timeout / 3):
                    return await self._arriving.put(item)
            if self._reply.next_uri is not None:
                await self._client.wire.head(self._reply.next_uri)

    async def _decode(self) -> None:
        try:
            while not isinstance(item := await self._arriving.get(), _End):
                raw = await item.raw
                self._fetches.discard(item.raw)
                await self._decoded.put((await asyncio.to_thread(self._batch, raw, item.segment), item.segment))
            await self._decoded.put(item)
        except Exception as e:
            await self._decoded.put(_End(error=e))

    def _batch(self, raw: bytes, segment: Segment | None) -> pa.RecordBatch:
        if segment is None:
            return self._decoder.decode(raw)
        return self._decoder.decode(spooling.unpack(segment, raw), rows=segment.rows)


def _present(raw: bytes) -> asyncio.Future[bytes]:
    here: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    here.set_result(raw)
    return here
