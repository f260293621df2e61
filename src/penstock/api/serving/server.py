"""The control plane process: one socket, one uvicorn, and a graceful shutdown.

On SIGTERM long polls return an empty result at once, so that no worker waits for a stopping server;
requests in progress may finish; then loops and connections are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
from typing import TYPE_CHECKING, TypeAlias

import uvloop

from penstock.api.app import create_app
from penstock.api.serving.siblings import Sibling, Siblings, myself
from penstock.api.serving.tls import server_context
from penstock.http.server import ConnectionLimits, HttpServer, networks
from penstock.kit import logging
from penstock.kit.errors import Conflict, DatabaseUnavailable, InvalidInput
from penstock.kit.migrate import find, migrate, pending
from penstock.kit.postgres import database
from penstock.kit.scratch import sweep_in_background

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from starlette.types import ASGIApp

    from penstock.api.services import Services
    from penstock.api.settings import ServerSettings

    Build: TypeAlias = Callable[[str], AbstractAsyncContextManager[Services]]
    """Services on the database of this DSN."""

log = logging.get(__name__)
GRACE_SECONDS = 10
GARBAGE_THRESHOLDS = (10_000, 20, 50)
KEEP_ALIVE_PROBES = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


def serve(settings: ServerSettings, build: Build, rooms: Sequence[str]) -> int:
    """Runs until SIGTERM or SIGINT; returns the exit code."""
    logging.configure(level=settings.log_level, form=settings.log_form, process="control-plane")
    sweep_in_background()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, build, rooms))


async def _serve(settings: ServerSettings, build: Build, rooms: Sequence[str]) -> int:
    stop = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    me = myself()
    tls = server_context(settings)
    with (
        bind(settings.host, settings.port)
        if me is None
        else socket.socket(fileno=me.listener) as listener
    ):
        async with database(settings) as dsn:
            await check_schema(settings, dsn, rooms)
            async with (
                build(dsn) as services,
                _siblings(me, services) as siblings,
                listening(
                    services, listener, siblings, connection_limits(settings), tls=tls
                ) as url,
            ):
                settle()
                log.info("control_plane_started", url=url)
                await stop.wait()
                log.info("control_plane_stopping")
    return 0


def settle() -> None:
    """Exclude startup objects from garbage collection: with thousands of waiting requests,
    scanning them repeatedly costs more than the requests do."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as e:
        raise Conflict(
            f"Cannot listen on port {port} of {host}: {e.strerror or e}.",
            hint="Set PENSTOCK_PORT to a free port.",
        ) from e
    configure(listener)
    return listener


def configure(listener: socket.socket) -> None:
    # Connections inherit it. asyncio sets it only on sockets that name their protocol; without it
    # a response of two writes would wait 40 ms for the client's delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Also inherited: detects a client whose machine vanished during a long poll.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE_PROBES.items():
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def connection_limits(settings: ServerSettings) -> ConnectionLimits:
    return ConnectionLimits(
        header_seconds=settings.header_timeout_seconds,
        body_seconds=settings.body_timeout_seconds,
        per_address=settings.connections_per_address,
        exempt=networks(settings.connections_exempt),
    )


@contextlib.asynccontextmanager
async def listening(
    services: Services,
    listener: socket.socket,
    siblings: Siblings | None = None,
    limits: ConnectionLimits | None = None,
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve at the yielded URL until the block exits, which ends long polls at once."""
    app = create_app(services)
    app.state.siblings = siblings
    server = Server(app, limits, tls=tls)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.tried.wait()
        if not server.started:
            await running
        host, port = listener.getsockname()[:2]
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    finally:
        services.polls.close()
        server.should_exit = True
        await running


@contextlib.asynccontextmanager
async def _siblings(me: Sibling | None, services: Services) -> AsyncIterator[Siblings | None]:
    if me is None:
        yield None
        return
    siblings = Siblings(me, services.registry)
    async with siblings.answering():
        yield siblings


class Server(HttpServer):
    """Sets `tried` once it is listening or has failed to."""

    def __init__(
        self,
        app: ASGIApp,
        limits: ConnectionLimits | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(app, limits or ConnectionLimits(), grace_seconds=GRACE_SECONDS, tls=tls)
        self.tried = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.tried.set()


async def check_schema(settings: ServerSettings, dsn: str, rooms: Sequence[str]) -> None:
    """Migrate the embedded database; check an external one, which its operator migrates. An
    unreachable database is not an error here."""
    migrations = find(rooms)
    if settings.database_url is None:
        await migrate(dsn, migrations)
        return
    try:
        missing = await pending(dsn, migrations)
    except DatabaseUnavailable:
        log.warning("database_away", hint="/ready reports when it is back.")
        return
    if missing:
        raise InvalidInput(
            f"The database schema lacks {len(missing)} migrations.", hint="Run: penstock migrate"
        )
