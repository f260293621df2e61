from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import pytest

from penstock.jobs.http_store import HttpJobStore
from tests.api.control_plane import SERVICE, Edge, plane
from tests.jobs.conformance import Clock, Subject
from tests.servers import pgbouncer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

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


@pytest.fixture(params=["postgres", "http", "pgbouncer"])
async def subject(
    request: pytest.FixtureRequest,
    database: str,
    services: Services,
    clock: Clock,
    edge: Edge,
    pooler: Callable[[str], str],
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
        else:
            yield Subject(store=services.store, services=services, clock=clock)
