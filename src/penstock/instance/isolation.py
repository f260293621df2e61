"""What a query could reach if the guard let it: nothing but its own graph.

The guard reads the text; this holds whatever the text says. Two circles, both by the kernel. The graph server gives up,
at its start, every file but Python, the system's libraries, the storage and its own folder. The engine's process gives
up, before it has a second thread, all of that again but the engine's folder and the snapshot's files, and TCP. It has
none of the server's memory either: no token, no credentials, no other client's request.

A kernel without Landlock leaves this to the container: read-only root, own user, no egress.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from penstock.instance import landlock
from penstock.instance.runtime import runtime_paths
from penstock.kit import logging
from penstock.kit.errors import InvalidState

log = logging.get(__name__)
Wish: TypeAlias = Literal["require", "prefer", "off"]
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
_ALSO_READ = ("/dev/urandom", "/dev/random", "/proc", "/sys/devices/system", "/sys/fs/cgroup", "/var/run/secrets")
_SHARED = ("/dev/null", "/dev/shm")  # noqa: S108 - processes of an algorithm pass arrays there


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """`level` is what holds: the version of Landlock, 0 for none."""

    level: int

    def __str__(self) -> str:
        return f"landlock-{self.level}" if self.level else "none"


def confine_process(wish: Wish, *, own: Path, storage: Path | None, socket: Path | None) -> Isolation:
    """Before any other thread exists: threads inherit, they are not joined later."""
    level = 0 if wish == "off" else landlock.version()
    if wish == "require" and not level:
        raise InvalidState(
            "This kernel cannot confine the graph server (no Landlock).",
            hint="Set PENSTOCK_INSTANCE_ISOLATION=prefer where a container does it.",
        )
    if level:
        read = [*map(Path, (*_NETWORK, *_ALSO_READ)), *([storage] if storage else []), *_certificates()]
        places = [own, *map(Path, _SHARED), *([socket.parent] if socket else []), *_temporary()]
        landlock.confine(read=read, run=runtime_paths(), write=places, connect=True)
    elif wish == "prefer":
        log.warning("isolation_missing", hint="The kernel has no Landlock: let a container confine this process.")
    return Isolation(level=level)


def _certificates() -> list[Path]:
    return [Path(os.environ[name]) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ]


def _temporary() -> list[Path]:
    """The folder for temporary files, if it was given to us alone."""
    given = os.environ.get("TMPDIR")
    return [Path(given)] if given else []
