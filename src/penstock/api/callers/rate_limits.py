"""Rate limits on requests per user and per address, and on failed logins per address.

Token buckets are in memory, per process: N processes on a port allow N times the rate. The internal
API has no request limit; wrong service tokens count as failed logins.

A refusal waits for a second before it is sent: whoever floods gets no more answers than they
have connections, and nobody else waits behind them.

After too many failed logins an address is not blocked entirely, because other users may share it:
credentials verified in the last hour still work, and others are refused without a check.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_network
from typing import TYPE_CHECKING

from prometheus_client import Counter

from penstock.api.callers.client_address import client_address
from penstock.api.callers.identity import OPERATOR_TOKEN
from penstock.api.errors import reply
from penstock.kit.errors import RateLimited
from penstock.kit.token_bucket import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from prometheus_client import CollectorRegistry
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from penstock.api.callers.client_address import Address
    from penstock.api.callers.identity import Identity
    from penstock.api.services import Services
    from penstock.api.settings import RateSettings

BURST_SECONDS = 2
REFUSAL_SECONDS = 1.0
VERIFIED_SECONDS = 3600.0
MOST_VERIFIED = 20_000
INTERNAL_API = "/api/internal/"
IPV6_NETWORK = 64
"""A /64 is the usual allocation of one customer."""


class RateLimits:
    def __init__(
        self,
        settings: RateSettings,
        registry: CollectorRegistry,
        *,
        ticks: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pause = pause
        self._users = _requests(settings.user_requests_per_second, ticks)
        self._addresses = _requests(settings.address_requests_per_second, ticks)
        self._failures = _failures(settings.failed_logins_per_minute, ticks)
        self._verified = VerifiedCredentials(ticks)
        self._refused = Counter(
            "penstock_rate_limited_requests",
            "Requests refused with 429, by the limit: user, address or login.",
            ["limit"],
            registry=registry,
        )

    async def check_user(self, identity: Identity) -> None:
        if self._users is None or identity.via == OPERATOR_TOKEN:
            return
        if wait := self._users.take(identity.username):
            await self._pause(REFUSAL_SECONDS)
            raise self._limited("user", f"{identity.username} sends too many requests", wait)

    async def check_address(self, address: Address | None) -> None:
        """Loopback is exempt: local programs, and a local proxy, share that address."""
        if self._addresses is None or address is None or address.is_loopback:
            return
        if wait := self._addresses.take(_network(address)):
            await self._pause(REFUSAL_SECONDS)
            raise self._limited("address", f"Too many requests from {address}", wait)

    def check_login(self, address: Address | None, credential: str) -> None:
        """Call this before a credential is verified."""
        if self._failures is None:
            return
        wait = self._failures.wait(_network(address))
        if wait and credential not in self._verified:
            raise self._limited("login", "Too many failed logins from this address", wait)

    def login_failed(self, address: Address | None) -> None:
        if self._failures is not None:
            self._failures.take(_network(address))

    def login_succeeded(self, credential: str) -> None:
        if self._failures is not None:
            self._verified.add(credential)

    def _limited(self, limit: str, problem: str, wait: float) -> RateLimited:
        self._refused.labels(limit).inc()
        seconds = max(1, math.ceil(wait))
        return RateLimited(
            f"{problem}.",
            hint=f"Try again in {seconds} s; an operator sets the limits: user_requests_per_second,"
            " address_requests_per_second, failed_logins_per_minute.",
            limit=limit,
            retry_after_seconds=seconds,
        )


class VerifiedCredentials:
    """Digests of recently verified credentials, keyed with a key of this process."""

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._key = secrets.token_bytes(32)
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def add(self, credential: str) -> None:
        digest = self._digest(credential)
        self._until[digest] = self._ticks() + VERIFIED_SECONDS
        self._until.move_to_end(digest)
        if len(self._until) > MOST_VERIFIED:
            self._until.popitem(last=False)

    def __contains__(self, credential: str) -> bool:
        return self._until.get(self._digest(credential), float("-inf")) > self._ticks()

    def _digest(self, credential: str) -> bytes:
        return hashlib.blake2b(credential.encode(), key=self._key, digest_size=16).digest()


class AddressLimit:
    """Middleware that applies the address limit before a request's body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(INTERNAL_API):
            services: Services = scope["app"].state.services
            try:
                if services.limits is not None:
                    await services.limits.check_address(client_address(scope, services.proxies))
            except RateLimited as e:
                answer = reply(e, scope["state"]["request_id"])
                return await answer(scope, receive, send)
        return await self._app(scope, receive, send)


class LoginAttempt:
    """Reports the outcome of verifying one credential to the rate limits."""

    def __init__(self, request: Request, services: Services, credential: str) -> None:
        self._limits = services.limits
        self._address = client_address(request.scope, services.proxies)
        self._credential = credential
        if self._limits is not None:
            self._limits.check_login(self._address, credential)

    def failed(self) -> None:
        if self._limits is not None:
            self._limits.login_failed(self._address)

    def succeeded(self) -> None:
        if self._limits is not None:
            self._limits.login_succeeded(self._credential)


def _requests(rate: float, ticks: Callable[[], float]) -> TokenBuckets | None:
    if not rate:
        return None
    return TokenBuckets(rate=rate, burst=max(1, rate * BURST_SECONDS), ticks=ticks)


def _failures(per_minute: int, ticks: Callable[[], float]) -> TokenBuckets | None:
    return TokenBuckets(rate=per_minute / 60, burst=per_minute, ticks=ticks) if per_minute else None


def _network(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_NETWORK), strict=False))
    return str(address)
