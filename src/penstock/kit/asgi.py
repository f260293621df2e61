"""A request that somebody began to read, and that another reads from its beginning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Replayed:
    """`receive` is for the first reader, who takes one message at most before giving up; `again`
    for the second."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: Message | None = None
        self._is_begun = False

    async def receive(self) -> Message:
        message = await self._receive()
        if not self._is_begun:
            self._is_begun, self._first = True, message
        return message

    async def again(self) -> Message:
        message, self._first = self._first, None
        return await self._receive() if message is None else message
