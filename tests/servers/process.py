"""Servers that die with the test process, also when it is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

# The kernel kills the server when its parent is gone: prctl(PR_SET_PDEATHSIG, SIGKILL), kept over
# exec.
_SHIM = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def die_with_parent(command: Sequence[str]) -> list[str]:
    """The command as a child of this process that the kernel kills with it."""
    return [sys.executable, "-c", _SHIM, str(os.getpid()), *command]


@contextmanager
def running(
    command: Sequence[str], *, log: Path, cwd: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    shim = die_with_parent(command)
    environment = {**os.environ, **(env or {})}
    with (
        log.open("wb") as out,
        subprocess.Popen(shim, stdout=out, stderr=out, cwd=cwd, env=environment) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]
