"""The desk where maintenance is asked for: a table is looked up, its lock is taken with the job, or both are not.

PyIceberg blocks, so all that reads a catalog runs in threads; and it is loaded by the first question, for a control
plane without catalogs needs none of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.jobs.model import JobSpec
from penstock.kit import logging
from penstock.kit.clock import SYSTEM
from penstock.kit.errors import Draining, PenstockError
from penstock.maintenance.errors import NoSuchTable, Refused
from penstock.maintenance.guarding import opted_out
from penstock.maintenance.health import judge
from penstock.maintenance.order import EMBEDDED, Order, TableName
from penstock.maintenance.run import Run
from penstock.maintenance.tier import Tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table import Table

    from penstock.jobs.store import PgJobStore
    from penstock.kit.clock import Clock
    from penstock.kit.db import Db
    from penstock.maintenance.action import Action, Outcome
    from penstock.maintenance.catalog_pool import CatalogPool
    from penstock.maintenance.facts import Facts
    from penstock.maintenance.health import Health
    from penstock.maintenance.store import MaintenanceStore

log = logging.get(__name__)
AT_ONCE = 4


class MaintenanceDesk:
    def __init__(
        self, db: Db, jobs: PgJobStore, store: MaintenanceStore, pool: CatalogPool, *, clock: Clock = SYSTEM
    ) -> None:
        self._db = db
        self._jobs = jobs
        self._clock = clock
        self.store = store
        self.pool = pool

    def name(self, catalog: str | None, db: str, table: str) -> TableName:
        return TableName(catalog=self.pool.catalogs.get(catalog).name, db=db, table=table)

    # asking for work

    async def check_open(self) -> None:
        if (await self._jobs.control())["draining"]:
            raise Draining("The system is draining: no maintenance is taken.", hint="Try again after the drain.")

    async def submit(self, order: Order, *, actor: str, run_id: int | None = None, policy: str | None = None) -> int:
        """The job's id; ResourceLocked names the job that holds the table."""
        if order.engine != EMBEDDED and order.engine not in (engines := self.pool.catalogs.engines):
            known = ", ".join((EMBEDDED, *engines))
            raise Refused(f"There is no engine {order.engine[:40]!r}.", hint=f"Known engines: {known}.")
        snapshot_id = await self._known(order.name)
        spec = JobSpec(kind=order.kind, payload=order.to_json(), lock_key=order.name.lock_key, created_by=actor)
        async with self._db.transaction() as tx:
            [added] = await self._jobs.enqueue([spec], tx=tx)
            await self.store.add_job(
                tx, added.job_id, order.name, run_id=run_id, policy=policy, snapshot_id=snapshot_id
            )
        await self._audit(order, added.job_id, actor)
        return added.job_id

    async def _known(self, name: TableName) -> int | None:
        """A table that is in the copy, or in the catalog; its current snapshot."""
        seen = await self.store.seen(name)
        if seen is not None and seen.error is None:
            found: int | None = seen.facts.get("snapshot_id")
            return found
        facts, _ = await self.look(name, Tier.METADATA)
        return facts.snapshot_id

    async def _audit(self, order: Order, job_id: int, actor: str) -> None:
        detail = {"job_id": job_id, "actions": [str(a.name) for a in order.actions], "reason": order.reason}
        try:
            async with self._db.transaction() as tx:
                await self._jobs.audit(tx, actor, "table.maintenance", order.name.lock_key, detail)
        except Exception as e:
            log.warning("audit_not_written", job_id=job_id, error=type(e).__name__)

    # looking

    async def look(self, name: TableName, tier: Tier) -> tuple[Facts, Health]:
        table = await asyncio.to_thread(self.pool.load, name)
        return await self._judge(name, table, tier)

    async def plan(self, name: TableName, actions: Sequence[Action]) -> list[Outcome]:
        """What each action would do to the table as it is now, each for itself."""
        from penstock.maintenance import embedded

        run = Run(job_id=0, attempt="plan", now=self._clock.now)
        lake = await asyncio.to_thread(self.pool.lake, name)
        return [await asyncio.to_thread(embedded.plan, lake, run, action) for action in actions]

    async def refresh(self, catalog: str | None = None, tier: Tier = Tier.MANIFESTS) -> dict[str, int]:
        """Look at every table of one catalog or of all; how many were seen, and how many could not be."""
        seen = failed = forgotten = 0
        for config in [self.pool.catalogs.get(catalog)] if catalog else list(self.pool.catalogs):
            names = await asyncio.to_thread(self.pool.names, config.name)
            room = asyncio.Semaphore(AT_ONCE)
            told = await asyncio.gather(
                *(self._refresh_one(room, TableName(catalog=config.name, db=d, table=t), tier) for d, t in names)
            )
            seen, failed = seen + sum(told), failed + len(told) - sum(told)
            forgotten += await self.store.forget_others(config.name, names)
        return {"seen": seen, "failed": failed, "forgotten": forgotten}

    async def _refresh_one(self, room: asyncio.Semaphore, name: TableName, tier: Tier) -> bool:
        async with room:
            try:
                await self.look(name, tier)
            except NoSuchTable:
                return False
            except Exception as e:
                said = e.message if isinstance(e, PenstockError) else type(e).__name__
                log.warning("table_not_seen", table=str(name), error=said)
                await self.store.could_not_see(name, said)
                return False
            return True

    async def _judge(self, name: TableName, table: Table, tier: Tier) -> tuple[Facts, Health]:
        from penstock.maintenance.facts import look

        now = self._clock.now()
        facts = await asyncio.to_thread(lambda: look(table, tier, now=now))
        health = judge(facts, now_ms=int(now.timestamp() * 1000))
        await self.store.saw(name, facts, health, enabled=opted_out(table.properties) is None)
        return facts, health
