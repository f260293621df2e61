"""How a server is run: what we always say to it, and what a caller may add."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SUPERUSER = "penstock"

# An idle transaction that is never ended would keep every dead row of the queue alive.
_DEFAULTS = {
    "autovacuum_naptime": "10s",
    "idle_in_transaction_session_timeout": "60s",
    "log_timezone": "UTC",
    "max_wal_size": "2GB",
    "shared_buffers": "256MB",
    "timezone": "UTC",
}
_PORT = 5432


class Shutdown(Enum):
    """FAST ends sessions and writes everything down; the other two leave the next start to recover
    from the log."""

    FAST = SIGINT
    IMMEDIATE = SIGQUIT
    KILL = SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp:
    """A port on 127.0.0.1, for programs that cannot use the socket."""

    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """`server` adds to and overrides PostgreSQL's own settings; `shared` is where root puts what
    others must reach."""

    database: str = "penstock"
    server: Mapping[str, str] = field(default_factory=dict)
    tcp: Tcp | None = None
    template: Path | None = None
    shared: Path = Path("/var/lib/penstock")
    start_seconds: float = 300.0
    stop_seconds: float = 30.0

    @property
    def port(self) -> int:
        return self.tcp.port if self.tcp else _PORT

    def options(self, sockets: Path) -> list[str]:
        """Everything on the command line, so that old data follow new defaults and a list of
        processes shows them."""
        chosen = {
            **_DEFAULTS,
            **self.server,
            "listen_addresses": "127.0.0.1" if self.tcp else "",
            "port": str(self.port),
            "unix_socket_directories": '"{}"'.format(str(sockets).replace('"', '""')),
            "unix_socket_permissions": "0700",
        }
        return [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]
