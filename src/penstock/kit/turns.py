"""Turns at something that costs memory: so many at once in this process, and so many of them for one user."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.kit.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE = 20.0


class Turns:
    """A user with all of theirs taken is refused at once; otherwise a turn is waited for, with limited patience."""

    def __init__(self, *, total: int, per_user: int, patience: float = PATIENCE) -> None:
        self._room = asyncio.Semaphore(total)
        self._per_user = per_user
        self._patience = patience
        self._taken: Counter[str] = Counter()

    @asynccontextmanager
    async def taken(self, username: str) -> AsyncIterator[None]:
        if self._taken[username] >= self._per_user:
            raise RateLimited(
                f"{username} has {self._per_user} questions to data sources under way, which is the most.",
                hint="Wait until one has ended.",
                retry_after_seconds=1,
            )
        self._taken[username] += 1
        try:
            await self._wait()
            try:
                yield
            finally:
                self._room.release()
        finally:
            self._taken[username] -= 1
            if not self._taken[username]:
                del self._taken[username]

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._room.acquire()
        except TimeoutError:
            raise RateLimited(
                "Too many questions to data sources are under way.",
                hint="Try again in a moment.",
                retry_after_seconds=5,
            ) from None
