"""Where a data source may lead: the public internet, and with leave to private networks and this machine.

Even then link-local addresses stay shut: what answers there is the cloud's keeper of credentials, never a database.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from penstock.guard.errors import UrlRefused
from penstock.guard.url import resolve, resolve_public
from penstock.kit.errors import Unavailable

if TYPE_CHECKING:
    from penstock.guard.url import Resolver

PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
_HINT = "An operator can allow private sources: PENSTOCK_ALLOW_PRIVATE_SOURCES."


class Reach:
    """Blocking, for it asks the resolver; raises `UrlRefused`, or `Unavailable` while there is no resolver."""

    def __init__(self, *, private: bool, resolver: Resolver = resolve) -> None:
        self._private = private
        self._resolver = resolver

    def __call__(self, url: str) -> None:
        if url.startswith(("file:", "unix:")):
            if not self._private:
                raise UrlRefused("It leads to files or sockets of the server itself.", hint=_HINT)
            return
        try:
            resolve_public(url, allow=PRIVATE if self._private else (), ports=None, resolver=self._resolve)
        except UrlRefused as e:
            raise UrlRefused(e.message, hint=e.hint if self._private else _HINT) from None

    def _resolve(self, host: str, port: int) -> list[str]:
        try:
            return list(self._resolver(host, port))
        except socket.gaierror as e:
            if e.errno == socket.EAI_AGAIN:
                raise Unavailable(f"{host} cannot be looked up now: the name service does not answer.") from None
            raise
