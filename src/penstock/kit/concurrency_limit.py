"""Slots for what costs memory or disk: so many at once in this process, and so many of
them for one user."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kit.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PATIENCE = 20.0


@dataclass(slots=True, kw_only=True)
class _User:
    room: asyncio.Semaphore
    present: int = 0


class ConcurrencyLimit:
    """A slot is waited for with limited patience, if it is limited. Who waits for one of their own
    takes none of the others'."""

    def __init__(
        self,
        *,
        total: int,
        per_user: int,
        patience: float | None = PATIENCE,
        subject: str = "questions to data sources",
    ) -> None:
        self._room = asyncio.Semaphore(total)
        self._per_user = per_user
        self._patience = patience
        self._subject = subject
        self._users: dict[str, _User] = {}

    @asynccontextmanager
    async def slot(self, username: str) -> AsyncIterator[None]:
        user = self._users.setdefault(username, _User(room=asyncio.Semaphore(self._per_user)))
        user.present += 1
        try:
            own = f"{username} has {self._per_user} {self._subject} under way, which is the most."
            await self._wait(user.room, own)
            try:
                await self._wait(self._room, f"Too many {self._subject} are under way.")
                try:
                    yield
                finally:
                    self._room.release()
            finally:
                user.room.release()
        finally:
            user.present -= 1
            if not user.present:
                del self._users[username]

    async def _wait(self, room: asyncio.Semaphore, why: str) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await room.acquire()
        except TimeoutError:
            raise RateLimited(why, hint="Try again in a moment.", retry_after_seconds=5) from None
