"""Statements that run at Trino while their job is parked between polls.

`submit` only registers the statement: persist its `next_uri`, then `poll`, which starts it. A poll
is one GET. The last page read may be requested again, so a poller that dies before it persists the
response loses nothing, and another poller continues from the persisted state. Two concurrent
pollers would take each other's pages: poll under the job's fence. There is no keep-alive between
polls, so no delay may exceed a third of the server's client timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from penstock.sources.contract import Failed, Finished, QueryStep, Running
from penstock.sources.trino.failure import QueryLost, error_type

if TYPE_CHECKING:
    from penstock.kit.errors import PenstockError
    from penstock.sources.trino.client import Client
    from penstock.sources.trino.headers import Session
    from penstock.sources.trino.reply import Reply

_LAST_STATES = frozenset({"FINISHING", "FINISHED"})
_UNSUPPORTED, _NOT_REGISTERED = "FUNCTION_NOT_FOUND", "not registered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    query_id: str
    next_uri: str


class Statements:
    """Statements under one role. Stateless: each call may be in a different process."""

    def __init__(self, client: Client, session: Session) -> None:
        self._client = client
        self._session = session

    async def submit(self, sql: str) -> Submitted:
        """Register a statement; it starts with the first poll."""
        reply = await self._client.submit(sql, self._session)
        return Submitted(query_id=reply.query_id, next_uri=reply.next_uri or "")

    async def poll(self, next_uri: str, *, rows: int | None = None) -> QueryStep:
        """One step; pass the `rows` of the previous poll, because Trino reports them only once."""
        try:
            reply = await self._client.advance(next_uri)
        except QueryLost as e:
            return Failed(error=e)
        if reply.error is not None:
            return Failed(error=reply.error, unsupported=_is_unsupported(reply.error))
        written = _rows_written(reply)
        rows = rows if written is None else written
        if reply.next_uri is None:
            return Finished(rows=rows)
        moved = written is not None or reply.state in _LAST_STATES
        return Running(next_uri=reply.next_uri, state=reply.state, rows=rows, at_once=moved)

    async def cancel(self, query_id: str, next_uri: str | None = None) -> None:
        await self._client.cancel(query_id, next_uri)


def _is_unsupported(error: PenstockError) -> bool:
    """By the error's name or by its words: which name a server gives it is not documented."""
    return error_type(error) == _UNSUPPORTED or _NOT_REGISTERED in error.message


def _rows_written(reply: Reply) -> int | None:
    """The rows written: a CTAS reports an update count; an unload returns one row in all or one
    per file, with a count column."""
    if reply.update_count is not None:
        return reply.update_count
    counts = [
        n
        for n, column in enumerate(reply.columns or ())
        if _is_count(column["name"], column["type"])
    ]
    if reply.rows is None or len(counts) != 1:
        return None
    return sum(int(row[counts[0]]) for row in orjson.loads(reply.rows))


def _is_count(name: str, kind: str) -> bool:
    return kind in ("bigint", "integer") and "row" in name.lower()
