"""Kubernetes service-account tokens, verified with the API server's TokenReview.

A token for another audience (the API server's own, for example) is refused, so a pod cannot reuse a
token that was issued for another purpose. Accepted tokens are cached for a few seconds; refusals
are not.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from penstock.accounts.service import Component, ServiceCaller
from penstock.kit import clock, logging
from penstock.kit.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    def __init__(
        self,
        http: httpx2.AsyncClient,
        settings: ReviewSettings,
        *,
        own_token: Callable[[], str],
        time: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._http = http
        self._settings = settings
        self._own_token = own_token
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

    async def _review(self, token: str) -> dict[str, Any]:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._settings.audience]},
        }
        headers = {"Authorization": f"Bearer {self._own_token()}"}
        try:
            answer = await self._http.post(
                "/apis/authentication.k8s.io/v1/tokenreviews",
                json=body,
                headers=headers,
                timeout=ANSWER_SECONDS,
            )
            answer.raise_for_status()
            status: dict[str, Any] = answer.json().get("status") or {}
        except (httpx2.HTTPError, ValueError, AttributeError) as e:
            log.warning("token_review_failed", error=type(e).__name__)
            raise Unavailable("The Kubernetes API server could not review this token.") from None
        return status

    def _caller(self, status: dict[str, Any]) -> ServiceCaller | None:
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


def token_in(file: Path) -> Callable[[], str]:
    """Read on every call: Kubernetes replaces the token before it expires."""
    return lambda: file.read_text().strip()
