"""From a blocking driver to an async iterator, one thread a stream.

The thread makes, reads and closes everything of the driver; only `cancel` is called from outside,
in a thread of its own, for it may block as well. A batch is read only when there is room for it: at
most `AHEAD` wait beside the one that the consumer holds. Whatever way the consumer leaves (end,
error, `aclose`, cancelled task), the thread is told to stop, the driver's call is cancelled, and
the consumer goes on once the thread has ended. A source that answers neither is given `GRACE`
seconds: then its thread, a daemon, is left behind until its connection dies, and the log says so.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.kit import logging
from penstock.sources.errors import SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

T = TypeVar("T")

AHEAD = 1
GRACE = 10.0
CANCEL_PAUSE = 0.5

log = logging.get("sources.bridge")


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class _Reader(Generic[T]):
    """One thread that drains one iterator into the event loop."""

    def __init__(
        self, read: Callable[[], Iterator[T]], cancel: Callable[[], None], name: str
    ) -> None:
        self._read = read
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[T | _End] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._cancel_done = asyncio.Event()
        self._room = threading.Semaphore(AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"source-{name}", daemon=True)
        self._thread.start()

    async def take(self, within: float | None) -> T | _End:
        try:
            item = await asyncio.wait_for(self._arrived.get(), within)
        except TimeoutError:
            raise SourceUnavailable(
                f"The source has been silent for {within:g} seconds; the query was cancelled."
            ) from None
        self._room.release()
        return item

    async def stop(self) -> None:
        if not self._ended.is_set():
            self._stopped.set()
            self._room.release()
            canceller = threading.Thread(
                target=self._cancel_until_it_ends, name=f"{self._thread.name}-cancel", daemon=True
            )
            canceller.start()
            try:
                async with asyncio.timeout(GRACE):
                    await self._ended.wait()
                    await self._cancel_done.wait()
            except TimeoutError:
                log.warning(
                    "source_reader_abandoned", thread=self._thread.name, grace_seconds=GRACE
                )
                return
            canceller.join()
        self._thread.join()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._drain()
        except BaseException as e:  # it is raised again where the consumer waits
            error = e
        self._tell(_End(error))

    def _drain(self) -> None:
        items = self._read()
        try:
            while self._room.acquire() and not self._stopped.is_set():
                try:
                    self._tell(next(items))
                except StopIteration:
                    return
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _tell(self, item: T | _End) -> None:
        self._in_loop(lambda: self._take_in(item))

    def _in_loop(self, effect: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(effect)
        except RuntimeError:  # the loop is closed, nobody waits any more
            self._stopped.set()

    def _take_in(self, item: T | _End) -> None:
        self._arrived.put_nowait(item)
        if isinstance(item, _End):
            self._ended.set()

    def _cancel_until_it_ends(self) -> None:
        """Again and again, for a cancel that falls between two statements is lost."""
        deadline = time.monotonic() + GRACE
        while self._thread.is_alive() and time.monotonic() < deadline:
            try:
                self._cancel()
            except Exception as e:  # the thread ends without it as well, only later
                log.warning(
                    "source_cancel_failed", thread=self._thread.name, error=type(e).__name__
                )
            self._thread.join(CANCEL_PAUSE)
        self._in_loop(self._cancel_done.set)


async def stream(
    read: Callable[[], Iterator[T]],
    cancel: Callable[[], None],
    *,
    name: str,
    silence: float | None = None,
) -> AsyncGenerator[T]:
    """What `read` yields in its thread. No item for `silence` seconds means that the source is
    gone."""
    reader = _Reader(read, cancel, name)
    try:
        while True:
            item = await reader.take(silence)
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        await reader.stop()


async def call(
    work: Callable[[], T], cancel: Callable[[], None], *, name: str, within: float | None = None
) -> T:
    """One blocking call."""

    def once() -> Iterator[T]:
        yield work()

    async with aclosing(stream(once, cancel, name=name, silence=within)) as items:
        [result] = [item async for item in items]
    return result
