"""A server that outlives whoever started it: a supervisor in a session of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from typing import IO, TYPE_CHECKING

from penstock.kit.postgres import holder, paths
from penstock.kit.postgres.errors import PostgresFailed
from penstock.kit.postgres.settings import ClusterSettings

if TYPE_CHECKING:
    from pathlib import Path

_GLANCE = 0.02


async def start(data_dir: Path, *, major: str | None = None) -> str:
    """The DSN, once the server answers."""
    command = [sys.executable, "-m", "penstock.kit.postgres", "run", str(data_dir)]
    command += ["--major", major] if major else []
    with tempfile.TemporaryFile() as complaints:
        first_line = await asyncio.to_thread(_first_line, command, complaints)
        if not first_line:
            raise PostgresFailed(_last_line(complaints))
    return first_line


async def stop(data_dir: Path, *, seconds: float = 60.0) -> bool:
    """End whoever supervises the server, and wait until the data are free; False if nobody did."""
    at = paths.settle(data_dir, ClusterSettings().shared)
    if holder.is_free(at) or (who := holder.supervisor(at)) is None:
        return False
    os.kill(who.pid, signal.SIGTERM)
    for _ in range(int(seconds / _GLANCE)):
        if holder.is_free(at):
            return True
        await asyncio.sleep(_GLANCE)
    raise PostgresFailed(f"The server did not stop in {seconds:.0f} s; it belongs to {who}.")


def _first_line(command: list[str], complaints: IO[bytes]) -> str:
    # Not subprocess: that object would insist on seeing the end of a process that is meant to live
    # on.
    reader, writer = os.pipe()
    with os.fdopen(reader) as stream:
        wired = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, complaints.fileno(), 2)]
        os.posix_spawn(command[0], command, os.environ, file_actions=wired, setsid=True)
        os.close(writer)
        return stream.readline().strip()


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    return (
        complaints.read().decode(errors="replace").strip() or "The supervisor ended without a word."
    )
