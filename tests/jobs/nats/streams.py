"""Settings and streams of one test on a shared NATS server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import nats
from nats.js.errors import NotFoundError

from penstock.jobs.nats.reannouncer import Reannouncer
from penstock.jobs.nats.settings import NatsSettings
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nats.js.client import JetStreamContext

    from tests.jobs.conformance import Subject
    from tests.servers.nats import NatsServer

_numbers = count(1)


def nats_settings(server: NatsServer, **values: Any) -> NatsSettings:
    """Streams that no other test has."""
    options = {"nats_prefix": f"test{next(_numbers)}", "nats_url": server.url} | values
    return NatsSettings.of(Settings(queue="nats", nats_stream_mb=1, **options))


@asynccontextmanager
async def jetstream(server: NatsServer) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(server.url)
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def delete_streams(server: NatsServer, settings: NatsSettings) -> None:
    async with jetstream(server) as js:
        for stream in settings.streams:
            with suppress(NotFoundError):
                await js.delete_stream(stream.name)


def announcer(subject: Subject) -> Reannouncer:
    return next(loop for loop in subject.services.loops if isinstance(loop, Reannouncer))


async def connected(subject: Subject) -> None:
    """Wait until the control plane has its streams."""
    async with asyncio.timeout(20):
        while not subject.services.registry.get_sample_value("penstock_nats_connected"):  # noqa: ASYNC110 - a gauge has no event
            await asyncio.sleep(0.01)
