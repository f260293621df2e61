"""Kubernetes service-account tokens, verified with the API server's TokenReview.

A token for another audience (the API server's own, for example) is refused, so a pod cannot reuse a
token that was issued for another purpose. Accepted tokens are cached for a few seconds; refusals
are not.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.accounts.service import Component, ServiceCaller
from penstock.kit import clock, logging
from penstock.kit.errors import PenstockError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

log = logging.get(__name__)
REMEMBERED_SECONDS = 10.0
MAX_REMEMBERED = 10_000
MAX_TOKEN = 16 * 1024
ANSWER_SECONDS = 5.0
_POD = "authentication.kubernetes.io/pod-name"
_INSTANCE_POD = re.compile(r"graph-instance-([1-9][0-9]{0,15})(?:-.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings:
    audience: str
    workers: frozenset[str]
    """Service accounts, each as namespace/name."""
    wrappers: frozenset[str]


class TokenReview:
    """`review` asks the API server about a token for the audience; it gives the review's status."""

    def __init__(
        self,
        review: Callable[[str], Awaitable[Mapping[str, Any]]],
        settings: ReviewSettings,
        *,
        time: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._ask = review
        self._settings = settings
        self._time = time
        self._accepted: OrderedDict[bytes, tuple[float, ServiceCaller]] = OrderedDict()

    async def who(self, token: str) -> ServiceCaller | None:
        if token.count(".") != 2 or len(token) > MAX_TOKEN:
            return None
        name = hashlib.sha256(token.encode()).digest()
        until, caller = self._accepted.get(name, (float("-inf"), None))
        if caller is not None and self._time.monotonic() < until:
            return caller
        self._accepted.pop(name, None)
        caller = self._caller(await self._review(token))
        if caller is not None:
            self._remember(name, caller)
        return caller

    async def _review(self, token: str) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._ask(token)
        except (PenstockError, TimeoutError) as e:
            log.warning("token_review_failed", error=type(e).__name__, message=str(e))
            raise Unavailable("The Kubernetes API server could not review this token.") from None

    def _caller(self, status: Mapping[str, Any]) -> ServiceCaller | None:
        if status.get("authenticated") is not True or self._settings.audience not in (
            status.get("audiences") or ()
        ):
            return None
        user = status.get("user") or {}
        component = self._component(str(user.get("username", "")))
        if component != "wrapper":
            return None if component is None else ServiceCaller(component=component)
        pods = (user.get("extra") or {}).get(_POD) or [""]
        match = _INSTANCE_POD.fullmatch(str(pods[0]))
        return (
            None if match is None else ServiceCaller(component="wrapper", instance_id=int(match[1]))
        )

    def _component(self, username: str) -> Component | None:
        match username.split(":"):
            case ["system", "serviceaccount", namespace, name]:
                account = f"{namespace}/{name}"
            case _:
                return None
        if account in self._settings.workers:
            return "worker"
        return "wrapper" if account in self._settings.wrappers else None

    def _remember(self, name: bytes, caller: ServiceCaller) -> None:
        self._accepted[name] = (self._time.monotonic() + REMEMBERED_SECONDS, caller)
        while len(self._accepted) > MAX_REMEMBERED:
            self._accepted.popitem(last=False)
