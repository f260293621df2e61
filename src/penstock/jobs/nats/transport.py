"""All tasks of the transport in one control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from penstock.jobs.nats.connection import Connection
from penstock.jobs.nats.deliveries import Deliveries
from penstock.jobs.nats.metrics import NatsMetrics
from penstock.jobs.nats.reannouncer import Reannouncer
from penstock.jobs.nats.relay import Relay

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from penstock.jobs.announcer import Outbox
    from penstock.jobs.nats.settings import NatsSettings
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics


class NatsTransport:
    """`async with NatsTransport(…):`, for as long as the store that writes the outbox is open."""

    def __init__(
        self,
        db: Db,
        store: PgJobStore,
        outbox: Outbox,
        settings: NatsSettings,
        *,
        registry: CollectorRegistry,
    ) -> None:
        health = store.metrics.background
        self._db = db
        self._store = store
        self._outbox = outbox
        self._streams = settings.streams
        self._metrics = metrics = NatsMetrics(registry)
        self.connection = connection = Connection(
            settings, wake=store.notifier.wake, health=health, metrics=metrics
        )
        self._tasks = [
            task
            for stream in settings.streams
            for task in (
                Relay(db, connection, stream, outbox, health=health, metrics=metrics),
                Deliveries(
                    db,
                    connection,
                    stream,
                    outbox,
                    store.notifier,
                    health=health,
                    metrics=metrics,
                ),
            )
        ]

    def reannouncer(self, *, every: float, metrics: LoopMetrics) -> Reannouncer:
        return Reannouncer(
            self._db,
            self._store,
            self.connection,
            self._streams,
            self._outbox,
            every=every,
            metrics=metrics,
            nats_metrics=self._metrics,
        )

    async def __aenter__(self) -> Self:
        self.connection.start()
        for task in self._tasks:
            task.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            await task.stop()
        await self.connection.stop()
