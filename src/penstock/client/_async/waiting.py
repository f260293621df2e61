"""Work that settles: wait for it with a progress bar, or follow its changes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import anyio

from penstock.client._async.resource import AsyncResource
from penstock.client.errors import Failed, TimedOut
from penstock.client.json_value import json_object
from penstock.client.progress_bar import bar
from penstock.client.work import Change

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from penstock.client.json_value import JsonObject

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0


class AsyncWork(AsyncResource, ABC):
    """Something whose status changes until it is none of `_OPEN`; in the end it is `_GOOD`."""

    _OPEN: ClassVar[tuple[str, ...]]
    _GOOD: ClassVar[str]

    @property
    @abstractmethod
    def status(self) -> str: ...

    @abstractmethod
    async def refresh(self) -> Self:
        """Fetch it again."""

    @abstractmethod
    async def how_far(self) -> tuple[float, str]:
        """Percent, and the step that it is at."""

    @abstractmethod
    def _title(self) -> str: ...

    @abstractmethod
    def _failure(self) -> Failed:
        """Why it did not end well."""

    async def events(self) -> AsyncIterator[Change]:
        """Where it is, at every change until it is settled."""
        last, pause = None, FIRST_PAUSE
        while True:
            percent, step = await self.how_far()
            now = Change(status=self.status, percent=percent, step=step)
            if now != last:
                last, pause = now, FIRST_PAUSE
                yield now
            if self.status not in self._OPEN:
                return
            await anyio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            await self.refresh()

    async def wait(self, timeout: float | None = None, *, progress: bool = True) -> Self:
        """Until it is settled; Failed, with the cause, when it did not end well.

        The pauses between requests grow, so that a quick end is seen quickly.
        """
        until = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE
        with bar(self._title(), show=progress) as draw:
            while self.status in self._OPEN:
                if until is not None and time.monotonic() >= until:
                    raise TimedOut(
                        f"{self._title()} is still {self.status} after {timeout:g} s.",
                        code="WAIT_TIMEOUT",
                        status=408,
                    )
                await anyio.sleep(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE)
                await self.refresh()
                if progress:
                    draw(*await self.how_far())
            draw(100.0, self.status)
        if self.status != self._GOOD:
            raise self._failure()
        return self


def percent_and_step(progress: object, step_name: str, otherwise: str) -> tuple[float, str]:
    """From the progress that a resource tells of itself, if it tells any."""
    fields = json_object(progress)
    percent = fields.get("percent")
    return (
        float(percent) if isinstance(percent, int | float) else 0.0,
        str(fields.get(step_name) or otherwise),
    )


def failed(what: str, reason: object, *, code: str, details: JsonObject | None = None) -> Failed:
    """`what` ended otherwise than well."""
    message = f"{what}: {reason or 'no reason was given'}"
    return Failed(message, code=code, status=200, details=details)
