from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import httpx2
import pytest

from tests.api.control_plane import OPERATOR, SERVICE, Edge, plane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from penstock.api.services import Services


@pytest.fixture(scope="session")
async def edge() -> AsyncIterator[Edge]:
    async with Edge().running() as running:
        yield running


@pytest.fixture
async def services(database: str) -> AsyncIterator[Services]:
    async with plane(database) as services:
        yield services


@pytest.fixture
def url(edge: Edge, services: Services) -> Iterator[str]:
    with edge.showing(services) as shown:
        yield shown


@pytest.fixture
async def anyone(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller without a credential."""
    async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture
async def operator(anyone: httpx2.AsyncClient) -> httpx2.AsyncClient:
    anyone.headers["Authorization"] = f"Bearer {OPERATOR}"
    return anyone


@pytest.fixture
def move_time(database: str) -> Callable[[str], Awaitable[None]]:
    """Sets the database's clock that far ahead: `await move_time("25 hours")`."""

    async def move(ahead: str) -> None:
        connection = await asyncpg.connect(database)
        try:
            await connection.execute(
                "CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz"
                " LANGUAGE sql STABLE PARALLEL SAFE "
                f"AS $$SELECT statement_timestamp() + interval '{ahead}'$$"
            )
        finally:
            await connection.close()

    return move


@pytest.fixture
async def worker(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller of the internal API, below the routes for jobs."""
    headers = {"Authorization": f"Bearer {SERVICE}", "X-Component": "worker"}
    base = f"{url}/api/internal/jobs"
    async with httpx2.AsyncClient(
        base_url=base, headers=headers, timeout=30, trust_env=False
    ) as client:
        yield client
