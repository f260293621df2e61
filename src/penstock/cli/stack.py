"""Everything of one machine, as child processes of one supervisor: PostgreSQL, the control plane,
workers.

The children die with the supervisor, however it dies; a child that dies by itself is reported and
started again. Graph servers are the control plane's: they outlive it, are suspended by an orderly
stop, and found again after any other. State is in the home folder and in PostgreSQL only, so the
next start recovers whatever the last one left.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from signal import SIGKILL, SIGTERM
from typing import IO, TYPE_CHECKING, Self

from penstock.cli.graph_servers import end_all, suspend_all
from penstock.cli.home import Home, Running
from penstock.cli.keys import secret_keys
from penstock.cli.secret_files import move_to_files
from penstock.client._async.transport import AsyncTransport
from penstock.client.address import Address
from penstock.client.errors import ClientError
from penstock.kit import child_process
from penstock.kit.errors import Conflict, InvalidInput, Unavailable
from penstock.kit.migrate import find, migrate
from penstock.kit.postgres import database
from penstock.wiring.migrations import MIGRATION_PACKAGES
from penstock.wiring.settings import Settings, load

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable

_READY_SECONDS = 180.0
_RESTART_SECONDS = (0.5, 1, 2, 5, 10, 30)
_NOT_FOR_WORKERS = {
    "PENSTOCK_DATABASE_URL",
    "PENSTOCK_DATABASE_DIRECT_URL",
    "PENSTOCK_OPERATOR_TOKEN",
    "PENSTOCK_SECRET_KEY",
    "PENSTOCK_SECRET_KEYS_OLD",
    "PENSTOCK_TRUSTED_PROXY_SECRET",
}


@dataclass(slots=True)
class Member:
    """One supervised process and what it is started with."""

    name: str
    arguments: list[str]
    environment: dict[str, str]
    process: Process | None = None
    watcher: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        if self.process is None:
            raise Unavailable(f"{self.name} does not run.")
        return self.process.pid


class Stack:
    """`async with Stack(home) as stack:` leaves a running Penstock at `stack.url`."""

    running: Running
    """What runs, once it is entered."""

    def __init__(
        self,
        home: Home,
        *,
        port: int = 8080,
        workers: int = 1,
        say: Callable[[str], None] = lambda _: None,
        environment: dict[str, str] | None = None,
        furnish: Callable[[str], None] | None = None,
    ) -> None:
        """`furnish` is called with the address before the stack is announced."""
        self.home = home
        self.url = ""
        self.members: dict[str, Member] = {}
        self._port = port
        self._workers = workers
        self._say = say
        self._extra = environment or {}
        self._furnish = furnish
        self._held = AsyncExitStack()
        self._stopping = False

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _start(self) -> None:
        self.home.make()
        self.home.secret("operator_token")
        self._held.enter_context(self._take(self.home))
        port = self._free_port()
        settings = load(home=self.home.folder, port=port)
        if settings.tls_cert is not None:
            raise InvalidInput(
                "`penstock up` serves this machine alone, over HTTP.",
                hint="Unset PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY, or use `penstock serve`.",
            )
        self._say("database")
        dsn = await self._held.enter_async_context(database(settings))
        await migrate(dsn, find(MIGRATION_PACKAGES))
        self.url = f"http://127.0.0.1:{port}"
        self._say("control plane")
        await self._launch(
            Member("control-plane", ["serve"], self._plane_environment(settings, dsn))
        )
        await self._until_ready()
        self._say("worker")
        for number in range(1, self._workers + 1):
            await self.add_worker(f"worker-{number}")
        if self._furnish is not None:
            await asyncio.to_thread(self._furnish, self.url)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        shown = "embedded" if settings.database_url is None else "external"
        self.running = Running(pid=os.getpid(), url=self.url, started_at=started, database=shown)
        self.home.write_running(self.running)
        self._held.callback(self.home.forget_running)

    async def add_worker(self, name: str) -> Member:
        arguments = ["worker", "--name", f"{socket.gethostname()}/{name}"]
        return await self._launch(Member(name, arguments, self._environment()))

    async def stop(self) -> None:
        """Workers first, so that they can hand their jobs back; then graph servers, control plane
        and PostgreSQL."""
        self._stopping = True
        workers = [m for name, m in self.members.items() if name != "control-plane"]
        await asyncio.gather(*(self._end(m) for m in workers))
        if plane := self.members.get("control-plane"):
            await suspend_all(self.url, self.home.secret("operator_token"))
            await self._end(plane)
            await end_all(self.home.folder)
        await self._held.aclose()

    async def wait(self) -> None:
        """For ever; the watchers keep everything running."""
        await asyncio.Event().wait()

    @staticmethod
    def _take(home: Home) -> IO[str]:
        lock_file = home.hold()
        if lock_file is None:
            running = home.running()
            who = f"process {running.pid} at {running.url}" if running else "another process"
            raise Conflict(
                f"{home.folder} is in use by {who}.", hint="Use that one, or stop it: penstock down"
            )
        return lock_file

    def _free_port(self) -> int:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self._port))
            except OSError:
                raise Conflict(
                    f"Port {self._port} is in use.",
                    hint=f"Choose another: penstock up --port {self._port + 1}",
                ) from None
            port: int = probe.getsockname()[1]
            return port

    def _environment(self) -> dict[str, str]:
        own = {
            "PENSTOCK_HOME": str(self.home.folder),
            "PENSTOCK_URL": self.url,
            "PENSTOCK_SERVICE_TOKEN": self.home.secret("service_token"),
            "PENSTOCK_WORKER_PORT": "0",
        }
        lake = {"lake": {"type": "sql", "warehouse": f"file://{self.home.folder / 'lake'}"}}
        furnished = {"PENSTOCK_CATALOGS": json.dumps(lake)}
        inherited = {
            name: value for name, value in os.environ.items() if name not in _NOT_FOR_WORKERS
        }
        return furnished | inherited | own | self._extra

    def _plane_environment(self, settings: Settings, dsn: str) -> dict[str, str]:
        keys = secret_keys(settings, self.home)
        pooler = settings.database_pooler
        database = {"PENSTOCK_DATABASE_URL": pooler or dsn}
        if pooler is not None:
            database["PENSTOCK_DATABASE_DIRECT_URL"] = dsn
        if (secret := settings.trusted_proxy_secret) is not None:
            database["PENSTOCK_TRUSTED_PROXY_SECRET"] = secret.get_secret_value()
        return (
            self._environment()
            | database
            | {
                "PENSTOCK_OPERATOR_TOKEN_FILE": str(self.home.secret_file("operator_token")),
                "PENSTOCK_PORT": str(settings.port),
                "PENSTOCK_LOCAL_ONLY": str(settings.is_local_only).lower(),
                "PENSTOCK_SECRET_KEY": keys[0],
                "PENSTOCK_SECRET_KEYS_OLD": ",".join(keys[1:]),
            }
        )

    async def _launch(self, member: Member) -> Member:
        member.environment = move_to_files(member.environment, self.home.secrets_of(member.name))
        self.members[member.name] = member
        await self._run(member)
        member.watcher = asyncio.create_task(self._watch(member))
        return member

    async def _run(self, member: Member) -> None:
        with (self.home.logs / f"{member.name}.log").open("ab") as log:
            command = [sys.executable, "-m", "penstock.cli", *member.arguments]
            member.process = await child_process.spawn(
                command, environment=member.environment, output=log
            )

    async def _watch(self, member: Member) -> None:
        failures = 0
        while member.process is not None:
            started = asyncio.get_running_loop().time()
            code = await member.process.wait()
            if self._stopping:
                return
            failures = 0 if asyncio.get_running_loop().time() - started > 60 else failures + 1
            pause = (
                _RESTART_SECONDS[min(failures, len(_RESTART_SECONDS)) - 1]
                if failures
                else _RESTART_SECONDS[0]
            )
            self._say(f"{member.name} ended ({_how(code)}); it is started again in {pause:g} s")
            await asyncio.sleep(pause)
            await self._run(member)

    async def _end(self, member: Member) -> None:
        if member.watcher is not None:
            member.watcher.cancel()
            with suppress(asyncio.CancelledError):
                await member.watcher
        if member.process is None or member.process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            member.process.send_signal(SIGTERM)
        try:
            await asyncio.wait_for(member.process.wait(), 30)
        except TimeoutError:
            member.process.send_signal(SIGKILL)
            await member.process.wait()

    async def _until_ready(self) -> None:
        plane = self.members["control-plane"]
        until = asyncio.get_running_loop().time() + _READY_SECONDS
        transport = AsyncTransport(Address(url=self.url), timeout=2, tries=1)
        async with aclosing(transport):
            while asyncio.get_running_loop().time() < until:
                if plane.process is not None and plane.process.returncode is not None:
                    break
                with suppress(ClientError):
                    await transport.call("GET", "/ready")
                    return
                await asyncio.sleep(0.03)
        raise Unavailable(
            "The control plane did not become ready.",
            hint=f"Its log: {self.home.logs / 'control-plane.log'}",
        )


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
