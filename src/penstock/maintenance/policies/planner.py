"""The maintenance planner: a loop that assesses tables under a policy and submits jobs.

Tables with the best gain for their cost come first. The table lock allows one job per table. A
table whose jobs failed, or found nothing to do on its current snapshot, backs off exponentially.
Manifests are read only of tables that changed since the last pass; ages are evaluated in each pass.
Each pass is stored as a run: assessed, healthy, submitted, and skipped with the reasons.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

import orjson

from penstock.jobs.model import Status
from penstock.kit import logging
from penstock.kit.clock import SYSTEM
from penstock.kit.errors import Draining, PenstockError, ResourceLocked
from penstock.kit.loop import Loop
from penstock.kit.sqlfile import load
from penstock.maintenance.payloads import MAINTENANCE, Order, TableName
from penstock.maintenance.policies.model import Policy, pause_after
from penstock.maintenance.repository import dump
from penstock.maintenance.tables.assessment.health import Gain
from penstock.maintenance.tables.assessment.tier import Tier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import asyncpg

    from penstock.jobs.store import PgJobStore
    from penstock.kit.clock import Clock
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics
    from penstock.maintenance.policies.repository import Policies
    from penstock.maintenance.repository import SeenTable
    from penstock.maintenance.service import MaintenanceService

SQL = load("penstock.maintenance.sql")
log = logging.get(__name__)
ACTOR = "planner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    assessed: int = 0
    healthy: int = 0
    submitted: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        return self.submitted


class PlannerRun(TypedDict):
    """A pass of the planner, and how its jobs stand now; `skipped` counts tables by reason."""

    run_id: int
    at: datetime
    assessed: int
    skipped: dict[str, int]
    healthy: int
    submitted: int
    completed: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The planner's decision for a table: why it is due, or why it is skipped."""

    name: TableName
    policy: Policy | None
    due: str | None = None
    skipped: str | None = None
    rate: float = 0.0


class MaintenancePlanner(Loop[Planned]):
    name = "maintenance_planner"

    def __init__(
        self,
        db: Db,
        jobs: PgJobStore,
        service: MaintenanceService,
        policies: Policies,
        *,
        every: float,
        metrics: LoopMetrics,
        clock: Clock = SYSTEM,
    ) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._jobs = jobs
        self._service = service
        self._policies = policies
        self._clock = clock

    async def run_once(self) -> Planned:
        policies = [policy for policy in await self._policies.all() if policy.enabled]
        if not policies or MAINTENANCE not in self._jobs.kinds:
            return Planned()
        await self._service.refresh(tier=Tier.MANIFESTS)
        tables, _ = await self._service.store.tables()
        verdicts = [await self.judge(seen, policies) for seen in tables]
        return await self._submit_due(verdicts)

    async def runs(self, *, limit: int, offset: int) -> tuple[list[PlannerRun], int]:
        """Planner runs, newest first, with the status of their jobs."""
        rows = await self._db.fetch(SQL.run_list, limit=limit, offset=offset)
        return [_run(row) for row in rows], rows[0]["total"] if rows else 0

    async def judge(self, seen: SeenTable, policies: Sequence[Policy]) -> Verdict:
        name = TableName(catalog=seen.catalog, db=seen.db, table=seen.table)
        policy = next((p for p in policies if p.fits(name)), None)
        if (why := self._barred(seen, policy)) is not None or policy is None or seen.score is None:
            return Verdict(name=name, policy=policy, skipped=why or "no policy")
        last = await self._service.store.last_jobs(name)
        if last and last[0]["status"] is None:
            return Verdict(name=name, policy=policy, skipped="under way")
        if (waits := _waits(last, seen.facts.get("snapshot_id"))) is not None:
            return Verdict(name=name, policy=policy, skipped=waits)
        done = next((row for row in last if row["status"] == Status.SUCCEEDED), None)
        try:
            commits = None if policy.commits is None else await self._commits_since(name, done)
        except PenstockError as e:
            log.warning("table_not_readable", table=str(name), error=str(e))
            return Verdict(name=name, policy=policy, skipped="not readable")
        score = _score_for(policy, seen)
        due = policy.due(score=score, since=None if done is None else done["age"], commits=commits)
        expected = seen.health.get("gain") or {"files": 0, "cost_seconds": 0.0}
        gain = Gain(files=expected["files"], cost_seconds=expected["cost_seconds"])
        return Verdict(name=name, policy=policy, due=due, rate=gain.rate + (100 - score))

    def _barred(self, seen: SeenTable, policy: Policy | None) -> str | None:
        if seen.error is not None:
            return "not readable"
        if not seen.enabled:
            return "opted out"
        if policy is not None and not policy.open_at(self._clock.now()):
            return "outside its window"
        return None

    async def _commits_since(self, name: TableName, done: asyncpg.Record | None) -> int:
        """Commits of other writers since the snapshot of the last job, or since the job itself if
        that snapshot has expired; all of them if the table was never maintained."""
        metadata = (await asyncio.to_thread(self._service.pool.load, name)).metadata
        if done is None:
            since = 0
        else:
            timestamps = {s.snapshot_id: s.timestamp_ms for s in metadata.snapshots}
            since = timestamps.get(done["snapshot_id"], int(done["created_at"].timestamp() * 1000))
        return sum(
            s.timestamp_ms > since
            and not (s.summary and s.summary.additional_properties.get("app-name") == "penstock")
            for s in metadata.snapshots
        )

    async def _submit_due(self, verdicts: Sequence[Verdict]) -> Planned:
        skipped = Counter(v.skipped for v in verdicts if v.skipped is not None)
        due = sorted((v for v in verdicts if v.due is not None), key=lambda v: -v.rate)
        healthy = len(verdicts) - len(due) - skipped.total()
        values = {
            "assessed": len(verdicts),
            "healthy": healthy,
            "submitted": 0,
            "skipped": dump(dict(skipped)),
        }
        run_id: int = await self._db.value(SQL.run_add, **values)
        jobs_by_policy: Counter[str] = Counter()
        for verdict in due:
            why = await self._submit(verdict, jobs_by_policy, run_id)
            if why is not None:
                skipped[why] += 1
        submitted = jobs_by_policy.total()
        await self._db.changed(
            SQL.run_submitted, run_id=run_id, submitted=submitted, skipped=dump(dict(skipped))
        )
        return Planned(
            assessed=len(verdicts), healthy=healthy, submitted=submitted, skipped=skipped.total()
        )

    async def _submit(
        self, verdict: Verdict, jobs_by_policy: Counter[str], run_id: int
    ) -> str | None:
        """Submit the table's job; returns the reason if it was not submitted."""
        policy = verdict.policy
        if policy is None or jobs_by_policy[policy.name] >= policy.max_jobs:
            return "budget"
        order = Order(
            name=verdict.name, actions=policy.actions, reason=f"{policy.name}: {verdict.due}"
        )
        try:
            job_id = await self._service.submit(
                order, actor=ACTOR, run_id=run_id, policy=policy.name
            )
        except ResourceLocked:
            return "locked"
        except Draining:
            return "draining"
        except PenstockError as e:
            log.warning("table_not_planned", table=str(verdict.name), error=e.message)
            return "refused"
        jobs_by_policy[policy.name] += 1
        log.info("table_planned", table=str(verdict.name), job_id=job_id, why=verdict.due)
        return None


def _run(row: asyncpg.Record) -> PlannerRun:
    return {
        "run_id": row["run_id"],
        "at": row["at"],
        "assessed": row["assessed"],
        "skipped": orjson.loads(row["skipped"]),
        "healthy": row["healthy"],
        "submitted": row["submitted"],
        "completed": row["completed"],
        "failed": row["failed"],
    }


def _score_for(policy: Policy, seen: SeenTable) -> int:
    """The score by the issues that the policy's actions can fix: expiring snapshots does not fix
    small files."""
    names = {str(action.name) for action in policy.actions}
    issues = [issue for issue in seen.health.get("issues", ()) if issue.get("action") in names]
    return max(0, round(100 - float(sum(issue.get("points", 0.0) for issue in issues))))


def _waits(last: Sequence[asyncpg.Record], snapshot_id: int | None) -> str | None:
    """The backoff after jobs that failed or found nothing to do: 1 h, 2 h, 4 h, up to two days. A
    job that found nothing to do counts only while the table has the same snapshot."""
    in_vain = 0
    for row in last:
        idle = row["idle"] and row["snapshot_id"] == snapshot_id
        if row["status"] == Status.SUCCEEDED and not idle:
            break
        in_vain += 1
    if not in_vain:
        return None
    ago: timedelta = last[0]["ended_ago"] or timedelta(0)
    return "backs off" if ago < pause_after(in_vain) else None
