from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.api.control_plane import plane
from tests.jobs.conformance import Subject
from tests.jobs.nats.streams import delete_streams, nats_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from penstock.jobs.nats.settings import NatsSettings
    from tests.jobs.conformance import Clock
    from tests.servers.nats import NatsServer

    Planes = Callable[[], AbstractAsyncContextManager[Subject]]


@pytest.fixture
async def nats(nats_server: NatsServer) -> AsyncIterator[NatsSettings]:
    settings = nats_settings(nats_server)
    yield settings
    await delete_streams(nats_server, settings)


@pytest.fixture
def planes(database: str, clock: Clock, nats: NatsSettings) -> Planes:
    """Control planes on one database and one NATS."""

    @asynccontextmanager
    async def another() -> AsyncIterator[Subject]:
        async with plane(database, nats=nats) as services:
            yield Subject(store=services.store, services=services, clock=clock)

    return another
