"""One query read to its end: fetched ahead, decoded one ahead, given in order.

Two tasks run behind the consumer. One follows the query and begins to fetch each segment, a few at
a time; the other decodes what has arrived, in a thread. Both wait for room, so memory is flat
however slow the consumer is; and while the first waits it tells Trino that somebody is still here,
or the query would be abandoned. Whatever way the consumer leaves, both tasks end and a query that
is not over is cancelled at Trino.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.sources.errors import SourceError
from penstock.sources.trino import spooling, types
from penstock.sources.trino.pages import PageDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

    import pyarrow as pa

    from penstock.sources.trino.client import Client
    from penstock.sources.trino.headers import Session
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
        self._arriving: asyncio.Queue[_Lump | _End] = asyncio.Queue(client.config.parallel)
        self._decoded: asyncio.Queue[tuple[pa.RecordBatch, Segment | None] | _End] = asyncio.Queue(
            1
        )
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
            for task in (*behind, *self._fetches):
                task.cancel()
            await asyncio.gather(*behind, *self._fetches, return_exceptions=True)

    def _owe(self, rows: int, segment: Segment | None) -> None:
        if self._receipts is not None and segment is not None and segment.ack_uri is not None:
            self._receipts.owe(rows, partial(self._client.wire.acknowledge, segment.ack_uri))

    async def _follow(self) -> None:
        end = _End()
        try:
            async with aclosing(
                self._client.replies(self._sql, self._session, spooled=True)
            ) as replies:
                async for reply in replies:
                    self._next_uri = reply.next_uri
                    for lump in self._lumps(reply):
                        await self._offer(lump)
        except Exception as e:
            end = _End(error=e)  # the consumer's, after the rows before it
        await self._offer(end)

    def _lumps(self, reply: Reply) -> Iterator[_Lump]:
        if reply.columns and not self._checked:
            self._check(reply.columns)
        if reply.rows is not None:
            yield _Lump(raw=_present(reply.rows))
        if reply.spool is not None:
            segments = spooling.segments(reply.spool, max_bytes=self._client.wire.max_bytes)
            yield from map(self._begin, segments)

    def _check(self, found: Sequence[Mapping[str, Any]]) -> None:
        if types.shape(types.columns(found)) != types.shape(self._columns):
            raise SourceError(
                "The query's columns changed since it was planned.", hint="Plan it again."
            )
        self._checked = True

    def _begin(self, segment: Segment) -> _Lump:
        if segment.offset != self._expected_row:
            raise SourceError(
                f"Trino left out rows {self._expected_row} to {segment.offset} of its result."
            )
        self._expected_row += segment.rows
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


def _present(raw: bytes) -> asyncio.Future[bytes]:
    here: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    here.set_result(raw)
    return here
