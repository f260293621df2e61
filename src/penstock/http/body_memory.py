"""Limits on request bodies: each up to its route's limit, and all incomplete ones together up to a
memory limit of the process.

Small bodies are never refused because of others: the first `SMALL_BYTES` of each are bounded by the
number of connections. Bytes beyond them count against the shared limit until the body is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from penstock.kit.errors import PayloadTooLarge, Unavailable

if TYPE_CHECKING:
    from starlette.types import Message, Receive

SMALL_BYTES = 64 * 1024
BODY_MEMORY_BYTES = 128 * 1024 * 1024


class BodyMemory:
    """The memory that incomplete bodies of one process may use together."""

    def __init__(self, limit: int = BODY_MEMORY_BYTES) -> None:
        self._limit = limit
        self.used = 0

    def take(self, size: int) -> bool:
        if self.used + size > self._limit:
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        self.used -= size


class CountedBody:
    """Wraps `receive` of one request and counts its bytes.

    It raises HTTPException, which the framework lets through while it reads a body.
    """

    def __init__(self, receive: Receive, limit: int, memory: BodyMemory | None) -> None:
        self._receive = receive
        self._limit = limit
        self._memory = memory
        self._size = 0
        self._taken = 0

    def announced(self, content_length: str) -> None:
        """Refuse a body whose Content-Length is too large before it is read."""
        if content_length.isdigit() and int(content_length) > self._limit:
            raise PayloadTooLarge(_too_large(self._limit), limit=self._limit)

    async def receive(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise HTTPException(PayloadTooLarge.status, _too_large(self._limit))
        if message.get("more_body", False):
            self._hold()
        else:
            self.release()
        return message

    def release(self) -> None:
        if self._memory is not None:
            self._memory.give_back(self._taken)
        self._taken = 0

    def _hold(self) -> None:
        more = self._size - SMALL_BYTES - self._taken
        if more <= 0 or self._memory is None:
            return
        if not self._memory.take(more):
            message = "Too many large request bodies are in progress; try again later."
            raise HTTPException(Unavailable.status, message)
        self._taken += more


def _too_large(limit: int) -> str:
    return f"The body is too large; the limit is {limit:,} bytes."
