"""Moves announcements from the outbox into a stream; one relay for each stream.

Every control plane has one, and rows are taken with SKIP LOCKED, so no announcement waits for a
leader. Rows leave the outbox in a transaction that commits after the stream has taken the messages:
a relay that dies in between sends them again under the same ids, and JetStream drops the copies.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.jobs.nats.connection import ORDER_HEADER, QUEUE_HEADER
from penstock.jobs.nats.errors import all_of, explained
from penstock.kit.background import BackgroundTask
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    import asyncpg
    from nats.js.client import JetStreamContext

    from penstock.jobs.announcer import Outbox
    from penstock.jobs.nats.connection import Connection
    from penstock.jobs.nats.metrics import NatsMetrics
    from penstock.jobs.nats.streams import Stream
    from penstock.kit.background import BackgroundHealth
    from penstock.kit.db import Db

SQL = load("penstock.jobs.nats.sql")
BATCH = 200
LOOK_SECONDS = 2.0
"""How soon rows are seen that another process wrote before it died."""
PUBLISH_SECONDS = 5.0
MESSAGE_ID_HEADER = "Nats-Msg-Id"


class Relay:
    def __init__(
        self,
        db: Db,
        connection: Connection,
        stream: Stream,
        outbox: Outbox,
        *,
        health: BackgroundHealth,
        metrics: NatsMetrics,
    ) -> None:
        self._db = db
        self._connection = connection
        self._stream = stream
        self._written = outbox.listen()
        self._metrics = metrics
        self._task = BackgroundTask(f"nats relay {stream.label}", self._run, health)

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        await self._task.stop()

    async def run_once(self) -> int:
        """Publish a batch; returns how many rows it had."""
        js = await self._connection.jetstream()
        async with self._db.transaction() as tx:
            rows = await tx.fetch(SQL.take_announcements, limit=BATCH, **self._stream.which())
            due = [row for row in rows if row["order_key"] is not None]
            with explained(f"publishing to the stream {self._stream.name}"):
                await all_of(self._publish(js, row) for row in due)
        self._metrics.published.labels(self._stream.label).inc(len(due))
        self._metrics.dropped.labels(self._stream.label).inc(len(rows) - len(due))
        return len(rows)

    async def _publish(self, js: JetStreamContext, row: asyncpg.Record) -> None:
        await js.publish(
            self._stream.subject,
            str(row["job_id"]).encode(),
            timeout=PUBLISH_SECONDS,
            stream=self._stream.name,
            headers={
                MESSAGE_ID_HEADER: str(row["message_id"]),
                QUEUE_HEADER: row["queue"],
                ORDER_HEADER: str(row["order_key"]),
            },
        )

    async def _run(self) -> None:
        while True:
            self._written.clear()
            rows = await self.run_once()
            self._task.works()
            if rows < BATCH:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._written.wait(), LOOK_SECONDS)
