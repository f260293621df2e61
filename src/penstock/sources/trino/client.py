"""Trino's statement protocol: register a query, then follow `nextUri` to the end.

A POST only registers the query; the first GET starts it. Every response names the next page. The
last page read may be requested again, older ones are gone, so a query has exactly one reader. Trino
abandons a query without requests for the server's client timeout. A query is complete when a
response has no `nextUri` and no error, whatever its state.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import orjson

from penstock.kit import logging
from penstock.kit.clock import SYSTEM, Clock
from penstock.sources.cancellations import Cancellations
from penstock.sources.errors import SourceError
from penstock.sources.trino.headers import Session, statement_headers
from penstock.sources.trino.reply import Reply, read_reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from penstock.sources.contract import Row
    from penstock.sources.trino.config import Config
    from penstock.sources.trino.types import Described
    from penstock.sources.trino.wire import Wire

# After this many polls without rows the query is queued or runs long: poll half as often.
_EAGER, _PAUSE = 10, 1.0

log = logging.get("sources.trino")


class Client:
    """A client of one coordinator, for any number of concurrent queries and roles."""

    def __init__(self, config: Config, wire: Wire, *, clock: Clock = SYSTEM) -> None:
        self.config = config
        self.wire = wire
        self._clock = clock
        self._cancellations = Cancellations()

    async def close(self) -> None:
        await self._cancellations.close()
        await self.wire.close()

    async def submit(self, sql: str, session: Session, *, spooled: bool = False) -> Reply:
        """Register a query; the first `advance` starts it, without one Trino drops it."""
        headers = statement_headers(self.config, session, spooled=spooled)
        reply = read_reply(await self.wire.post("/v1/statement", sql.encode(), headers)).checked()
        log.info("trino_query_registered", query_id=reply.query_id, trace=session.trace)
        return reply

    async def advance(self, next_uri: str) -> Reply:
        """Get the next page; Trino delays the response by up to a second if there is no news."""
        reply = read_reply(await self.wire.get(next_uri))
        if reply.next_uri == next_uri:
            raise SourceError(
                "Trino's response links to itself as the next page.",
                hint="Check for a cache between this machine and Trino.",
            )
        return reply

    async def replies(
        self, sql: str, session: Session, *, spooled: bool = False
    ) -> AsyncGenerator[Reply]:
        """Run a query and yield its responses; closing the generator early cancels the query."""
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

    async def columns(self, sql: str, session: Session) -> Sequence[Described]:
        """Trino's description of a query's columns."""
        columns: Sequence[Described] = ()
        async with aclosing(self.replies(sql, session)) as replies:
            async for reply in replies:
                columns = reply.columns or columns
        return columns

    async def rows(self, sql: str, session: Session) -> list[Row]:
        """A small result as Python rows: catalogs, versions, lists of files."""
        rows: list[Row] = []
        async with aclosing(self.replies(sql, session)) as replies:
            async for reply in replies:
                rows += map(tuple, orjson.loads(reply.rows or b"[]"))
        return rows

    async def cancel(self, query_id: str, next_uri: str | None = None) -> None:
        """Cancel the query at Trino, even if the caller is being cancelled."""
        await self._cancellations.finish(self._cancel(query_id, next_uri))

    async def _cancel(self, query_id: str, next_uri: str | None) -> None:
        status: int | None = 404
        if next_uri is not None and self.wire.is_ours(next_uri):
            status = await self.wire.delete(next_uri)
        if status in (404, 410):
            status = await self.wire.delete(f"{self.config.origin}/v1/query/{query_id}")
        log.info("trino_query_cancelled", query_id=query_id, status=status)
