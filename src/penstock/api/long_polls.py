"""Long polls: a caller who waits is on a line, and the line is hung up when they leave or when the
server goes down.

A claim must not be made for a caller who is gone. While they wait we watch their connection: once
it is cut, the line is dead, the waiting ends and no claim is begun. A claim that was under way at
that moment is handed back, uncounted, after a last look at the connection. What remains is a caller
who vanishes after that look, or without closing the connection (a machine that lost its power):
their claim lapses with its lease, and the reaper requeues it.
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
        """End every long poll now, with nothing, and let none begin."""
        self._closed = True
        for line in self._lines:
            line.hang_up()

    @asynccontextmanager
    async def line(
        self, request: Request, *, worker: str = "", session: UUID | None = None
    ) -> AsyncIterator[Line]:
        """With the session of a worker, which counts as present while it waits."""
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
