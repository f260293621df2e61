"""A storm: many schedules on one world, then calm, then the checker."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import asyncpg

from penstock.jobs.announcer import Outbox
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.kinds import Kinds
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.errors import Conflict, PenstockError, Unavailable
from tests.chaos import checker, history, nemesis
from tests.chaos.jobs import draw
from tests.chaos.kinds import KINDS
from tests.chaos.nats_faults import STREAMS
from tests.chaos.world import TOKEN, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from penstock.jobs.model import GroupSpec, JobSpec
    from tests.servers.nats import NatsServer

LOCKS = 12
MOST_LIVE = 120
CALM_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    schedules: int
    seconds: float
    faults: Counter[str]
    judgement: checker.Judgement
    exits: Counter[int] = field(default_factory=Counter)


async def run_faults(
    folder: Path,
    *,
    seed: int,
    schedules: int,
    with_nats: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Schedules `seed`, `seed + 1`, …; each can be replayed alone by its number."""
    journal = history.Journal(folder / "storm.jsonl")
    faults: Counter[str] = Counter()
    started = time.monotonic()
    async with World(folder, with_nats=with_nats) as world, _stores(world) as (http, direct):
        patron = Patron(http, direct, journal)
        raging: set[asyncio.Task[list[str]]] = set()
        for number in range(seed, seed + schedules):
            rng = Random(number)
            raging.add(asyncio.create_task(nemesis.rage(world, rng)))
            await patron.place(rng, f"s{number}")
            await _until_fewer(world, MOST_LIVE)
            done = {task for task in raging if task.done()}
            faults.update(name for task in done for name in task.result())
            raging -= done
            say(f"schedule {number} · {patron.accepted} jobs · {sum(faults.values())} faults")
            await asyncio.sleep(nemesis.WINDOW * 0.5)
        for task in raging:
            faults.update(await task)
        world.thaw()
        await _until_fewer(world, 0, patience=CALM_SECONDS)
        if world.nats is not None:
            await _until_acknowledged(world.nats)
        await asyncio.sleep(1.5)  # woken zombies have their say before the books are closed
        events = await history.read(folder, world.dsn)
        exits = Counter(world.exits.values())
    journal.close()
    return Report(seed, schedules, time.monotonic() - started, faults, checker.judge(events), exits)


@asynccontextmanager
async def _stores(world: World) -> AsyncIterator[tuple[HttpJobStore, PgJobStore]]:
    async with (
        HttpJobStore(world.url, TOKEN) as http,
        Db(world.dsn, size=4, settings=ENGINE_SETTINGS) as db,
        PgJobStore(db, Kinds(KINDS), outbox=Outbox() if world.with_nats else None) as direct,
    ):
        yield http, direct


class Patron:
    """Orders jobs through the storm, and writes down what was acknowledged."""

    def __init__(self, http: HttpJobStore, direct: PgJobStore, journal: history.Journal) -> None:
        self._http = http
        self._direct = direct
        self._journal = journal
        self.accepted = 0

    async def place(self, rng: Random, name: str) -> None:
        order = draw(rng, name, LOCKS)
        placed = [await self._enqueue(spec) for spec in order.jobs]
        for group, members in order.groups:
            await self._open(group, members)
        for place in order.doomed:
            if (job_id := placed[place]) is not None:
                await self._cancel(job_id)

    async def _enqueue(self, spec: JobSpec) -> int | None:
        """Until it is accepted or refused; its unique key makes asking again harmless."""
        while True:
            try:
                [added] = await self._http.enqueue([spec])
            except Unavailable:
                await asyncio.sleep(0.05)
            except Conflict:
                return None
            else:
                self.accepted += 1
                self._journal.note(
                    "accepted", job_id=added.job_id, kind=spec.kind, lock=spec.lock_key
                )
                return added.job_id

    async def _open(self, group: GroupSpec, members: list[JobSpec]) -> None:
        try:
            group_id, added = await self._direct.open_group(group, members)
        except PenstockError:
            return  # not acknowledged, so nothing is promised
        self._journal.note("group", group_id=group_id, members=len(members))
        for one in added:
            self.accepted += 1
            self._journal.note("accepted", job_id=one.job_id, kind="member", lock=None)

    async def _cancel(self, job_id: int) -> None:
        try:
            await self._http.cancel(job_id, actor="storm")
        except (Conflict, Unavailable):
            return  # it was over already, or nobody said yes
        self._journal.note("cancelled", job_id=job_id)


async def _until_acknowledged(server: NatsServer) -> None:
    """No message is left of a job that is over: a scaler would start workers for it."""
    async with asyncio.timeout(CALM_SECONDS):
        while True:
            try:
                lags = [await asyncio.to_thread(server.lag, stream) for stream in STREAMS]
            except (LookupError, OSError):
                lags = []  # a control plane makes the stream again
            if lags == [0, 0]:
                return
            await asyncio.sleep(0.2)


async def _until_fewer(world: World, most: int, patience: float = 60.0) -> None:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            connection = await asyncpg.connect(world.dsn, timeout=5)
            try:
                if await connection.fetchval("SELECT count(*) FROM penstock.live") <= most:
                    return
            finally:
                await connection.close()
        except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError):
            pass  # the database is down at this moment, or has just ended this connection
        await asyncio.sleep(0.05)
