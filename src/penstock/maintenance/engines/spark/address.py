"""The address of a Spark server: protocol, host, credentials and catalog."""

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
CLIENT_TIMEOUT = 300.0
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
    client_timeout: float

    @property
    def connect(self) -> bool:
        return self.scheme in CONNECT

    @property
    def http(self) -> bool:
        """Whether HiveServer2's HTTP transport is used."""
        return not self.connect and HIVE[self.scheme][0]

    @property
    def tls(self) -> bool:
        return CONNECT[self.scheme] if self.connect else HIVE[self.scheme][1]

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def read_address(config: Mapping[str, str]) -> Address:
    """Parse an engine's configuration. Credentials over an unencrypted connection need
    `allow_plain`."""
    url = urlsplit(config["url"])
    if url.scheme not in SCHEMES or not url.hostname:
        raise InvalidInput(
            f"{config['url'][:200]!r} is not the address of a Spark server.",
            hint=f"Begin it with {', '.join(SCHEMES)}.",
        )
    if url.username or url.password or url.query:
        raise InvalidInput(
            "The url of a Spark server is only a host, a port and a path.",
            hint="Set user, password or token as settings of the engine.",
        )
    address = Address(
        scheme=url.scheme,
        host=url.hostname,
        port=url.port or PORTS[url.scheme],
        path=url.path.strip("/") or "cliservice",
        user=config.get("user", "penstock"),
        secret=config.get("password", ""),
        token=config.get("token", ""),
        catalog=config["catalog"],
        client_timeout=float(config.get("client_timeout") or CLIENT_TIMEOUT),
    )
    bare = (address.secret or address.token) and not address.tls and address.host not in _LOOPBACK
    if bare and str(config.get("allow_plain", "false")).lower() != "true":
        raise InvalidInput(
            f"{address} would send credentials in the clear.", hint="Use TLS, or set allow_plain."
        )
    return address
