"""Logs and counts refused requests: failed logins (401), denials (403) and rate limits (429).

Every refusal is counted. Log events are limited to ten a second per address, in bursts of a
hundred, so that no caller can fill a disk; the next event has the number left out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client import Counter

from penstock.api.callers.client_address import client_address
from penstock.kit import logging
from penstock.kit.token_bucket import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.api.callers.identity import Identity

log = logging.get(__name__)
EVENTS = {401: "login_failed", 403: "access_denied", 429: "rate_limited"}
EVENTS_PER_SECOND = 10
EVENTS_AT_ONCE = 100
_LONGEST_PATH = 200


class Refusals:
    """Counts and logs refused requests."""

    def __init__(
        self, registry: CollectorRegistry, *, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._events = TokenBuckets(rate=EVENTS_PER_SECOND, burst=EVENTS_AT_ONCE, ticks=ticks)
        self._left_out = 0
        self._failed_logins = Counter(
            "penstock_failed_logins",
            "Requests answered 401, by credential: bearer, session, header or none.",
            ["scheme"],
            registry=registry,
        )
        self._denials = Counter(
            "penstock_denials",
            "Requests answered 403, by the role of the caller.",
            ["role"],
            registry=registry,
        )

    def note(self, scope: Scope, status: int) -> None:
        identity: Identity | None = scope["state"].get("identity")
        scheme = _scheme(scope)
        if status == 401:
            self._failed_logins.labels(scheme).inc()
        elif status == 403:
            self._denials.labels("none" if identity is None else identity.role.word).inc()
        address = str(client_address(scope, scope["app"].state.services.proxies))
        if self._events.take(address):
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        caller = {} if identity is None else {"user": identity.username, "via": identity.via}
        log.warning(
            EVENTS[status],
            address=address,
            method=scope["method"],
            path=scope["path"][:_LONGEST_PATH],
            scheme=scheme,
            left_out=left_out,
            **caller,
        )


class AccessLog:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in EVENTS:
                refusals: Refusals = scope["app"].state.refusals
                refusals.note(scope, message["status"])
            await send(message)

        return await self._app(scope, receive, noted)


def _scheme(scope: Scope) -> str:
    names = {name for name, _ in scope["headers"]}
    if b"authorization" in names:
        return "bearer"
    if b"x-username" in names:
        return "header"
    return "session" if b"cookie" in names else "none"
