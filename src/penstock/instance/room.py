"""The threads that run the engine, and the one way in: a call that can be stopped.

A call that is out of time, or that nobody waits for any more, is interrupted and then waited for, so that a thread is
never lost to it; the event loop only ever waits.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.graphdb.contract import Interrupt
from penstock.graphdb.errors import QueryInterrupted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
PULL_SECONDS = 0.05


class EngineRoom:
    def __init__(self, threads: int, confine: Callable[[], None]) -> None:
        """`confine` is called in each thread before its first work."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="engine", initializer=confine)
        self.active = 0

    async def run(self, call: Callable[[], T]) -> T:
        """A call that is not stopped: loading, counting, write-back."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def query(
        self, call: Callable[[Interrupt], T], *, timeout: float, gone: Callable[[], Awaitable[None]] | None = None
    ) -> T:
        """`gone` returns when the client went away; `QueryInterrupted` when that, or the time, was the end."""
        cord = Interrupt()
        task = self._threads.submit(call, cord)
        work = asyncio.wrap_future(task)
        watch = asyncio.ensure_future(gone()) if gone else None
        self.active += 1
        try:
            waited: set[asyncio.Future[Any]] = {work, watch} if watch else {work}
            await asyncio.wait(waited, timeout=timeout, return_when="FIRST_COMPLETED")
            if not work.done():
                await _stop(task, work, cord)
            return _outcome(work, timeout)
        except asyncio.CancelledError:
            await _stop(task, work, cord)
            raise
        finally:
            self.active -= 1
            if watch is not None:
                watch.cancel()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _stop(task: Future[T], work: asyncio.Future[T], cord: Interrupt) -> None:
    """Pull until it ends: one that has only just begun may not hear the first. One that waits never begins."""
    task.cancel()
    while not work.done():
        cord.pull()
        await asyncio.wait({work}, timeout=PULL_SECONDS)


def _outcome(work: asyncio.Future[T], timeout: float) -> T:
    try:
        return work.result()
    except (QueryInterrupted, asyncio.CancelledError):
        raise QueryInterrupted(
            f"The query took longer than {timeout:g} s and was stopped.",
            hint="Ask for less, or give it more time with timeout_ms.",
            timeout_ms=int(timeout * 1000),
        ) from None
