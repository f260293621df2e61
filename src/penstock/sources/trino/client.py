"""The statement protocol: register a query, then follow `nextUri` to its end.

A POST only registers; the first GET starts the query. Every answer names the next page; the page
just read may be asked for again, an older one is gone, so a query has exactly one reader. A query
that nobody asks after for the server's client timeout is abandoned. It is complete when an answer
has no `nextUri` and no error, never because of its state.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson

from penstock.kit import logging
from penstock.kit.clock import SYSTEM, Clock
from penstock.sources.errors import SourceError
from penstock.sources.trino.headers import Session, statement_headers
from penstock.sources.trino.reply import Reply, read_reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from penstock.sources.trino.config import Config
    from penstock.sources.trino.wire import Wire

# A query that has had nothing to say so often is waiting for the cluster, or at work for long: ask
# half as often.
_EAGER, _PAUSE = 10, 1.0

log = logging.get("sources.trino")


class Client:
    """Speaks to one coordinator, for any number of queries and roles at once."""

    def __init__(self, config: Config, wire: Wire, *, clock: Clock = SYSTEM) -> None:
        self.config = config
        self.wire = wire
        self._clock = clock
        self._farewells: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await asyncio.gather(*self._farewells, return_exceptions=True)
        await self.wire.close()

    async def submit(self, sql: str, session: Session, *, spooled: bool = False) -> Reply:
        """Register a query; it starts with the first `advance`, and is forgotten when there is
        none."""
        headers = statement_headers(self.config, session, spooled=spooled)
        reply = read_reply(await self.wire.post("/v1/statement", sql.encode(), headers)).checked()
        log.info("trino_query_registered", query_id=reply.query_id, trace=session.trace)
        return reply

    async def advance(self, next_uri: str) -> Reply:
        """One page further; Trino holds the answer back for at most a second when there is nothing
        new."""
        reply = read_reply(await self.wire.get(next_uri))
        if reply.next_uri == next_uri:
            raise SourceError("Trino's answer leads back to itself; is there a cache on the way?")
        return reply

    async def replies(
        self, sql: str, session: Session, *, spooled: bool = False
    ) -> AsyncGenerator[Reply]:
        """Run a query and give its answers; whoever leaves before the last one cancels it at Trino."""
        reply = await self.submit(sql, session, spooled=spooled)
        idle = 0
        try:
            while reply.next_uri is not None:
                reply = await self.advance(reply.next_uri)
                yield reply.checked()
                idle = 0 if reply.has_rows else idle + 1
                if idle > _EAGER:
                    await self._clock.sleep(_PAUSE)
        finally:
            if reply.next_uri is not None:
                await self.cancel(reply.query_id, reply.next_uri)

    async def columns(self, sql: str, session: Session) -> Sequence[Mapping[str, Any]]:
        """What Trino says of a query's columns."""
        found: Sequence[Mapping[str, Any]] = ()
        async with aclosing(self.replies(sql, session)) as replies:
            async for reply in replies:
                found = reply.columns or found
        return found

    async def rows(self, sql: str, session: Session) -> list[list[Any]]:
        """A small answer as Python rows: catalogs, versions, lists of files."""
        found: list[list[Any]] = []
        async with aclosing(self.replies(sql, session)) as replies:
            async for reply in replies:
                found += orjson.loads(reply.rows or b"[]")
        return found

    async def cancel(self, query_id: str, next_uri: str | None = None) -> None:
        """End the query at Trino. It is asked for even when the caller is being cancelled itself."""
        task = asyncio.create_task(self._cancel(query_id, next_uri))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)
        await asyncio.shield(task)

    async def _cancel(self, query_id: str, next_uri: str | None) -> None:
        status: int | None = 404
        if next_uri is not None and self.wire.is_ours(next_uri):
            status = await self.wire.delete(next_uri)
        if status in (404, 410):
            status = await self.wire.delete(f"{self.config.origin}/v1/query/{query_id}")
        log.info("trino_query_cancelled", query_id=query_id, status=status)
