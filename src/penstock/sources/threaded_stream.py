"""Turn a blocking driver into an async iterator, with one thread per stream.

The thread opens, reads and closes everything of the driver; only `cancel` is called from another
thread, because it may block as well. Back-pressure: at most `AHEAD` batches wait besides the one
that the consumer has. However the consumer stops (end, error, `aclose`, cancelled task), the thread
is signalled to stop, the driver's call is cancelled, and the consumer continues once the thread has
ended. If the source reacts to neither within `GRACE` seconds, its daemon thread is abandoned until
its connection dies, and a warning is logged.
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
    """A thread that passes the items of one iterator to the event loop."""

    def __init__(
        self, read: Callable[[], Iterator[T]], cancel: Callable[[], None], name: str
    ) -> None:
        self._read = read
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[T | _End] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._cancel_done = asyncio.Event()
        self._permits = threading.Semaphore(AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"source-{name}", daemon=True)
        self._thread.start()

    async def take(self, within: float | None) -> T | _End:
        try:
            item = await asyncio.wait_for(self._items.get(), within)
        except TimeoutError:
            raise SourceUnavailable(
                f"The source was silent for {within:g} seconds; the query was cancelled."
            ) from None
        self._permits.release()
        return item

    async def stop(self) -> None:
        if not self._ended.is_set():
            self._stopped.set()
            self._permits.release()
            canceller = threading.Thread(
                target=self._cancel_until_thread_ends,
                name=f"{self._thread.name}-cancel",
                daemon=True,
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
        except BaseException as e:  # raised again in the consumer
            error = e
        self._send(_End(error))

    def _drain(self) -> None:
        items = self._read()
        try:
            while self._permits.acquire() and not self._stopped.is_set():
                try:
                    self._send(next(items))
                except StopIteration:
                    return
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _send(self, item: T | _End) -> None:
        self._call_in_loop(lambda: self._enqueue(item))

    def _call_in_loop(self, effect: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(effect)
        except RuntimeError:  # the loop is closed: there is no consumer any more
            self._stopped.set()

    def _enqueue(self, item: T | _End) -> None:
        self._items.put_nowait(item)
        if isinstance(item, _End):
            self._ended.set()

    def _cancel_until_thread_ends(self) -> None:
        """Repeat the cancel, because one that arrives between two statements has no effect."""
        deadline = time.monotonic() + GRACE
        while self._thread.is_alive() and time.monotonic() < deadline:
            try:
                self._cancel()
            except Exception as e:  # the thread still ends, only later
                log.warning(
                    "source_cancel_failed", thread=self._thread.name, error=type(e).__name__
                )
            self._thread.join(CANCEL_PAUSE)
        self._call_in_loop(self._cancel_done.set)


async def stream(
    read: Callable[[], Iterator[T]],
    cancel: Callable[[], None],
    *,
    name: str,
    silence: float | None = None,
) -> AsyncGenerator[T]:
    """Iterate `read` in a thread. Raises `SourceUnavailable` when no item arrives for `silence`
    seconds."""
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
    """Run one blocking call in a thread."""

    def once() -> Iterator[T]:
        yield work()

    async with aclosing(stream(once, cancel, name=name, silence=within)) as items:
        [result] = [item async for item in items]
    return result
