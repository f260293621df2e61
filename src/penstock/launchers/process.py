"""A handle on a process that is not our child, safe against reuse of its pid.

The pidfd is opened first, then the start time is compared. So a match refers to the process of the
pidfd, and a process that got the same pid later is never signaled.
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
        """Wait until the process ends; False after `within` seconds."""
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
def open_process(pid: int, start: int) -> Iterator[Process | None]:
    """The process that started at `start`; None if it has ended, even if its pid is in use."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield Process(descriptor) if supervisor.start_time(pid) == start else None
    finally:
        os.close(descriptor)
