from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from penstock.kit.errors import InvalidInput
from penstock.sources.config import secret
from penstock.sources.errors import SourceUnavailable

if TYPE_CHECKING:
    from penstock.kit.outbound import Outbound

_NAME_BYTES = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    database: str
    user: str
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 5432
    password: str = secret("")
    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    sslrootcert: str | None = None
    connect_seconds: Annotated[int, Field(ge=1, le=300)] = 10
    silence_seconds: Annotated[float, Field(gt=0)] = 900.0
    """A query without a batch for this long is cancelled; also the time limit for the first
    batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """libpq's `host`, and the `hostaddr` that it connects to without resolving again; the host is
    still the name in the server's certificate."""

    host: str
    hostaddr: str = ""


def pinned_servers(config: Config, outbound: Outbound) -> Servers:
    """The hosts (libpq allows a comma-separated list) with their allowed addresses. Blocking."""
    hosts = [host.strip() for host in config.host.split(",")]
    local = [host for host in hosts if not host or host[0] in "/@"]
    if local:
        for host in local:
            outbound.check_local(host or "The default host")
        if len(local) < len(hosts):
            raise InvalidInput("postgres: host mixes sockets and network hosts.")
        return Servers(host=config.host)
    try:
        pairs = [
            (host, str(address))
            for host in hosts
            for address in outbound.addresses(host, config.port)
        ]
    except OSError:
        raise SourceUnavailable(f"Cannot resolve the host {config.host[:200]}.") from None
    return Servers(
        host=",".join(host for host, _ in pairs), hostaddr=",".join(address for _, address in pairs)
    )


def conninfo(config: Config, servers: Servers, *, trace: str = "") -> str:
    """A keyword/value connection string: libpq's errors repeat an invalid URL with its password."""
    parameters = {
        "application_name": f"penstock {trace}".strip()
        .encode()[:_NAME_BYTES]
        .decode(errors="ignore"),
        "client_encoding": "UTF8",
        "connect_timeout": config.connect_seconds,
        "dbname": config.database,
        "host": servers.host,
        "hostaddr": servers.hostaddr,
        "keepalives_count": 3,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "password": config.password,
        "port": config.port,
        "sslmode": config.sslmode,
        "sslrootcert": config.sslrootcert,
        "tcp_user_timeout": 60_000,
        "user": config.user,
    }
    return " ".join(
        f"{name}={_quoted(str(value))}"
        for name, value in parameters.items()
        if value not in {None, ""}
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
