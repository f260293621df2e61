"""Holds each message of a stream until its job is over; one for each stream in a control plane.

A scaler reads the consumer's lag: messages that nobody has received, and those received and not
acknowledged. So a message stays unacknowledged while its job is ready or running, and is
acknowledged when the job was ended, parked or handed back. What decides is the job's row, looked at
when this process wrote the change, and every few seconds for what others wrote. The look is also
the message's heartbeat: as long as the row says that the job is ready or runs, JetStream is told
that work is in progress. A worker whose heartbeats stop loses its row to the reaper, and the
message goes with it.

A message stands for one time of being ready. When its job comes back to the queue, another
announcement was written in that commit, and the earlier message is acknowledged.

A control plane that dies gives its messages up after the consumer's ack wait, and another gets
them. An acknowledgement that is lost brings the message again; then its job is over.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nats.errors
from nats.js.errors import NotFoundError

from penstock.jobs.nats.errors import NatsUnavailable, all_of, explained
from penstock.jobs.nats.streams import CONSUMER
from penstock.kit import logging
from penstock.kit.background import BackgroundTask, cancel_until_done
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    import asyncpg
    from nats.aio.msg import Msg
    from nats.js.client import JetStreamContext

    from penstock.jobs.announcer import Outbox
    from penstock.jobs.model import JobId
    from penstock.jobs.nats.connection import Connection
    from penstock.jobs.nats.metrics import NatsMetrics
    from penstock.jobs.nats.streams import Stream
    from penstock.jobs.notifier import Notifier
    from penstock.kit.background import BackgroundHealth
    from penstock.kit.db import Db

SQL = load("penstock.jobs.nats.sql")
log = logging.get(__name__)
MOST_HELD = 1000
FETCH_BATCH = 200
FETCH_SECONDS = 1.0
"""The client returns what came when this is over, unless the batch was full before."""
SHORT_SECONDS = 0.2
"""A fetch that returns nothing sooner than it was asked to is not repeated at once."""
LOOK_SECONDS = 5.0
"""Several looks to an ack wait, so that a slow one does not lose the message."""
ACK_SECONDS = 3.0
GIVE_BACK_SECONDS = 1.0
MOST_DIGITS = 19


@dataclass(slots=True)
class Delivery:
    """A message, and the attempt of its job that was seen last; None while the job is ready."""

    message: Msg
    attempt_id: UUID | None

    @property
    def sequence(self) -> int:
        return self.message.metadata.sequence.stream

    def stands_for(self, row: asyncpg.Record | None) -> bool:
        """Whether the job is still ready or running as it was announced by this message."""
        if row is None:
            return False
        if self.attempt_id is None:
            self.attempt_id = row["attempt_id"]
        return bool(self.attempt_id == row["attempt_id"])


class Deliveries:
    def __init__(
        self,
        db: Db,
        connection: Connection,
        stream: Stream,
        outbox: Outbox,
        notifier: Notifier,
        *,
        health: BackgroundHealth,
        metrics: NatsMetrics,
    ) -> None:
        self._db = db
        self._connection = connection
        self._stream = stream
        self._notifier = notifier
        self._metrics = metrics
        self._held: dict[JobId, Delivery] = {}
        self._left: set[JobId] = set()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        outbox.on_left(self._on_left)
        self._task = BackgroundTask(f"nats consumer {stream.label}", self._run, health)

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        await self._task.stop()

    def _on_left(self, job_ids: Collection[JobId]) -> None:
        if left := self._held.keys() & job_ids:
            self._left |= left
            self._news.set()

    async def _run(self) -> None:
        js = await self._connection.jetstream()
        self._held = {}
        with explained(f"opening the consumer of the stream {self._stream.name}"):
            source = await js.pull_subscribe_bind(CONSUMER, stream=self._stream.name)
        tasks = [
            asyncio.create_task(self._receive(source)),
            asyncio.create_task(self._follow(js)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await cancel_until_done(*tasks)
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._give_back(source)

    async def _receive(self, source: JetStreamContext.PullSubscription) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._room.clear()
            room = MOST_HELD - len(self._held)
            if room <= 0:
                await self._room.wait()
                continue
            began = loop.time()
            messages = await self._fetch(source, min(room, FETCH_BATCH))
            self._task.works()
            if messages:
                await self._take(messages)
            elif loop.time() - began < SHORT_SECONDS:
                await asyncio.sleep(SHORT_SECONDS)

    async def _fetch(self, source: JetStreamContext.PullSubscription, limit: int) -> list[Msg]:
        with explained(f"receiving from the stream {self._stream.name}"):
            try:
                return await source.fetch(limit, timeout=FETCH_SECONDS)
            except (nats.errors.TimeoutError, TimeoutError):
                return []

    async def _take(self, messages: Sequence[Msg]) -> None:
        """Hold what still stands for a job, wake who waits for it, and acknowledge the rest."""
        self._metrics.delivered.labels(self._stream.label).inc(len(messages))
        announced: dict[JobId, list[Msg]] = {}
        over = []
        for message in messages:
            if message.data.isdigit() and len(message.data) < MOST_DIGITS:
                announced.setdefault(int(message.data), []).append(message)
            else:
                log.warning("nats_message_ignored", stream=self._stream.name)
                over.append(message)
        rows = await self._standings(list(announced))
        for job_id, copies in announced.items():
            for message in copies:
                over += self._hold(job_id, message, rows.get(job_id))
        for row in rows.values():
            if row["attempt_id"] is None:
                self._notifier.wake(row["queue"], row["order_key"])
        await self._acknowledge(over)

    def _hold(self, job_id: JobId, message: Msg, row: asyncpg.Record | None) -> list[Msg]:
        """What is to be acknowledged: the message, or the earlier one that it replaces."""
        earlier = self._held.get(job_id)
        new = Delivery(message, None)
        if not new.stands_for(row):
            return [message]
        self._held[job_id] = new
        return [earlier.message] if earlier and earlier.sequence != new.sequence else []

    async def _follow(self, js: JetStreamContext) -> None:
        """Look at the jobs whose messages are held: at those that were written here at once, at all
        now and then."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if loop.time() >= due:
                await self._count(js)
                await self._look(list(self._held))
                await self._in_progress()
                due = loop.time() + LOOK_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(0.0, due - loop.time()))
            self._news.clear()
            left, self._left = self._left, set()
            await self._look([job_id for job_id in left if job_id in self._held])

    async def _look(self, job_ids: Sequence[JobId]) -> None:
        for start in range(0, len(job_ids), FETCH_BATCH):
            some = job_ids[start : start + FETCH_BATCH]
            rows = await self._standings(some)
            over = [
                self._held.pop(job_id).message
                for job_id in some
                if job_id in self._held and not self._held[job_id].stands_for(rows.get(job_id))
            ]
            await self._acknowledge(over)
        self._room.set()

    async def _standings(self, job_ids: Sequence[JobId]) -> dict[JobId, asyncpg.Record]:
        rows = await self._db.fetch(SQL.standings, job_ids=job_ids)
        return {row["job_id"]: row for row in rows}

    async def _acknowledge(self, messages: Sequence[Msg]) -> None:
        if not messages:
            return
        with explained(f"acknowledging to the stream {self._stream.name}"):
            await all_of(message.ack_sync(timeout=ACK_SECONDS) for message in messages)
        self._metrics.acknowledged.labels(self._stream.label).inc(len(messages))
        self._metrics.held.labels(self._stream.label).set(len(self._held))

    async def _in_progress(self) -> None:
        with explained(f"prolonging messages of the stream {self._stream.name}"):
            for delivery in list(self._held.values()):
                await delivery.message.in_progress()
        self._metrics.held.labels(self._stream.label).set(len(self._held))

    async def _count(self, js: JetStreamContext) -> None:
        with explained(f"asking for the state of the stream {self._stream.name}"):
            try:
                info = await js.consumer_info(self._stream.name, CONSUMER)
            except NotFoundError:
                self._connection.begin_anew()
                raise NatsUnavailable(
                    f"The NATS stream {self._stream.name} or its consumer was deleted; it is made"
                    f" again."
                ) from None
        self._metrics.pending.labels(self._stream.label).set(info.num_pending or 0)
        self._metrics.unacknowledged.labels(self._stream.label).set(info.num_ack_pending or 0)

    async def _give_back(self, source: JetStreamContext.PullSubscription) -> None:
        """Let another control plane have the messages at once. A request of ours that still waits
        at the server would be given them again, so it goes first."""
        messages, self._held = [d.message for d in self._held.values()], {}
        self._metrics.held.labels(self._stream.label).set(0)
        if self._connection.ready:
            with suppress(Exception):
                async with asyncio.timeout(GIVE_BACK_SECONDS):
                    await source.unsubscribe()
                    for message in messages:
                        await message.nak()
                    await self._connection.flush()
