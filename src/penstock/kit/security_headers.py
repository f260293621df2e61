"""The headers that every answer carries: a server of ours puts them around its application, outside of everything.

An answer may say more exactly what it is (a report that draws itself has a policy of its own, a file that may be kept
has its own caching); what it does not say is said here, in the strictest way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.kit.asgi import Application, Message, Receive, Scope, Send

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Answers are data: even one that a browser takes for a page may load, run, frame and send nothing."""
DEFAULTS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
"""For a year. Browsers take it from answers over TLS only, so nobody gains by claiming to have come by TLS."""


class SecurityHeaders:
    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        defaults = (*DEFAULTS, TRANSPORT) if is_behind_tls(scope) else DEFAULTS

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"] = list(message["headers"])
                own = {name for name, _ in headers}
                headers += [pair for pair in defaults if pair[0] not in own]
            await send(message)

        return await self._app(scope, receive, guarded)


def is_behind_tls(scope: Scope) -> bool:
    """Whether the caller came by TLS, to us or to the proxy before us."""
    if scope["scheme"] == "https":
        return True
    return any(name == b"x-forwarded-proto" and value.lower() == b"https" for name, value in scope["headers"])
