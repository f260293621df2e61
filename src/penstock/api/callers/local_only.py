"""Middleware that accepts only requests from this machine, not through a proxy or another hostname.

A proxy makes remote requests look local, and DNS rebinding lets a web page reach this machine under
its own hostname.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request

from penstock.api.callers.client_address import peer_address
from penstock.api.errors import reply
from penstock.kit.config import is_loopback
from penstock.kit.errors import PermissionDenied

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PROXY_HEADERS = frozenset(
    {
        "client-ip",
        "forwarded",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-envoy-external-address",
        "x-host",
        "x-original-forwarded-for",
        "x-original-host",
        "x-original-uri",
        "x-original-url",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-rewrite-url",
    }
)
PROXY_PREFIXES = (
    "cf-",
    "fastly-",
    "x-amzn-",
    "x-azure-",
    "x-forwarded",
    "x-goog-iap-",
    "x-penstock-proxy-",
)
_HINT = (
    "Name the proxy with PENSTOCK_TRUSTED_PROXIES or PENSTOCK_TRUSTED_PROXY_SECRET and set"
    " PENSTOCK_TRUSTED_HEADERS=true, or set PENSTOCK_LOCAL_ONLY=false and have callers send tokens."
)


class LocalOnly:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["app"].state.services.local_only:
            error = _refusal(Request(scope))
            if error is not None:
                answer = reply(error, scope["state"]["request_id"])
                return await answer(scope, receive, send)
        return await self._app(scope, receive, send)


def _is_own_name(hosts: list[str]) -> bool:
    try:
        return len(hosts) == 1 and is_loopback(urlsplit(f"//{hosts[0]}").hostname or "")
    except ValueError:
        return False


def _refusal(request: Request) -> PermissionDenied | None:
    for name in request.headers:
        plain = name.replace("_", "-")
        if plain in PROXY_HEADERS or plain.startswith(PROXY_PREFIXES):
            return PermissionDenied(
                "This control plane accepts requests from its own machine only, and the header"
                f" {plain[:80]} shows that this one came through a proxy.",
                hint=_HINT,
            )
    address = peer_address(request.scope)
    if address is not None and not address.is_loopback:
        return PermissionDenied(
            "This control plane accepts requests from its own machine only.", hint=_HINT
        )
    if not _is_own_name(request.headers.getlist("host")):
        return PermissionDenied(
            "This control plane accepts only localhost and 127.0.0.1 as the Host.",
            hint=_HINT,
        )
    return None
