"""Announces again what a stream has lost, and what comes due while no worker waits.

A stream may be deleted, purged or restored to an earlier state; then jobs are ready or run for
which there is no message. Which ones cannot be seen from outside, but how many can: a stream with
fewer messages than there are jobs lacks the difference. When several looks in a row find it, as
many jobs are announced once more, under new message ids, for JetStream would drop the old ones as
copies. A message too many is acknowledged with its job, so a wrong guess costs nothing.

Every control plane looks, for its own metrics; they take turns, so what one has announced again the
next one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.jobs.nats.errors import NatsUnavailable, explained
from penstock.jobs.nats.streams import CONSUMER
from penstock.kit import logging
from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from penstock.jobs.announcer import Outbox
    from penstock.jobs.nats.connection import Connection
    from penstock.jobs.nats.metrics import NatsMetrics
    from penstock.jobs.nats.streams import Stream
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db

SQL = load("penstock.jobs.nats.sql")
log = logging.get(__name__)
MOST_COUNTED = 10_000
"""A stream with this many messages is worked at; whether it lacks some is seen later."""
BATCH = 1000
TURN = 0x6E617473  # "nats"
LOOKS = 3
"""Jobs and messages are not counted at one moment, so a difference must last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    again: int = 0

    @property
    def total(self) -> int:
        return self.again


class Reannouncer(Loop[Announced]):
    name = "nats announcements"
    exclusive = False

    def __init__(
        self,
        db: Db,
        store: PgJobStore,
        connection: Connection,
        streams: tuple[Stream, ...],
        outbox: Outbox,
        *,
        every: float,
        metrics: LoopMetrics,
        nats_metrics: NatsMetrics,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._store = store
        self._connection = connection
        self._streams = streams
        self._outbox = outbox
        self._nats_metrics = nats_metrics
        self._missing: dict[str, list[int]] = {stream.label: [] for stream in streams}

    async def run_once(self) -> Announced:
        await self._store.promote()
        rows = await self._db.value(SQL.outbox_rows, most=MOST_COUNTED)
        self._nats_metrics.outbox.set(rows)
        if not self._connection.ready:
            return Announced()
        try:
            async with self._db.turn(TURN) as mine:
                streams = self._streams if mine else ()
                return Announced(again=sum([await self._announce(s) for s in streams]))
        except NatsUnavailable as e:
            log.warning("nats_not_asked", error=str(e))
            return Announced()

    async def _announce(self, stream: Stream) -> int:
        looks = self._missing[stream.label]
        looks.append(await self._lacking(stream))
        del looks[:-LOOKS]
        lacking = min(looks) if len(looks) == LOOKS else 0
        if lacking <= 0:
            return 0
        looks.clear()
        again = await self._db.changed(
            SQL.announce_again, limit=min(lacking, BATCH), **stream.which()
        )
        self._outbox.written()
        self._nats_metrics.announced_again.labels(stream.label).inc(again)
        log.warning("nats_messages_missing", stream=stream.name, announced_again=again)
        return again

    async def _lacking(self, stream: Stream) -> int:
        """How many more jobs there are than messages, sent or still to be sent."""
        js = await self._connection.jetstream()
        with explained(f"asking for the state of the stream {stream.name}"):
            info = await js.consumer_info(stream.name, CONSUMER)
        messages = (info.num_pending or 0) + (info.num_ack_pending or 0)
        if messages >= MOST_COUNTED:
            return 0
        row = await self._db.row(SQL.unannounced, most=MOST_COUNTED, **stream.which())
        return 0 if row is None else int(row["jobs"] - row["waiting"] - messages)
