"""The headers that every answer carries: a server of ours puts them around its application, outside
of everything.

An answer may say more exactly what it is (a report that draws itself has a policy of its own, a
file that may be kept has its own caching); what it does not say is said here, in the strictest way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.kit.asgi import Application, Message, Receive, Scope, Send

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Answers are data: even one that a browser takes for a page may load, run, frame and send nothing.
"""
DEFAULTS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
"""For a year. Browsers take it from answers over TLS only, so nobody gains by claiming to have come
by TLS."""
_INTERNAL = (
    b'{"error":{"code":"INTERNAL","message":"Something went wrong on our side.","details":{}}}'
)


class SecurityHeaders:
    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        defaults = headers_for("https" if is_behind_tls(scope) else "http")
        is_begun = False

        async def guarded(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            if message["type"] == "http.response.start":
                headers = message["headers"] = list(message["headers"])
                own = {name for name, _ in headers}
                headers += [pair for pair in defaults if pair[0] not in own]
            await send(message)

        try:
            return await self._app(scope, receive, guarded)
        except Exception:
            if not is_begun:  # the server would answer by itself, without these headers
                length = str(len(_INTERNAL)).encode()
                headers = [(b"content-type", b"application/json"), (b"content-length", length)]
                await guarded({"type": "http.response.start", "status": 500, "headers": headers})
                await guarded({"type": "http.response.body", "body": _INTERNAL})
            raise


def headers_for(scheme: str) -> tuple[tuple[bytes, bytes], ...]:
    return (*DEFAULTS, TRANSPORT) if scheme == "https" else DEFAULTS


def is_behind_tls(scope: Scope) -> bool:
    """Whether the caller came by TLS, to us or to the proxy before us."""
    if scope["scheme"] == "https":
        return True
    return any(
        name == b"x-forwarded-proto" and value.lower() == b"https"
        for name, value in scope["headers"]
    )
