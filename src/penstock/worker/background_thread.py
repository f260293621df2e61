"""The background thread: its own event loop and store, independent of the handlers' loop.

Heartbeats, progress, health and the shutdown handler run here. A handler that computes for a minute
without an `await` does not block them, so its worker is not taken for dead.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.kit import logging

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from contextlib import AbstractAsyncContextManager

    from penstock.jobs.contract import JobStore

log = logging.get(__name__)


class BackgroundThread:
    """Runs services until `close`; `ready` resolves, or fails, once the store is open."""

    def __init__(
        self,
        open_store: Callable[[], AbstractAsyncContextManager[JobStore]],
        services: Sequence[Callable[[JobStore], Coroutine[None, None, None]]],
    ) -> None:
        self._open_store = open_store
        self._services = services
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._asked_to_close = False
        self.ready: Future[None] = Future()
        self.ended: Future[None] = Future()
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(self._run,), name="penstock-sideline", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """From any thread; `ended` resolves when the thread has finished."""
        self._asked_to_close = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed already
                self._loop.call_soon_threadsafe(self._closing.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as e:
            if self.ready.done():
                log.exception("sideline_failed")
            else:
                self.ready.set_exception(e)
        finally:
            self.ended.set_result(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._asked_to_close:
            self._closing.set()
        async with self._open_store() as store:
            tasks = [asyncio.create_task(service(store)) for service in self._services]
            self.ready.set_result(None)
            try:
                await self._until_closed(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_closed(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for `close`, or until a service fails, which is a bug."""
        closing = asyncio.create_task(self._wait())
        waiting = {closing, *tasks}
        try:
            while waiting and not closing.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            closing.cancel()

    async def _wait(self) -> None:
        await self._closing.wait()
