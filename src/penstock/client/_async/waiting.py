"""Waits for a resource to reach a final state, with a progress bar."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import anyio

from penstock.client.errors import TimedOut
from penstock.client.progress_bar import bar
from penstock.client.work import Change

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0


class Settling(Protocol):
    @property
    def status(self) -> str: ...

    async def refresh(self) -> object: ...

    async def how_far(self) -> tuple[float, str]:
        """Percent, and the step that it is at."""
        ...


async def until_settled(
    what: Settling, title: str, unsettled: Collection[str], *, timeout: float | None, show: bool
) -> None:
    """Ask until its status is none of `unsettled`; the pauses grow, so that a quick end is seen
    quickly."""
    until = None if timeout is None else time.monotonic() + timeout
    pause = FIRST_PAUSE
    with bar(title, show=show) as draw:
        while what.status in unsettled:
            if until is not None and time.monotonic() >= until:
                raise TimedOut(
                    f"{title} is still {what.status} after {timeout:g} s.",
                    code="WAIT_TIMEOUT",
                    status=408,
                )
            await anyio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            await what.refresh()
            if show:
                draw(*await what.how_far())
        draw(100.0, what.status)


async def changes(what: Settling, unsettled: Collection[str]) -> AsyncIterator[Change]:
    """Yield the current state and every change, until a final state."""
    last, pause = None, FIRST_PAUSE
    while True:
        percent, step = await what.how_far()
        now = Change(status=what.status, percent=percent, step=step)
        if now != last:
            last, pause = now, FIRST_PAUSE
            yield now
        if what.status not in unsettled:
            return
        await anyio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
        await what.refresh()
