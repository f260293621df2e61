"""The graph server's main process: it listens, loads, serves, and reports its outcome once.

Its end is abrupt on purpose (`os._exit`) once everything was said: after a failed load the engine's
library must not be called again, not even to be taken down.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING

import uvloop

from penstock.graph_server import settings
from penstock.graph_server.algorithms import routes as algorithms
from penstock.graph_server.algorithms.executions import Executions
from penstock.graph_server.control_plane.client import InstanceControlPlane
from penstock.graph_server.control_plane.reports import Reports
from penstock.graph_server.engine.engine import Engine
from penstock.graph_server.engine.watchdog import Watchdog
from penstock.graph_server.http.app import create_app
from penstock.graph_server.isolation.isolation import confine_process
from penstock.graph_server.loading.files import local_root
from penstock.graph_server.loading.loading import Loading, StartFailed
from penstock.graph_server.served_graph import Served
from penstock.http.server import ConnectionLimits, HttpServer
from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.kit.priority import lower_priority
from penstock.kit.watched_file import WatchedFile

if TYPE_CHECKING:
    from penstock.graph_server.isolation.isolation import Isolation
    from penstock.graph_server.settings import InstanceSettings, Start

log = logging.get(__name__)
MOST_TRACE = 16_000
MOST_CONNECTIONS = 4096
"""Of one address: a control plane of many processes has one."""


def main() -> int:
    """Run until stopped; return the exit code."""
    try:
        start = settings.load()
    except PenstockError as e:
        sys.stderr.write(f"{e.message} {e.hint or ''}\n")
        return 2
    logging.configure(
        level=start.log_level, form=start.log_form, process=f"instance-{start.instance.id}"
    )
    lower_priority()
    start.instance.dir.mkdir(parents=True, exist_ok=True)
    os.chdir(start.instance.dir)
    # As whoever started us: a folder for sockets need not be ours to write to.
    listener = bind_listener(start.instance)
    isolation = confine_process(
        start.instance.isolation,
        instance_id=start.instance.id,
        own=start.instance.dir,
        storage=local_root(start.storage_url),
        account_token=start.instance.account_token_file,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(Process(start, isolation, listener).run())
        sys.stderr.flush()
        os._exit(code)


class Process:
    def __init__(self, start: Start, isolation: Isolation, listener: socket.socket) -> None:
        self._start = start
        self._listener = listener
        self._engine = Engine(start.instance, isolation, lost=self._engine_lost)
        self._served = Served(settings=start.instance, isolation=isolation, engine=self._engine)
        self._executions = Executions.of(self._served)
        self._ending = asyncio.Event()
        self._lost = ""
        self._grace = 10.0

    async def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ending.set)
        self._engine.supervisor.warm_up()
        with self._listener as listener:
            routes = algorithms.router(self._executions, backend=self._start.instance.backend)
            app = create_app(self._served, end=self._end, more=[routes])
            server = HttpServer(app, _connection_limits(self._start.instance))
            listening = asyncio.create_task(server.serve(sockets=[listener]))
            log.info(
                "graph_server_listening",
                address=str(listener.getsockname()),
                isolation=str(self._served.isolation),
            )
            try:
                async with self._plane() as plane:
                    return await self._serve(plane)
            finally:
                await self._executions.close()
                server.config.timeout_graceful_shutdown = int(self._grace)
                server.should_exit = True
                await listening
                await self._engine.close()

    async def _serve(self, plane: InstanceControlPlane) -> int:
        loading = Loading(self._start, self._served, plane)
        work = asyncio.create_task(loading.run())
        stop = asyncio.create_task(self._ending.wait())
        await asyncio.wait({work, stop}, return_when="FIRST_COMPLETED")
        if not work.done():
            work.cancel()
            return 0
        try:
            graph = self._served.loaded = work.result()
        except Exception as e:
            await self._failed(plane, loading, _named(e, loading.progress.phase), e)
            return 1
        self._served.state = "running"
        try:
            await plane.running(node_count=graph.node_count, edge_count=graph.edge_count)
        except PenstockError as e:
            log.warning("graph_server_unwanted", code=e.code, message=e.message)
            return 1
        log.info("graph_server_running", nodes=graph.node_count, edges=graph.edge_count)
        watchdog = Watchdog(
            self._engine, self._executions, memory_bytes=self._start.instance.memory_bytes
        )
        loops = [
            asyncio.create_task(Reports(self._served, plane).run()),
            asyncio.create_task(watchdog.run()),
        ]
        await self._executions.warm()
        # What is here now stays; a search for garbage among all of it would hold up every thread.
        gc.freeze()
        await stop
        for loop in loops:
            loop.cancel()
        if self._lost:
            failure = StartFailed("DATABASE_ERROR", loading.progress.phase, self._lost)
            await self._failed(plane, loading, failure, failure)
            return 1
        self._served.state = "stopping"
        log.info("graph_server_stopping")
        return 0

    async def _failed(
        self, plane: InstanceControlPlane, loading: Loading, error: StartFailed, cause: Exception
    ) -> None:
        self._served.state = "failed"
        trace = "".join(traceback.format_exception(cause))[-MOST_TRACE:]
        log.error("graph_server_failed", code=error.code, phase=error.phase, message=error.message)
        with contextlib.suppress(PenstockError):
            await loading.progress.fail()
            await plane.failed(
                error_code=error.code,
                message=error.message,
                phase=error.phase,
                trace=logging.scrub(trace),
            )

    def _plane(self) -> InstanceControlPlane:
        mine = self._start.instance
        account = mine.account_token_file
        token = mine.token.get_secret_value() if account is None else WatchedFile(account).read
        return InstanceControlPlane(self._start.plane_url, token, mine.id)

    def _engine_lost(self, message: str) -> None:
        self._lost = message
        self._ending.set()

    def _end(self, grace: float) -> None:
        self._grace = grace
        self._ending.set()


def _named(error: Exception, phase: str) -> StartFailed:
    if isinstance(error, StartFailed):
        return error
    return StartFailed("STARTUP_FAILED", phase, f"{type(error).__name__}: {error}")


def _connection_limits(mine: InstanceSettings) -> ConnectionLimits:
    return ConnectionLimits(
        header_seconds=mine.header_timeout_seconds,
        body_seconds=mine.body_timeout_seconds,
        per_address=MOST_CONNECTIONS,
    )


def bind_listener(mine: InstanceSettings) -> socket.socket:
    if mine.socket is None:
        family = socket.AF_INET6 if ":" in mine.host else socket.AF_INET
        listener = socket.create_server((mine.host, mine.port), family=family, backlog=512)
        # Connections inherit it: an answer of two writes must not wait for the caller's delayed
        # acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    mine.socket.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(mine.socket))
    mine.socket.chmod(0o600)
    listener.listen(512)
    return listener
