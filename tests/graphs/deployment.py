"""A control plane as it is deployed, behind a real socket, with workers that reach it over HTTP
alone."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import duckdb
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.accounts.shares import EVERYBODY, Resource
from penstock.api.serving.server import bind, listening
from penstock.graphs.snapshots.model import Snapshot, SnapshotStatus
from penstock.jobs.control_plane import client_factory
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.kinds import Kinds
from penstock.kit.backoff import Backoff
from penstock.kit.vault import new_key
from penstock.storage.manifest import read_manifest
from penstock.storage.provider import ObjectStoreProvider
from penstock.wiring.control_plane import build_control_plane
from penstock.wiring.default_handlers import default_handlers
from penstock.wiring.job_kinds import default_kinds
from penstock.wiring.settings import Settings
from penstock.worker.runtime import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from penstock.api.services import Graphs, Services
    from penstock.jobs.handler import Handlers
    from penstock.storage.contract import Store

TOKEN = "service-token-for-tests"
PATIENCE = 120.0
QUEUES = ("export", "publish")


async def until(true: Callable[[], Awaitable[object]], *, within: float = PATIENCE) -> None:
    """Looks until it is true; a test that waits in vain says for what."""
    deadline = time.monotonic() + within
    while not await true():
        assert time.monotonic() < deadline, f"not within {within:g} s: {true}"
        await asyncio.sleep(0.02)


def brisk() -> Kinds:
    """The deployed kinds with short heartbeats and backoffs, so cancels and retries are fast."""
    pace = {"heartbeat": 1, "backoff": Backoff(base=0.05, factor=1.0)}
    return Kinds(replace(policy, **pace) for policy in default_kinds())


def settings(home: Path, **changes: Any) -> Settings:
    """Callers on this machine are the proxy here, so tests may name users in X-Username; what tests
    send wrong on purpose is not counted against it."""
    fields = {
        "service_token": TOKEN,
        "operator_token": "operator",
        "secret_key": new_key(),
        "worker_port": 0,
        "trusted_headers": True,
        "trusted_proxies": "127.0.0.1,::1",
        "failed_logins_per_minute": 0,
        "user_requests_per_second": 0,
    }
    return Settings(home=home, **(fields | changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    services: Services
    settings: Settings
    http: httpx2.AsyncClient

    @property
    def graphs(self) -> Graphs:
        assert self.services.graphs is not None
        return self.services.graphs

    @property
    def store(self) -> Store:
        return ObjectStoreProvider(self.settings).open()

    async def ask(self, method: str, path: str, *, expect: int = 200, **body: Any) -> Any:
        answer = await self.http.request(method, path, json=body or None)
        assert answer.status_code == expect, answer.text
        document = answer.json()
        return document["data"] if "data" in document else document["error"]

    async def source(
        self, kind: str, config: dict[str, Any], secrets: dict[str, str] | None = None
    ) -> int:
        """One that everybody may use."""
        name = f"{kind}-{time.monotonic_ns()}"
        added = await self.graphs.sources.add(
            name=name, kind=kind, owner="me", config=config, secrets=secrets or {}
        )
        assert self.services.people is not None
        shared = Resource(type="data_source", id=str(added.data_source_id), owner="me")
        await self.services.people.shares.put(shared, EVERYBODY, "use", actor="me")
        return added.data_source_id

    async def snapshot(self, *jobs: dict[str, Any], name: str = "test") -> int:
        """A snapshot with its export jobs, made through the internal API."""
        snapshot = await self.graphs.snapshots.add(owner="me@example.com", name=name)
        if jobs:
            path = f"/api/internal/snapshots/{snapshot.snapshot_id}/export-jobs"
            await self.ask("POST", path, expect=201, jobs=list(jobs))
        return snapshot.snapshot_id

    async def jobs(self, snapshot_id: int) -> list[dict[str, Any]]:
        return list(
            (await self.ask("GET", f"/api/internal/snapshots/{snapshot_id}/export-jobs"))["jobs"]
        )

    async def over(self, snapshot_id: int, *, within: float = PATIENCE) -> Snapshot:
        async def is_it() -> bool:
            return not (await self.graphs.snapshots.get(snapshot_id)).status.open

        await until(is_it, within=within)
        return await self.graphs.snapshots.get(snapshot_id)

    async def ready(self, snapshot_id: int, *, within: float = PATIENCE) -> Snapshot:
        snapshot = await self.over(snapshot_id, within=within)
        assert snapshot.status is SnapshotStatus.READY, snapshot
        return snapshot

    async def failed(self, snapshot_id: int, *, within: float = PATIENCE) -> Snapshot:
        snapshot = await self.over(snapshot_id, within=within)
        assert snapshot.status is SnapshotStatus.FAILED, snapshot
        return snapshot

    async def table(self, snapshot: Snapshot, entity: str) -> pa.Table:
        """What a reader finds by way of the manifest, and nothing else."""
        assert snapshot.prefix is not None
        manifest = await read_manifest(self.store, snapshot.prefix)
        parts = manifest.entities[entity].parts
        return pa.concat_tables(
            [pq.read_table(pa.BufferReader(await self.store.get(p.path))) for p in parts]
        )

    async def files(self) -> list[str]:
        return sorted([info.key async for info in self.store.list("")])

    @asynccontextmanager
    async def working(
        self, *, handlers: Handlers | None = None, queues: Sequence[str] = QUEUES, **changes: Any
    ) -> AsyncIterator[Worker]:
        config = Settings(**(self.settings.model_dump() | changes))
        worker = Worker(
            client_factory(config, HttpJobStore),
            handlers or default_handlers(config),
            brisk(),
            name=f"here-{time.monotonic_ns()}",
            queues=queues,
            slots=20,
        )
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop(grace=0)
            await asyncio.wait_for(task, PATIENCE)


@asynccontextmanager
async def running_deployment(dsn: str, config: Settings) -> AsyncIterator[Deployment]:
    async with build_control_plane(config, dsn) as services:
        with bind("127.0.0.1", 0) as listener:
            async with listening(services, listener) as url:
                headers = {"Authorization": f"Bearer {TOKEN}", "X-Component": "worker"}
                async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
                    yield Deployment(
                        services=services,
                        settings=config.model_copy(update={"url": url}),
                        http=http,
                    )


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


def postgres(dsn: str) -> dict[str, Any]:
    """A database of a test as a source; the control plane's own is none."""
    services = urlsplit(dsn)
    where = parse_qs(services.query)
    place = {"host": where["host"][0], "port": int(where["port"][0])}
    return {"database": services.path.strip("/"), "user": where["user"][0], **place}


def postgres_secrets(dsn: str) -> dict[str, str]:
    """What opens that source: the password in the file that the DSN names."""
    [passfile] = parse_qs(urlsplit(dsn).query)["passfile"]
    return {"password": Path(passfile).read_text().strip().rpartition(":")[2]}


async def fill(dsn: str, rows: int) -> None:
    """Customers in a PostgreSQL."""
    async with connected(dsn) as connection:
        await connection.execute(
            "CREATE TABLE customers AS "
            "SELECT i::int8 AS id, 'c' || i AS name, (i % 90)::int4 AS age "
            f"FROM generate_series(0, {rows - 1}) AS i"
        )


def shop(folder: Path, *, customers: int = 1000) -> dict[str, Any]:
    """A DuckDB file with customers and purchases; how to open it as a source."""
    file = folder / "shop.duckdb"
    with duckdb.connect(str(file)) as db:
        db.execute(
            "CREATE TABLE customers AS "
            "SELECT range AS id, 'c' || range AS name, (range % 90)::INTEGER AS age "
            f"FROM range({customers})"
        )
        db.execute(
            "CREATE TABLE purchases AS SELECT range % 1000 AS customer, range AS item, "
            f"(range / 7.0)::DECIMAL(12, 2) AS price FROM range({customers * 3})"
        )
    return {"database": str(file)}


CUSTOMER = {
    "job_type": "node",
    "entity_name": "Customer",
    "sql": "SELECT id, name, age FROM customers",
    "columns": [
        {"name": "id", "type": "INT64"},
        {"name": "name", "type": "STRING"},
        {"name": "age", "type": "INT64"},
    ],
}
PURCHASED = {
    "job_type": "edge",
    "entity_name": "PURCHASED",
    "sql": "SELECT customer, item FROM purchases",
    "column_names": ["customer", "item"],
}
