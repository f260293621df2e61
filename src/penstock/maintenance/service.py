"""The maintenance service: submit jobs, plan actions and refresh the health of tables.

A job and the lock of its table are created in one transaction. PyIceberg blocks, so everything that
reads a catalog runs in threads; it is imported on first use, because a control plane without
catalogs does not need it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.jobs.model import JobSpec
from penstock.kit import logging
from penstock.kit.clock import SYSTEM
from penstock.kit.errors import Draining, PenstockError, Unavailable
from penstock.maintenance.actions.context import ActionContext
from penstock.maintenance.errors import NoSuchTable, Refused, TableUnreadable
from penstock.maintenance.payloads import EMBEDDED, Order, TableName
from penstock.maintenance.tables.assessment.health import judge
from penstock.maintenance.tables.assessment.tier import Tier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyiceberg.table import Table

    from penstock.jobs.store import PgJobStore
    from penstock.kit.clock import Clock
    from penstock.kit.db import Db
    from penstock.maintenance.actions.model import Action, Outcome
    from penstock.maintenance.policies.repository import Policies
    from penstock.maintenance.repository import MaintenanceStore
    from penstock.maintenance.tables.assessment.facts import Facts
    from penstock.maintenance.tables.assessment.health import Health
    from penstock.maintenance.tables.catalog.catalog_pool import CatalogPool

log = logging.get(__name__)
AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    seen: int = 0
    failed: int = 0
    """Tables that could not be read."""
    forgotten: int = 0
    unavailable: tuple[str, ...] = ()
    """Catalogs that could not be listed."""


class MaintenanceService:
    def __init__(
        self,
        db: Db,
        jobs: PgJobStore,
        store: MaintenanceStore,
        pool: CatalogPool,
        policies: Policies,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._db = db
        self._jobs = jobs
        self._policies = policies
        self._clock = clock
        self.store = store
        self.pool = pool

    def name(self, catalog: str | None, db: str, table: str) -> TableName:
        return TableName(catalog=self.pool.catalogs.get(catalog).name, db=db, table=table)

    # submitting jobs

    async def check_open(self) -> None:
        if (await self._jobs.control())["draining"]:
            raise Draining(
                "The system is draining and accepts no maintenance jobs.",
                hint="Try again after the drain.",
            )

    async def submit(
        self, order: Order, *, actor: str, run_id: int | None = None, policy: str | None = None
    ) -> int:
        """Enqueue a job and return its id; ResourceLocked names the job that holds the table."""
        if order.engine != EMBEDDED and order.engine not in (engines := self.pool.catalogs.engines):
            names = ", ".join((EMBEDDED, *engines))
            raise Refused(f"Unknown engine {order.engine[:40]!r}.", hint=f"Known engines: {names}.")
        snapshot_id = await self._current_snapshot(order.name)
        spec = JobSpec(
            kind=order.kind, payload=order.to_json(), lock_key=order.name.lock_key, created_by=actor
        )
        async with self._db.transaction() as tx:
            [added] = await self._jobs.enqueue([spec], tx=tx)
            await self.store.add_job(
                tx, added.job_id, order.name, run_id=run_id, policy=policy, snapshot_id=snapshot_id
            )
        await self._audit(order, added.job_id, actor)
        return added.job_id

    async def _current_snapshot(self, name: TableName) -> int | None:
        """The current snapshot of a table, from the last refresh or else from the catalog."""
        seen = await self.store.seen(name)
        if seen is not None and seen.error is None:
            return seen.facts.get("snapshot_id")
        facts, _ = await self.look(name, Tier.METADATA)
        return facts.snapshot_id

    async def _audit(self, order: Order, job_id: int, actor: str) -> None:
        detail = {
            "job_id": job_id,
            "actions": [str(a.name) for a in order.actions],
            "reason": order.reason,
        }
        try:
            async with self._db.transaction() as tx:
                await self._jobs.audit(tx, actor, "table.maintenance", order.name.lock_key, detail)
        except Exception as e:
            log.warning("audit_not_written", job_id=job_id, error=type(e).__name__)

    # reading tables

    async def look(
        self, name: TableName, tier: Tier, *, afresh: bool = False
    ) -> tuple[Facts, Health]:
        """Read and store the facts and health of a table. Manifests are read again only if the
        snapshot changed, or if `afresh`."""
        table = await asyncio.to_thread(self.pool.load, name)
        return await self._judge(name, table, tier, afresh=afresh)

    async def plan(self, name: TableName, actions: Sequence[Action]) -> list[Outcome]:
        """What each action by itself would do to the current table."""
        from penstock.maintenance.engines import embedded
        from penstock.maintenance.tables.ownership.neighbors import TablePointer

        context = ActionContext(job_id=0, attempt="plan", now=self._clock.now)
        async with self._db.transaction() as tx:
            others = await self.store.other_tables(tx, name, self.pool.catalogs.shared)
        if self.pool.catalogs.get(name.catalog).shared:  # its TableAccess reads them itself
            others = [table for table in others if table.metadata_location is None]
        pointers = [TablePointer.read(table) for table in others]
        table_access = await asyncio.to_thread(self.pool.table_access, name, pointers)
        return [
            await asyncio.to_thread(embedded.plan, table_access, context, action)
            for action in actions
        ]

    async def refresh(
        self, catalog: str | None = None, tier: Tier = Tier.MANIFESTS, *, afresh: bool = False
    ) -> Refreshed:
        """Refresh every table of one catalog or of all; unavailable catalogs are skipped."""
        refreshed = Refreshed()
        for config in [self.pool.catalogs.get(catalog)] if catalog else list(self.pool.catalogs):
            try:
                names = await asyncio.to_thread(self.pool.names, config.name)
            except PenstockError as e:
                if catalog:
                    raise
                log.warning("catalog_not_listed", catalog=config.name, error=e.message)
                refreshed = replace(refreshed, unavailable=(*refreshed.unavailable, config.name))
                continue
            slots = asyncio.Semaphore(AT_ONCE)
            tables = [TableName(catalog=config.name, db=db, table=table) for db, table in names]
            seen = await asyncio.gather(
                *(self._refresh_one(slots, table, tier, afresh=afresh) for table in tables)
            )
            forgotten = await self.store.forget_others(config.name, names)
            refreshed = replace(
                refreshed,
                seen=refreshed.seen + sum(seen),
                failed=refreshed.failed + len(seen) - sum(seen),
                forgotten=refreshed.forgotten + forgotten,
            )
        return refreshed

    async def _refresh_one(
        self, slots: asyncio.Semaphore, name: TableName, tier: Tier, *, afresh: bool
    ) -> bool:
        async with slots:
            try:
                await self.look(name, tier, afresh=afresh)
            except NoSuchTable:
                return False
            except (TableUnreadable, Refused, Unavailable) as e:
                log.warning("table_not_seen", table=str(name), error=e.message)
                await self.store.record_error(name, e.message)
                return False
            return True

    async def _judge(
        self, name: TableName, table: Table, tier: Tier, *, afresh: bool
    ) -> tuple[Facts, Health]:
        """Reading only the metadata never overwrites stored manifest facts of the same snapshot."""
        from penstock.maintenance.tables.assessment.expectation import Judged
        from penstock.maintenance.tables.assessment.facts import look, look_again
        from penstock.maintenance.tables.catalog.table_access import not_loaded

        now = self._clock.now()
        policy = await self._policies.of(name)
        judged = Judged.by(() if policy is None else policy.actions)
        stored = None if afresh or tier is Tier.STORAGE else await self.store.seen(name)
        before = {} if stored is None else stored.facts
        unchanged = await asyncio.to_thread(
            lambda: look_again(table, before, now=now, judged=judged)
        )
        if unchanged is not None and tier is Tier.MANIFESTS:
            facts = unchanged
        else:
            try:
                facts = await asyncio.to_thread(lambda: look(table, tier, now=now, judged=judged))
            except PenstockError:
                raise
            except Exception as e:
                raise not_loaded(name.identifier, e) from e
        await self._store(name, table, facts if unchanged is None else unchanged, now)
        return facts, judge(facts, now_ms=_milliseconds(now))

    async def _store(self, name: TableName, table: Table, facts: Facts, now: datetime) -> None:
        from penstock.maintenance.tables.commit.protection import opted_out

        health = judge(facts, now_ms=_milliseconds(now))
        await self.store.record_table(
            name, facts, health, enabled=opted_out(table.properties) is None
        )


def _milliseconds(now: datetime) -> int:
    return int(now.timestamp() * 1000)
