from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest

from penstock.jobs.http_store import HttpJobStore
from tests.api.control_plane import SERVICE, Edge, plane
from tests.jobs.conformance import Clock, Subject
from tests.jobs.nats.streams import delete_streams, nats_settings
from tests.servers import pgbouncer
from tests.servers.nats import NatsServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from penstock.api.services import Services
    from penstock.kit.postgres import Cluster


@pytest.fixture
async def clock(database: str) -> AsyncIterator[Clock]:
    connection = await asyncpg.connect(database)
    yield Clock(connection)
    await connection.close()


@pytest.fixture(scope="session")
async def edge() -> AsyncIterator[Edge]:
    async with Edge().running() as running:
        yield running


@pytest.fixture
async def services(database: str) -> AsyncIterator[Services]:
    async with plane(database) as services:
        yield services


@pytest.fixture(scope="session")
def pooler(pg: Cluster) -> Iterator[Callable[[str], str]]:
    with pgbouncer.pooler(pg) as address:
        yield address


@pytest.fixture(scope="session")
def nats_server(short_dir: Path) -> Iterator[NatsServer]:
    with NatsServer(short_dir / "nats") as server:
        yield server


@pytest.fixture(params=["postgres", "http", "pgbouncer", "nats"])
async def subject(
    request: pytest.FixtureRequest,
    database: str,
    services: Services,
    clock: Clock,
    edge: Edge,
    pooler: Callable[[str], str],
    nats_server: NatsServer,
) -> AsyncIterator[Subject]:
    async with AsyncExitStack() as stack:
        if request.param == "http":
            url = stack.enter_context(edge.showing(services))
            store = await stack.enter_async_context(HttpJobStore(url, SERVICE))
            yield Subject(store=store, services=services, clock=clock)
        elif request.param == "pgbouncer":
            address = pooler(urlsplit(database).path.removeprefix("/"))
            pooled = await stack.enter_async_context(plane(database, pooler=address))
            yield Subject(store=pooled.store, services=pooled, clock=clock)
        elif request.param == "nats":
            nats = nats_settings(nats_server)
            announcing = await stack.enter_async_context(plane(database, nats=nats))
            yield Subject(store=announcing.store, services=announcing, clock=clock)
            stack.push_async_callback(delete_streams, nats_server, nats)
        else:
            yield Subject(store=services.store, services=services, clock=clock)
