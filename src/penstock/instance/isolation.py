"""What a query could reach if the guard let it: nothing but its own graph.

The guard reads the text; this holds whatever the text says. Two circles, both by the kernel. The process gives up, at
its start, every file but Python, the system's libraries, the storage and its own folder. Each thread that runs the
engine gives up, before its first call, all of that again but the engine's folder and the snapshot's files, and TCP. The
engine's own threads are started by such a thread, so they are no freer.

A kernel without Landlock leaves this to the container: read-only root, own user, no egress.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.instance import landlock
from penstock.kit import logging
from penstock.kit.errors import InvalidState

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.get(__name__)
Wish: TypeAlias = Literal["require", "prefer", "off"]
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store")
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

    def engine_thread(self, *, own: Path, files: Sequence[Path], connect: bool) -> None:
        """Called by a thread before it touches the engine; `connect` is for one that is a server elsewhere."""
        if self.level:
            landlock.confine(read=files, write=[own], run=_runtime(), connect=connect)


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
        landlock.confine(read=read, run=_runtime(), write=places, connect=True)
    elif wish == "prefer":
        log.warning("isolation_missing", hint="The kernel has no Landlock: let a container confine this process.")
    return Isolation(level=level)


def _runtime() -> list[Path]:
    """Python, its packages and the libraries they load, perhaps late."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values(), *filter(None, sys.path)}
    here = Path(__file__).parents[2]
    return [Path(place) for place in (*_SYSTEM, *sorted(python)) if _is_narrow(place)] + [here]


def _is_narrow(place: str) -> bool:
    """Never the root, a home or the folder we happen to stand in."""
    path = Path(place)
    return path.is_absolute() and path not in (Path("/"), Path.home(), Path.cwd())


def _certificates() -> list[Path]:
    return [Path(os.environ[name]) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ]


def _temporary() -> list[Path]:
    """The folder for temporary files, if it was given to us alone."""
    given = os.environ.get("TMPDIR")
    return [Path(given)] if given else []
