"""Starts the NATS transport, where `queue` is `nats`."""

from __future__ import annotations

import importlib.util
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from prometheus_client import CollectorRegistry

    from penstock.api.services import Loops
    from penstock.jobs.announcer import Outbox
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics
    from penstock.wiring.settings import Settings

LOOK_SECONDS = 5.0


@asynccontextmanager
async def nats_transport(
    settings: Settings,
    db: Db,
    store: PgJobStore,
    outbox: Outbox | None,
    metrics: LoopMetrics,
    registry: CollectorRegistry,
) -> AsyncIterator[Loops]:
    """Run the transport until the block exits; yields its loops."""
    if outbox is None:
        yield ()
        return
    check_installed()
    from penstock.jobs.nats.settings import NatsSettings
    from penstock.jobs.nats.transport import NatsTransport

    nats = NatsSettings.of(settings)
    nats.tls()
    async with NatsTransport(db, store, outbox, nats, registry=registry) as transport:
        yield (transport.reannouncer(every=LOOK_SECONDS, metrics=metrics),)


def check_installed() -> None:
    if not is_installed():
        raise InvalidInput(
            "PENSTOCK_QUEUE is nats, and the client of NATS is not installed.",
            hint="pip install 'penstock[nats]'",
        )


def is_installed() -> bool:
    return importlib.util.find_spec("nats") is not None
