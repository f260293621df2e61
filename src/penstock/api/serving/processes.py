"""Supervisor of several control plane processes on one port: `penstock serve --processes N`.

The supervisor opens a listening socket for each process and keeps them open; the kernel balances
connections over them. When a process dies, only its requests in progress are lost: new connections
wait in its socket until it is restarted. The supervisor also runs the embedded database.

SIGTERM and SIGINT are forwarded, and the supervisor exits after the last process. When the
supervisor dies, even by SIGKILL, its processes get SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

import uvloop

from penstock.api.serving.server import bind, check_schema, configure
from penstock.api.serving.siblings import VARIABLE, Sibling
from penstock.api.serving.tls import server_context
from penstock.kit import child_process, logging
from penstock.kit.errors import InvalidInput
from penstock.kit.postgres import database
from penstock.kit.scratch import scratch_folder, sweep_in_background

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from penstock.api.settings import ServerSettings

log = logging.get(__name__)
RESTART_SECONDS = (0.1, 0.5, 1, 2, 5, 10)
STEADY_SECONDS = 60.0
"""A process that ran this long is restarted without backoff."""
_ORDERLY = frozenset({0, -signal.SIGTERM})
"""Exit codes of a clean stop; a process that was still starting dies by SIGTERM."""
END_SECONDS = 30.0
"""Longer than a control plane's grace period for requests in progress."""


def serve(settings: ServerSettings, rooms: Sequence[str]) -> int:
    """Runs until SIGTERM or SIGINT; returns the exit code."""
    logging.configure(level=settings.log_level, form=settings.log_form, process="supervisor")
    if not hasattr(socket, "SO_REUSEPORT"):
        raise InvalidInput(
            "This system cannot share a port between processes.", hint="Use --processes 1."
        )
    server_context(settings)  # fails once here, instead of in every process
    sweep_in_background()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, rooms))


async def _serve(settings: ServerSettings, rooms: Sequence[str]) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with ExitStack() as stack:
        listeners = bind_all(settings.host, settings.port, settings.processes)
        for listener in listeners:
            stack.enter_context(closing(listener))
        folder = stack.enter_context(scratch_folder("processes"))
        async with database(settings) as dsn:
            await check_schema(settings, dsn, rooms)
            environment = _environment(settings, dsn, listeners[0].getsockname()[1])
            processes = [
                Supervised(number, listener, settings.processes, folder, environment)
                for number, listener in enumerate(listeners)
            ]
            log.info("control_planes_started", processes=len(processes))
            return await _until(stop, processes)


async def _until(stop: asyncio.Event, processes: Sequence[Supervised]) -> int:
    """A process that fails its first start stops the others too; its log says why."""
    restarting = [asyncio.create_task(process.keep_running()) for process in processes]
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({stopping, *restarting}, return_when=asyncio.FIRST_COMPLETED)
    log.info("control_planes_stopping")
    stopping.cancel()
    codes = await asyncio.gather(*(process.end() for process in processes))
    await asyncio.gather(*restarting)
    return 0 if stop.is_set() and _ORDERLY.issuperset(codes) else 1


def bind_all(host: str, port: int, count: int) -> list[socket.socket]:
    """One listening socket per process, all on one port, which must be free."""
    with bind(host, port) as probe:
        address = probe.getsockname()[:2]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listeners: list[socket.socket] = []
    try:
        for _ in range(count):
            listener = socket.create_server(address, family=family, backlog=2048, reuse_port=True)
            listeners.append(listener)
            configure(listener)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


class Supervised:
    """One control plane process, restarted when it dies."""

    def __init__(
        self,
        number: int,
        listener: socket.socket,
        count: int,
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.number = number
        self._listener = listener
        me = Sibling(number=number, count=count, listener=listener.fileno(), folder=str(folder))
        self._environment = {**environment, VARIABLE: me.variable()}
        self._process: Process | None = None
        self._stop = asyncio.Event()

    async def keep_running(self) -> None:
        """Runs until `end` is called or the first start fails."""
        failures, is_first = 0, True
        while not self._stop.is_set():
            began = asyncio.get_running_loop().time()
            self._process = await self._start()
            if self._stop.is_set():
                self._signal(signal.SIGTERM)
            code = await self._process.wait()
            if self._stop.is_set() or (is_first and code > 0):
                return
            is_first = False
            lasted = asyncio.get_running_loop().time() - began
            failures = 0 if lasted > STEADY_SECONDS else failures + 1
            pause = RESTART_SECONDS[min(failures, len(RESTART_SECONDS) - 1)]
            log.error("control_plane_ended", number=self.number, code=code, again_in=pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)

    async def end(self) -> int:
        """Stop the process and return its exit code."""
        self._stop.set()
        if self._process is None:
            return 0
        self._signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            log.warning("control_plane_killed", number=self.number)
            self._signal(signal.SIGKILL)
            return await self._process.wait()

    async def _start(self) -> Process:
        command = [sys.executable, "-m", "penstock.cli", "serve"]
        return await child_process.spawn(
            command, environment=self._environment, output=None, inherit=[self._listener.fileno()]
        )

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process is not None and self._process.returncode is None:
                self._process.send_signal(number)


def _environment(settings: ServerSettings, dsn: str, port: int) -> dict[str, str]:
    """Our environment plus the settings that all processes share."""
    shared = {
        "PENSTOCK_PROCESSES": "1",
        "PENSTOCK_HOST": settings.host,
        "PENSTOCK_PORT": str(port),
        "PENSTOCK_LOCAL_ONLY": str(settings.is_local_only).lower(),
    }
    if settings.tls_cert is not None:
        shared["PENSTOCK_TLS_CERT"] = str(settings.tls_cert)
        shared["PENSTOCK_TLS_KEY"] = str(settings.tls_key)
    if settings.database_url is None:
        shared["PENSTOCK_DATABASE_URL"] = dsn
    return {**os.environ, **shared}
