"""Schedules: a cron expression, a zone and a job spec; each tick makes at most one job.

The tick is the job's unique key, so a scheduler that dies between enqueuing and writing down the
next tick, or two schedulers at once, cannot make a second one. Ticks that were missed (a night
without a control plane) become one job. While the system drains nothing is enqueued and the tick
waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
from cronsim import CronSim, CronSimError

from penstock.jobs.row_mapping import spec_from_json, spec_to_json
from penstock.kit import logging
from penstock.kit.errors import Draining, InvalidInput, NotFound, PenstockError
from penstock.kit.ids import check_name
from penstock.kit.loop import Loop, LoopMetrics
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from datetime import datetime

    import asyncpg

    from penstock.jobs.model import JobId, JobSpec
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db, Tx

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 60.0
"""Seconds until a tick whose job was refused is tried again, twice as long each time: a lock may be
held for hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    name: str
    cron: str
    spec: JobSpec
    zone: str = "UTC"
    enabled: bool = True
    next_at: datetime | None = None
    last_at: datetime | None = None
    last_job: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    enqueued: int = 0
    failed: int = 0
    draining: bool = False

    @property
    def total(self) -> int:
        return self.enqueued + self.failed


class Schedules:
    """The table of schedules."""

    def __init__(self, db: Db, store: PgJobStore) -> None:
        self._db = db
        self._store = store

    async def put(self, schedule: Schedule, *, actor: str = "system") -> Schedule:
        check_name(schedule.name, "Schedule")
        self._store.check(schedule.spec)
        next_at = next_tick(schedule.cron, schedule.zone, await self._db.value(SQL.now))
        async with self._db.transaction() as tx:
            await tx.fetch(
                SQL.schedule_put,
                name=schedule.name,
                cron=schedule.cron,
                zone=schedule.zone,
                enabled=schedule.enabled,
                next_at=next_at,
                spec=orjson.dumps(spec_to_json(schedule.spec)).decode(),
            )
            detail = {"cron": schedule.cron, "zone": schedule.zone, "enabled": schedule.enabled}
            await self._store.audit(tx, actor, "schedule.put", f"schedule:{schedule.name}", detail)
        return await self.get(schedule.name)

    async def all(self) -> list[Schedule]:
        return [_schedule(r) for r in await self._db.fetch(SQL.schedule_list)]

    async def get(self, name: str) -> Schedule:
        row = await self._db.row(SQL.schedule_get, name=name)
        if row is None:
            raise NotFound(f"There is no schedule {name!r}.")
        return _schedule(row)

    async def drop(self, name: str, *, actor: str = "system") -> None:
        async with self._db.transaction() as tx:
            if not await tx.changed(SQL.schedule_drop, name=name):
                raise NotFound(f"There is no schedule {name!r}.")
            await self._store.audit(tx, actor, "schedule.drop", f"schedule:{name}", {})


def _schedule(row: asyncpg.Record) -> Schedule:
    return Schedule(**(dict(row) | {"spec": spec_from_json(orjson.loads(row["spec"]))}))


class Scheduler(Loop[Ticked]):
    name = "scheduler"
    exclusive = False

    def __init__(self, db: Db, store: PgJobStore, *, every: float, metrics: LoopMetrics) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._store = store

    async def run_once(self) -> Ticked:
        """Tick all that is due. A tick whose job is refused is tried again later, so it hides no
        other; while the system drains all of them wait."""
        enqueued = failed = 0
        try:
            while (ticked := await self._next()) is not None:
                enqueued, failed = enqueued + ticked, failed + (not ticked)
        except Draining:
            return Ticked(enqueued=enqueued, failed=failed, draining=True)
        return Ticked(enqueued=enqueued, failed=failed)

    async def _next(self) -> bool | None:
        """The tick that is due the longest, in a transaction of its own: several jobs of one
        transaction would have to take their lock keys in order. None, if nothing is due."""
        async with self._db.transaction() as tx:
            row = await tx.row(SQL.schedule_due)
            return None if row is None else await self._tick(tx, row)

    async def _tick(self, tx: Tx, row: asyncpg.Record) -> bool:
        if await self._enqueue(tx, row):
            return True
        pause = min(FIRST_PAUSE * 2 ** min(row["failures"], 10), LONGEST_PAUSE)
        await tx.changed(SQL.schedule_later, name=row["name"], seconds=pause)
        return False

    async def _enqueue(self, tx: Tx, row: asyncpg.Record) -> bool:
        try:
            async with tx.savepoint():
                spec = spec_from_json(orjson.loads(row["spec"]))
                key = f"schedule:{row['name']}:{row['next_at'].isoformat()}"
                [added] = await self._store.enqueue([replace(spec, unique_key=key)], tx=tx)
                later = next_tick(row["cron"], row["zone"], row["now"])
                await tx.changed(
                    SQL.schedule_done, name=row["name"], job_id=added.job_id, next_at=later
                )
        except Draining:
            raise
        except PenstockError as e:
            log.warning("schedule_failed", schedule=row["name"], error=e.message)
            return False
        except (KeyError, TypeError, ValueError):
            log.exception("schedule_unreadable", schedule=row["name"])
            return False
        return True


def next_tick(cron: str, zone: str, after: datetime) -> datetime:
    """The first tick after a moment, in the zone's own time (so that "03:00" stays 03:00 through a
    clock change)."""
    try:
        tick: datetime = next(CronSim(cron, after.astimezone(ZoneInfo(zone))))
    except CronSimError as e:
        raise InvalidInput(f"{cron[:80]!r} is not a cron expression: {e}.") from None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"{zone[:80]!r} is not a time zone.", hint="Use a name such as Europe/Vienna."
        ) from None
    except StopIteration:
        raise InvalidInput(f"{cron[:80]!r} never comes true.") from None
    return tick
