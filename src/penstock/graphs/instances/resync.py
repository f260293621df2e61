"""Instance resync: compares rows with processes and repairs what the controller missed.

The time is taken first, then processes are listed, then rows are read. So a process without a row
is an orphan (a row is deleted only after its process), and a row placed before that time without a
process has lost it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.instances.controller import LOG_TAIL, cause
from penstock.graphs.instances.model import Instance, InstanceStatus
from penstock.graphs.instances.repository import read
from penstock.graphs.snapshots.repository import SQL
from penstock.kit import logging
from penstock.kit.errors import NotFound
from penstock.kit.loop import Loop, LoopMetrics
from penstock.launchers.contract import Ended

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.graphs.instances.metrics import InstanceMetrics
    from penstock.graphs.instances.repository import Instances
    from penstock.graphs.instances.service import InstanceService
    from penstock.kit.db import Db
    from penstock.launchers.contract import Found, Handle, Launcher

log = logging.get(__name__)
STARTING_SECONDS = 600.0
STOPPING_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    orphans: int = 0
    missing: int = 0
    timed_out: int = 0
    forced: int = 0

    @property
    def total(self) -> int:
        return self.orphans + self.missing + self.timed_out + self.forced


class InstanceResync(Loop[Compared]):
    name = "reconcile"

    def __init__(
        self,
        db: Db,
        instances: Instances,
        steps: InstanceService,
        launcher: Launcher,
        *,
        every: float,
        metrics: LoopMetrics,
        counts: InstanceMetrics,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._instances = instances
        self._steps = steps
        self._launcher = launcher
        self._counts = counts

    async def run_once(self) -> Compared:
        began = time.monotonic()
        moment: datetime = await self._db.value(SQL.instance_moment)
        listed = {process.handle: process for process in await self._launcher.list()}
        rows = {instance.handle: instance for instance in await self._instances.pending()}
        timed_out, forced = await self._overdue()
        compared = Compared(
            orphans=await self._end_orphans(listed, rows),
            missing=await self._fail_missing(listed, rows, moment),
            timed_out=timed_out,
            forced=forced,
        )
        self._count(compared, time.monotonic() - began)
        self._instances.on_change()
        return compared

    async def _end_orphans(self, listed: dict[Handle, Found], rows: dict[Handle, Instance]) -> int:
        """Also removes the files of ended runs that no row refers to."""
        orphans = [process for handle, process in listed.items() if handle not in rows]
        for process in orphans:
            log.warning("orphan_found", instance_id=process.handle.instance_id, alive=process.alive)
            await self._launcher.stop(process.handle, grace=0)
            await self._launcher.remove(process.handle)
        return sum(process.alive for process in orphans)

    async def _fail_missing(
        self, listed: dict[Handle, Found], rows: dict[Handle, Instance], moment: datetime
    ) -> int:
        missing = 0
        for handle, instance in rows.items():
            before = instance.launched_at is not None and instance.launched_at < moment
            if not (instance.placed and instance.status.lives and before):
                continue
            # A list goes by labels, which people edit; a name stays.
            process = listed.get(handle) or await self._launcher.inspect(handle)
            if process is None or not process.alive:
                ended = Ended() if process is None or process.ended is None else process.ended
                tail = await self._launcher.logs(handle, tail=LOG_TAIL)
                missing += await self._fail(instance, ended, tail)
        return missing

    async def _fail(self, instance: Instance, ended: Ended, tail: str) -> bool:
        try:
            failure = cause(instance, ended, tail)
            return await self._steps.has_failed(
                instance.instance_id, failure, launch=instance.launch
            )
        except NotFound:
            return False

    async def _overdue(self) -> tuple[int, int]:
        timed_out = forced = 0
        rows = await self._db.fetch(
            SQL.instance_overdue, starting=STARTING_SECONDS, stopping=STOPPING_SECONDS
        )
        for instance in map(read, rows):
            if instance.status is InstanceStatus.STOPPING:
                forced += await self._db.changed(
                    SQL.instance_force, instance_id=instance.instance_id
                )
            else:
                message = f"The instance did not start within {STARTING_SECONDS / 60:g} minutes."
                timed_out += await self._steps.time_out(instance, message)
        return timed_out, forced

    def _count(self, compared: Compared, seconds: float) -> None:
        self._counts.passes.inc()
        self._counts.duration.observe(seconds)
        self._counts.orphans.inc(compared.orphans)
        self._counts.missing.inc(compared.missing)
        self._counts.drift.inc(compared.missing + compared.timed_out)
