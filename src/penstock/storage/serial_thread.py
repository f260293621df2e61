"""A single worker thread that runs calls in order, at most one call behind the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
A = TypeVar("A")


class SerialThread:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parquet")
        self._started: asyncio.Future[object] | None = None

    async def run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def start(self, call: Callable[[A], object], argument: A) -> None:
        """Start a call after the previous one has ended; raises the previous call's error."""
        await self.idle()
        self._started = asyncio.get_running_loop().run_in_executor(self._thread, call, argument)

    async def idle(self) -> None:
        started, self._started = self._started, None
        if started is not None:
            await started

    async def run_last(self, call: Callable[[], object]) -> None:
        """Run a final call after the current one; its errors are ignored."""
        started = [self._started] if self._started else []
        await asyncio.gather(*started, self.run(call), return_exceptions=True)

    def close(self) -> None:
        self._thread.shutdown(wait=False)
