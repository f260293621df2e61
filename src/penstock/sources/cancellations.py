"""Cancelling at a source what a cancelled caller has left running there.

The request that cancels must outlive its caller, and must be over before the client is closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Cancellations:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def finish(self, request: Coroutine[None, None, None]) -> None:
        """Run to the end, even if the caller is being cancelled."""
        task = asyncio.create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for all of them; an error of one has been raised in its caller."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
