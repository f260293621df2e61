"""The deployment that the storm rages over: PostgreSQL, two control planes behind a proxy, a few
workers, and where `queue` is `nats` a NATS server behind a proxy of its own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from signal import SIGCONT, SIGKILL, Signals
from typing import TYPE_CHECKING

from penstock.kit.migrate import find, migrate
from penstock.kit.postgres import Cluster, ClusterSettings
from penstock.wiring.migrations import MIGRATION_PACKAGES
from tests.chaos.proxy import Proxy
from tests.servers import postgres
from tests.servers.nats import NatsServer

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from pathlib import Path

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "200",
}
TOKEN = "storm-service-token"


@dataclass(slots=True)
class Member:
    name: str
    role: str
    pid: int
    frozen: bool = False


@dataclass(slots=True)
class World:
    folder: Path
    workers: int = 4
    planes: int = 2
    with_nats: bool = False
    proxy: Proxy = field(default_factory=Proxy)
    nats: NatsServer | None = None
    nats_proxy: Proxy = field(default_factory=Proxy)
    members: dict[str, Member] = field(default_factory=dict)
    exits: dict[str, int] = field(default_factory=dict)
    _cluster: Cluster | None = None
    _zygote: Process | None = None
    _orders: dict[int, asyncio.Future[int]] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)
    _reader: asyncio.Task[None] | None = None
    _number: int = 0
    _ending: bool = False

    async def __aenter__(self) -> World:
        settings = ClusterSettings(server=SETTINGS)
        self._cluster = Cluster(
            self.folder / "pg",
            postgres.binaries(os.environ.get("PENSTOCK_TEST_PG")),
            settings=settings,
        )
        await self._cluster.start()
        await migrate(self.dsn, find(MIGRATION_PACKAGES))
        await self.proxy.start()
        if self.with_nats:
            await self._start_nats()
        await self._start_zygote()
        for number in range(self.planes):
            await self.start_plane(f"plane-{number}")
        for _ in range(self.workers):
            await self.start_worker()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending = True
        for member in self.members.values():
            with suppress(ProcessLookupError):
                os.kill(member.pid, SIGKILL)
        if self._zygote is not None:
            self._zygote.kill()
            await self._zygote.wait()
        if self._reader is not None:
            self._reader.cancel()
        await self.proxy.stop()
        if self.nats is not None:
            await self.nats_proxy.stop()
            self.nats.kill()
        if self._cluster is not None:
            await self._cluster.stop()

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            raise RuntimeError("the world has not begun")
        return self._cluster

    @property
    def dsn(self) -> str:
        return self.cluster.dsn()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    def of_role(self, role: str, *, frozen: bool = False) -> list[Member]:
        return [m for m in self.members.values() if m.role == role and m.frozen is frozen]

    def signal(self, member: Member, signal: Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(member.pid, signal)

    def thaw(self) -> None:
        for member in list(self.members.values()):
            if member.frozen:
                member.frozen = False
                self.signal(member, SIGCONT)

    async def start_plane(self, name: str) -> Member:
        port = self._ports.setdefault(name, _free_port())
        environment = {
            "PENSTOCK_DATABASE_URL": self.dsn,
            "PENSTOCK_SERVICE_TOKEN": TOKEN,
            "PENSTOCK_OPERATOR_TOKEN": TOKEN + "-operator",
            "PENSTOCK_PORT": str(port),
            "PENSTOCK_REAP_SECONDS": "0.2",
        }
        if self.with_nats:
            environment |= {
                "PENSTOCK_QUEUE": "nats",
                "PENSTOCK_NATS_URL": f"nats://127.0.0.1:{self.nats_proxy.port}",
                "PENSTOCK_NATS_STREAM_MB": "8",
            }
        member = await self._start(name, "plane", environment)
        self.proxy.upstream(name, port)
        return member

    async def start_worker(self, name: str | None = None) -> Member:
        """Under a new name, or in the place of one that is gone."""
        self._number += 1
        name = name or f"worker-{self._number}"
        environment = {
            "PENSTOCK_URL": self.url,
            "PENSTOCK_SERVICE_TOKEN": TOKEN,
            "PENSTOCK_WORKER_QUEUES": "storm",
            "PENSTOCK_WORKER_SLOTS": "6",
            "PENSTOCK_WORKER_GRACE_SECONDS": "0.3",
            "PENSTOCK_WORKER_PORT": "0",
            "STORM_WORKER": name,
            "STORM_EFFECTS": str(self.folder / f"effects-{name}.jsonl"),
        }
        return await self._start(name, "worker", environment)

    async def _start(self, name: str, role: str, environment: dict[str, str]) -> Member:
        if self._zygote is None or self._zygote.stdin is None:
            raise RuntimeError("the world has not begun")
        order = len(self._orders) + 1
        self._orders[order] = asyncio.get_running_loop().create_future()
        log = str(self.folder / f"{name}.log")
        message = {
            "id": order,
            "role": role,
            "environment": {**environment, "PENSTOCK_HOME": str(self.folder)},
            "log": log,
        }
        self._zygote.stdin.write(json.dumps(message).encode() + b"\n")
        member = Member(name, role, await self._orders[order])
        self.members[name] = member
        return member

    async def _start_nats(self) -> None:
        self.nats = NatsServer(self.folder / "nats")
        await asyncio.to_thread(self.nats.__enter__)
        await self.nats_proxy.start()
        self.nats_proxy.upstream("nats", self.nats.port)

    async def _start_zygote(self) -> None:
        self._zygote = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.chaos.zygote",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._reader = asyncio.create_task(self._listen(self._zygote))

    async def _listen(self, zygote: Process) -> None:
        if zygote.stdout is None:
            raise RuntimeError("the zygote has no voice")
        async for line in zygote.stdout:
            event = json.loads(line)
            if "id" in event:
                self._orders[event["id"]].set_result(event["pid"])
            else:
                await self._replace(event["exited"], event["code"])

    async def _replace(self, pid: int, code: int) -> None:
        """Whoever is gone is followed by another, as an orchestrator would do; one that was killed
        by its like."""
        gone = next((m for m in self.members.values() if m.pid == pid), None)
        if gone is None or self._ending:
            return
        self.exits[f"{gone.name} {pid}"] = code
        del self.members[gone.name]
        name = gone.name if code == -SIGKILL else None
        again = self.start_worker(name) if gone.role == "worker" else self.start_plane(gone.name)
        asyncio.get_running_loop().create_task(again)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
