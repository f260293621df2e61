"""Where a Spark is, and how it is spoken to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

HIVE = {
    "hive2": (False, False),
    "hive2+tls": (False, True),
    "hive2+http": (True, False),
    "hive2+https": (True, True),
}
CONNECT = {"sc": False, "sc+tls": True}
SCHEMES = (*HIVE, *CONNECT)
PORTS = {
    "hive2": 10_000,
    "hive2+tls": 10_000,
    "hive2+http": 10_001,
    "hive2+https": 10_001,
    "sc": 15_002,
    "sc+tls": 443,
}
PATIENCE = 300.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    scheme: str
    host: str
    port: int
    path: str
    user: str
    secret: str = field(repr=False)
    token: str = field(repr=False)
    catalog: str
    patience: float

    @property
    def connect(self) -> bool:
        return self.scheme in CONNECT

    @property
    def http(self) -> bool:
        """HiveServer2's transport of that name."""
        return not self.connect and HIVE[self.scheme][0]

    @property
    def tls(self) -> bool:
        return CONNECT[self.scheme] if self.connect else HIVE[self.scheme][1]

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def read_address(told: Mapping[str, str]) -> Address:
    """Of an engine's configuration; a secret goes through a plain wire only where that was asked
    for."""
    url = urlsplit(told["url"])
    if url.scheme not in SCHEMES or not url.hostname:
        raise InvalidInput(
            f"{told['url'][:200]!r} is not the address of a Spark.",
            hint=f"Begin it with {', '.join(SCHEMES)}.",
        )
    if url.username or url.password or url.query:
        raise InvalidInput(
            "The url of a Spark is a host, a port and a path.", hint="Set user, password or token."
        )
    address = Address(
        scheme=url.scheme,
        host=url.hostname,
        port=url.port or PORTS[url.scheme],
        path=url.path.strip("/") or "cliservice",
        user=told.get("user", "penstock"),
        secret=told.get("password", ""),
        token=told.get("token", ""),
        catalog=told["catalog"],
        patience=float(told.get("client_timeout") or PATIENCE),
    )
    bare = (address.secret or address.token) and not address.tls and address.host not in _LOOPBACK
    if bare and str(told.get("allow_plain", "false")).lower() != "true":
        raise InvalidInput(
            f"{address} would send a secret in the clear.", hint="Use TLS, or set allow_plain."
        )
    return address
