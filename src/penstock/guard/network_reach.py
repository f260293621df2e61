"""The network policy of data sources: the public internet and, if allowed, private networks and
this machine.

Link-local addresses are always blocked: they serve the cloud's metadata and credentials, never a
database.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from penstock.guard.errors import UrlRefused
from penstock.guard.url import resolve_public
from penstock.kit.errors import Unavailable
from penstock.kit.outbound import OutboundPolicy, resolve

if TYPE_CHECKING:
    from penstock.kit.outbound import Resolver

_HINT = (
    "An operator can allow private sources (PENSTOCK_ALLOW_PRIVATE_SOURCES), or one network or name"
    " (PENSTOCK_OUTBOUND_ALLOW)."
)


class Reach:
    """Checks the URL of a source. It blocks on DNS; raises `UrlRefused`, or `Unavailable` if DNS
    fails."""

    def __init__(
        self, *, private: bool = False, allow: tuple[str, ...] = (), resolver: Resolver = resolve
    ) -> None:
        self._private = private
        self._policy = OutboundPolicy(private=private, allow=allow)
        self._resolver = resolver

    def __call__(self, url: str) -> None:
        if url.startswith(("file:", "unix:")):
            if not self._private:
                raise UrlRefused("It leads to files or sockets on the server itself.", hint=_HINT)
            return
        try:
            resolve_public(url, policy=self._policy, ports=None, resolver=self._resolve)
        except UrlRefused as e:
            raise UrlRefused(e.message, hint=e.hint if self._private else _HINT) from None

    def _resolve(self, host: str, port: int) -> list[str]:
        try:
            return list(self._resolver(host, port))
        except socket.gaierror as e:
            if e.errno == socket.EAI_AGAIN:
                raise Unavailable(
                    f"{host} cannot be resolved now: the DNS server is unreachable."
                ) from None
            raise
