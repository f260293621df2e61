"""A queue for each caller: so many of their requests are worked on at once, and the rest wait.

Requests are answered by one event loop, in the order in which they came. Without this, whoever
sends fifty at once has everybody else wait behind them. A caller is whoever shows a credential, or
an address that shows none. A request counts until its answer begins, so streams and downloads hold
nobody up. Workers and graph servers wait in long polls and are not counted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.api.callers.client_address import client_address
from penstock.api.callers.rate_limits import INTERNAL_API, REFUSAL_SECONDS
from penstock.api.errors import reply
from penstock.kit.errors import RateLimited

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.api.services import Services

AT_ONCE = 8
MOST_WAITING = 256


@dataclass(slots=True)
class _Caller:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    requests: int = 0


class CallerQueues:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._callers: dict[bytes, _Caller] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(INTERNAL_API):
            return await self._app(scope, receive, send)
        key = _caller(scope)
        caller = self._callers.setdefault(key, _Caller())
        if caller.requests >= AT_ONCE + MOST_WAITING:
            return await _refuse(scope, receive, send)
        caller.requests += 1
        try:
            await self._in_turn(caller, scope, receive, send)
        finally:
            caller.requests -= 1
            if not caller.requests:
                del self._callers[key]

    async def _in_turn(self, caller: _Caller, scope: Scope, receive: Receive, send: Send) -> None:
        await caller.turns.acquire()
        is_held = True

        def release() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                caller.turns.release()

        async def begun(message: Message) -> None:
            release()
            await send(message)

        try:
            await self._app(scope, receive, begun)
        finally:
            release()


def _caller(scope: Scope) -> bytes:
    sent: dict[bytes, bytes] = dict(scope["headers"])
    # Without the scheme, which is taken in upper and lower case.
    token = sent.get(b"authorization", b"").partition(b" ")[2].strip()
    if token:
        return b"token " + token
    for name in (b"x-username", b"cookie"):
        if name in sent:
            return name + b" " + sent[name]
    services: Services = scope["app"].state.services
    return str(client_address(scope, services.proxies)).encode()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(REFUSAL_SECONDS)
    error = RateLimited(
        f"You have {MOST_WAITING} requests waiting already.",
        hint="Wait for answers before you send more.",
        limit="waiting",
        retry_after_seconds=1,
    )
    await reply(error, scope["state"]["request_id"])(scope, receive, send)
