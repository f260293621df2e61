"""The interface between a server and an application, and requests that are looked at before the
framework gets them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


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


def is_plain_json(headers: Mapping[str, str], *, most_bytes: int) -> bool:
    """Whether a request says that its body is JSON, and how long it is."""
    length = headers.get("content-length", "")
    is_json = headers.get("content-type") == "application/json"
    return is_json and length.isdigit() and int(length) <= most_bytes
