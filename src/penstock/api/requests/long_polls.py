"""Long polls: each waiting request has a handle, closed when its caller disconnects or the server
stops.

No job may be claimed for a caller who is gone. While a request waits we watch its connection: when
it closes, the wait ends and no claim begins. A claim that was already running is released without
counting an attempt, after a last check of the connection. A caller who vanishes after that check,
or without closing the connection (a power failure), loses the claim when its lease expires, and
the reaper requeues the job.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from penstock.jobs.notifier import Line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from starlette.requests import Request

    from penstock.jobs.presence import Presence


class Polls:
    def __init__(self, presence: Presence | None = None) -> None:
        self._presence = presence
        self._lines: set[Line] = set()
        self._closed = False

    def close(self) -> None:
        """End every long poll now, with an empty result, and refuse new ones."""
        self._closed = True
        for line in self._lines:
            line.hang_up()

    @asynccontextmanager
    async def line(
        self, request: Request, *, worker: str = "", session: UUID | None = None
    ) -> AsyncIterator[Line]:
        """A handle for one request; a worker that gives its session counts as present meanwhile."""
        line = Line()
        if self._closed:
            line.hang_up()
        self._lines.add(line)
        watcher = asyncio.create_task(_watch(request, line))
        present = (
            nullcontext()
            if self._presence is None or session is None
            else self._presence.of(worker, session, line)
        )
        try:
            with present:
                yield line
        finally:
            watcher.cancel()
            self._lines.discard(line)


async def _watch(request: Request, line: Line) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    line.hang_up()
