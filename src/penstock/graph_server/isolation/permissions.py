"""What a process of a graph server keeps when it drops its privileges.

Landlock takes files, TCP ports, signals and abstract sockets; seccomp takes system calls; resource
limits take what is left to take. Each process calls `Reach.confine` before it has a second thread.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graph_server.isolation import landlock, seccomp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.graph_server.isolation.seccomp import Filter

_OPEN_FILES = 8192
_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_MEMLOCK: 64 * 1024,
    resource.RLIMIT_MSGQUEUE: 0,
    resource.RLIMIT_NICE: 0,
    resource.RLIMIT_NOFILE: _OPEN_FILES,
    resource.RLIMIT_RTPRIO: 0,
}
"""No core dumps with other people's rows, no locked memory, no priority over other processes."""
LOADERS = (
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
)
"""What the kernel runs together with a program that is linked dynamically."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """`level` is the version of Landlock to use, 0 for none; `calls` the system calls that are
    left, None for all. `ports` are the TCP ports to connect to, None for all."""

    level: int
    read: Sequence[Path]
    write: Sequence[Path]
    run: Sequence[Path] = ()
    ports: Sequence[int] | None = ()
    calls: Filter | None = None

    def confine(self) -> None:
        """Drop every permission that is not listed here, permanently."""
        if not self.level and self.calls is None:
            return
        for limit, most in _LIMITS.items():
            _lower(limit, most)
        if self.level:
            landlock.confine(read=self.read, write=self.write, run=self.run, ports=self.ports)
        if self.calls is not None:
            seccomp.install(self.calls.program(os.getpid()))


def _lower(limit: int, most: int) -> None:
    soft, hard = (
        value if value != resource.RLIM_INFINITY else most for value in resource.getrlimit(limit)
    )
    resource.setrlimit(limit, (min(soft, most), min(hard, most)))
