"""The statement protocol: register a query, then follow `nextUri` to its end.

A POST only registers; the first GET starts the query. Every answer names the next page; the page just read may be asked
for again, an older one is gone, so a query has exactly one reader. A query that nobody asks after for the server's
client timeout is abandoned. It is complete when an answer has no `nextUri` and no error, never because of its state.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from penstock.kit import logging
from penstock.sources.trino.headers import Session, statement_headers
from penstock.sources.trino.reply import Reply, read_reply

if TYPE_CHECKING:
    from penstock.sources.trino.config import Config
    from penstock.sources.trino.wire import Wire

log = logging.get("sources.trino")


class Client:
    """Speaks to one coordinator, for any number of queries and roles at once."""

    def __init__(self, config: Config, wire: Wire) -> None:
        self.config = config
        self.wire = wire
        self._farewells: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await asyncio.gather(*self._farewells)
        await self.wire.close()

    async def submit(self, sql: str, session: Session, *, spooled: bool = False) -> Reply:
        """Register a query; it starts with the first `advance`, and is forgotten when there is none."""
        headers = statement_headers(self.config, session, spooled=spooled)
        reply = read_reply(await self.wire.post("/v1/statement", sql.encode(), headers)).checked()
        log.info("trino_query_registered", query_id=reply.query_id, trace=session.trace)
        return reply

    async def advance(self, next_uri: str) -> Reply:
        """One page further; Trino holds the answer back for at most a second when there is nothing new."""
        return read_reply(await self.wire.get(next_uri))

    async def cancel(self, query_id: str, next_uri: str | None = None) -> None:
        """End the query at Trino. It is asked for even when the caller is being cancelled itself."""
        task = asyncio.create_task(self._cancel(query_id, next_uri))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)
        await asyncio.shield(task)

    async def rows(self, sql: str, session: Session) -> list[list[Any]]:
        """A small answer as Python rows: catalogs, versions, lists of files."""
        found: list[list[Any]] = []
        reply = await self.submit(sql, session)
        while reply.next_uri is not None:
            reply = (await self.advance(reply.next_uri)).checked()
            found += orjson.loads(reply.rows or b"[]")
        return found

    async def _cancel(self, query_id: str, next_uri: str | None) -> None:
        gone = next_uri is not None and await self.wire.delete(next_uri)
        heard = gone or await self.wire.delete(f"{self.config.origin}/v1/query/{query_id}")
        log.info("trino_query_cancelled", query_id=query_id, heard=heard)
