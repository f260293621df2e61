"""A process that is not our child, held so that nobody else's can be mistaken for it.

The pidfd is opened first and the moment of the process's birth compared after, so what passes the
comparison is what the pidfd holds, and a pid that went to somebody else meanwhile is never
signalled.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from penstock.launchers import supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator


class Process:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    async def over(self, within: float | None = None) -> bool:
        """Whether it ended in time."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._descriptor, ended.set)
        try:
            await asyncio.wait_for(ended.wait(), within)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._descriptor)
        return True


@contextmanager
def held(pid: int, start: int) -> Iterator[Process | None]:
    """The process that began at `start`; None when it is gone, whoever has its pid now."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield Process(descriptor) if supervisor.start_time(pid) == start else None
    finally:
        os.close(descriptor)
