"""The kernel's verbs on PostgreSQL.

Each verb is one statement, or one transaction where groups or spawned jobs take part. The fence is
the whole secret: `claim` writes a random attempt id into the live row, every later write of that
attempt names it, and whoever takes the job away (cancel, reaper, another claim) rotates it.
Deleting the live row is the only way to end a job, and a row can be deleted once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import asyncpg

from penstock.jobs import row_mapping
from penstock.jobs.announcer import Announcer
from penstock.jobs.enqueuer import Enqueuer
from penstock.jobs.finish_and_claim import (
    FinishAndClaim,
    already,
    columns,
    fences_of,
    in_lock_order,
)
from penstock.jobs.gates import Gates
from penstock.jobs.limits import MAX_JOB_ID, check_batch, check_claim, check_pause, check_text
from penstock.jobs.metrics import KernelMetrics
from penstock.jobs.model import (
    DEADLINE_EXCEEDED,
    Beat,
    Cancelled,
    Claimed,
    Ending,
    Enqueued,
    Exchanged,
    Failed,
    Fence,
    GroupSpec,
    JobId,
    JobSpec,
    JobView,
    Parking,
    ProgressUpdate,
    Reaped,
    Registered,
    Registration,
    Release,
    Renewal,
    Status,
    Verdict,
)
from penstock.jobs.notifier import Line, Notifier
from penstock.jobs.queue_watch import LOOK_SECONDS
from penstock.jobs.sessions import Sessions
from penstock.kit import logging
from penstock.kit.errors import InvalidState, NotFound, StaleAttempt, Unavailable
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from uuid import UUID

    from penstock.jobs.announcer import Outbox
    from penstock.jobs.kinds import Kinds
    from penstock.kit.db import Db, Tx

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)

ENGINE_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""For the kernel's own connections: its statements have one good plan each, whatever the statistics
say today."""


class PgJobStore:
    def __init__(
        self,
        db: Db,
        kinds: Kinds,
        *,
        max_payload_bytes: int = 1024 * 1024,
        notify_debounce: float = 0.008,
        metrics: KernelMetrics | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self._db = db
        self._max_bytes = max_payload_bytes
        self.metrics = metrics or KernelMetrics()
        self.kinds = kinds
        self.notifier = Notifier(db, debounce=notify_debounce, health=self.metrics.background)
        self._announcer = Announcer(self.notifier, outbox)
        self._enqueuer = Enqueuer(
            kinds,
            max_payload_bytes=max_payload_bytes,
            announce=self._announcer.uses_outbox,
            on_refusal=self.metrics.lock_refused,
        )
        self.gates = Gates(self._enqueuer, self._announcer.ready, notify=self.notifier.ring)
        self._exchange = FinishAndClaim(
            db,
            self.notifier,
            self._announcer,
            self.gates,
            self.metrics,
            max_bytes=max_payload_bytes,
            on_stale=self._stale,
        )
        self._sessions = Sessions(
            db,
            self.gates,
            self.metrics,
            announce=self._announcer.uses_outbox,
            ring_for=self._ring_for,
        )

    async def __aenter__(self) -> PgJobStore:
        self.notifier.start()
        self._exchange.watch.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._enqueuer.finish()
        await self._exchange.watch.stop()
        await self.notifier.stop()

    # enqueue

    async def enqueue(self, specs: Sequence[JobSpec], *, tx: Tx | None = None) -> list[Enqueued]:
        """Accept jobs; with `tx`, in the caller's transaction and visible when that commits."""
        if not specs:
            return []
        if tx is None and (
            alone := await self._enqueuer.add_alone(self._db, specs, ring=self._announcer.ready)
        ):
            return alone
        async with self._db.transaction(tx) as inner:
            return await self._enqueuer.add(inner, specs, force=False, ring=self._announcer.ready)

    def check(self, spec: JobSpec) -> None:
        """Say what is wrong with a spec without enqueuing it."""
        self._enqueuer.check(spec)

    async def open_group(
        self,
        group: GroupSpec,
        members: Sequence[JobSpec],
        *,
        tx: Tx | None = None,
        force: bool = False,
    ) -> tuple[int, list[Enqueued]]:
        """A group and its first members together; members may spawn more until the last one is
        over.

        `force` is for what goes on with accepted work: it is taken while the system drains.
        """
        self.gates.check(group.gate)
        for spec in (*group.on_success, *group.on_failure):
            self.check(spec)
        async with self._db.transaction(tx) as inner:
            group_id: int = await inner.value(
                SQL.group_open,
                name=group.name,
                gate=group.gate,
                payload=row_mapping.dump(group.payload, "group payload", self._max_bytes),
                opens=row_mapping.dump(
                    row_mapping.opens_to_json(group), "group's follow-up", self._max_bytes
                ),
                deadline_in=group.deadline_in,
            )
            specs = [replace(spec, group_id=group_id) for spec in members]
            added = await self._enqueuer.add(inner, specs, force=force, ring=self._announcer.ready)
            if not any(member.created for member in added):
                await self.gates.fire(inner, [group_id])
            return group_id, added

    # claim and finish

    async def register(self, registration: Registration) -> Registered:
        return await self._sessions.register(registration)

    async def claim(
        self,
        worker: str,
        queues: Sequence[str],
        limit: int,
        *,
        wait: float = 0,
        session: UUID | None = None,
        line: Line | None = None,
        polled: bool | None = None,
    ) -> list[Claimed]:
        """With `polled`, only jobs that were parked before (True) or never (False)."""
        done = await self.exchange(
            (), worker, queues, limit, wait=wait, session=session, line=line, polled=polled
        )
        return list(done.claimed)

    async def finish(self, endings: Sequence[Ending]) -> list[Verdict]:
        return list((await self.exchange(endings, "", (), 0)).verdicts)

    async def exchange(
        self,
        endings: Sequence[Ending],
        worker: str,
        queues: Sequence[str],
        limit: int,
        *,
        wait: float = 0,
        session: UUID | None = None,
        line: Line | None = None,
        polled: bool | None = None,
    ) -> Exchanged:
        """With a `line`, the wait ends when it is hung up; a claim that is under way by then is
        still returned."""
        check_batch(endings)
        check_claim(worker, queues, limit, wait)
        for ending in endings:
            if isinstance(ending.outcome, Failed) and ending.outcome.retry_in is not None:
                check_pause(ending.outcome.retry_in)
        verdicts, claimed = await self._exchange.run(
            endings, worker, queues, limit, wait, line, polled, session
        )
        return Exchanged(verdicts=verdicts, claimed=claimed)

    # the other writes of an attempt

    async def renew(self, beat: Beat) -> Renewal:
        check_batch(beat.held)
        async with self._db.transaction() as tx:
            superseded = await self._sessions.beat(tx, beat)
            gone = await tx.fetch(SQL.renew, **columns(beat.held)) if beat.held else []
        if superseded:
            await self._sessions.still_alive(beat)
        lost = [
            Fence(job_id=r["job_id"], attempt_id=r["attempt_id"])
            for r in gone
            if not r["cancelled"]
        ]
        cancelled = [
            Fence(job_id=r["job_id"], attempt_id=r["attempt_id"]) for r in gone if r["cancelled"]
        ]
        for fence in lost:
            self._stale(fence, "renew")
        return Renewal(lost=lost, cancelled=cancelled, superseded=superseded)

    async def farewell(self, worker: str, session: UUID) -> None:
        await self._sessions.farewell(worker, session)

    async def progress(self, updates: Sequence[ProgressUpdate]) -> list[bool]:
        check_batch(updates)
        latest = in_lock_order({u.fence: u for u in updates}.values())
        texts = [row_mapping.dump(u.progress, "progress", self._max_bytes) for u in latest]
        rows = await self._db.fetch(
            SQL.progress, **columns(u.fence for u in latest), progress=texts
        )
        return await self._written([u.fence for u in updates], rows, "progress")

    async def park(self, parkings: Sequence[Parking]) -> list[bool]:
        check_batch(parkings)
        for parking in parkings:
            check_pause(parking.wake_in)
        ordered = in_lock_order(parkings)
        rows = await self._db.fetch(
            SQL.park,
            **columns(p.fence for p in ordered),
            states=[row_mapping.dump(p.state, "state", self._max_bytes) for p in ordered],
            wake_ins=[p.wake_in for p in ordered],
            unhandled=[p.unhandled for p in ordered],
        )
        self._ring_soon(rows, {p.fence.job_id: p.wake_in for p in parkings})
        self._announcer.left([row["job_id"] for row in rows])
        return await self._written([p.fence for p in parkings], rows, "parked")

    async def release(self, releases: Sequence[Release]) -> list[bool]:
        check_batch(releases)
        ordered = in_lock_order(releases)
        reasons = [check_text(r.reason, "reason") for r in ordered]
        rows = await self._db.fetch(
            SQL.release,
            **columns(r.fence for r in ordered),
            reasons=reasons,
            announce=self._announcer.uses_outbox,
        )
        self._ring_for(rows)
        self._announcer.left([row["job_id"] for row in rows])
        return await self._written([r.fence for r in releases], rows, "released")

    def _ring_soon(self, parked: Sequence[asyncpg.Record], pauses: Mapping[JobId, float]) -> None:
        """Who waits for work looks every few seconds; what is due before that is rung for."""
        for row in parked:
            if pauses[row["job_id"]] < LOOK_SECONDS:
                loop = asyncio.get_running_loop()
                loop.call_later(
                    pauses[row["job_id"]], self._announcer.ready, row["queue"], row["order_key"]
                )

    def _ring_for(self, ready: Sequence[asyncpg.Record]) -> None:
        for row in ready:
            self._announcer.ready(row["queue"], row["order_key"])

    async def _written(
        self, fences: Sequence[Fence], rows: Sequence[asyncpg.Record], how: str
    ) -> list[bool]:
        """Which writes stand; one that changed nothing may be a repetition of our own, whose reply
        was lost."""
        written = fences_of(rows)
        if missing := [fence for fence in fences if fence not in written]:
            written |= await already(self._db, missing, how)
        for fence in fences:
            if fence not in written:
                self._stale(fence, how)
        return [fence in written for fence in fences]

    def _stale(self, fence: Fence, verb: str) -> None:
        self.metrics.stale()
        log.warning(
            "stale_attempt", job_id=fence.job_id, attempt_id=str(fence.attempt_id), verb=verb
        )

    @asynccontextmanager
    async def fenced_transaction(self, fence: Fence) -> AsyncIterator[Tx]:
        """A transaction that holds the job under its fence: what the caller writes in it is fenced
        as well."""
        async with self._db.transaction() as tx:
            if await tx.value(SQL.fence, job_id=fence.job_id, attempt_id=fence.attempt_id) is None:
                self._stale(fence, "transaction")
                raise StaleAttempt(
                    f"Job {fence.job_id} is no longer held by attempt {fence.attempt_id}."
                )
            yield tx

    # ends that no worker writes

    async def cancel(
        self, job_id: JobId, *, actor: str, reason: str = "", tx: Tx | None = None
    ) -> Cancelled:
        _check_who(actor, reason)
        error = row_mapping.dump(
            {"code": "CANCELLED", "message": reason or f"Cancelled by {actor}."},
            "reason",
            self._max_bytes,
        )
        async with self._db.transaction(tx) as inner:
            gone = await inner.fetch(SQL.cancel, job_id=_job_id(job_id), error=error)
            await self.gates.settle(inner, gone)
            if gone:
                await self.audit(inner, actor, "job.cancel", f"job:{job_id}", {"reason": reason})
        if gone:
            self._announcer.left([job_id])
            log.info("job_cancelled", job_id=job_id, actor=actor)
            return Cancelled(job_id=job_id, newly=True)
        status = (await self.job(job_id)).status
        if status is not Status.CANCELLED:
            raise InvalidState(f"Job {job_id} is over: {status.word}.", status=status.word)
        return Cancelled(job_id=job_id, newly=False)

    async def submit(self, spec: JobSpec, *, actor: str) -> Enqueued:
        """Enqueue on a person's behalf, and write down who it was."""
        _check_who(actor)
        spec = replace(spec, created_by=actor)
        alone = await self._enqueuer.add_alone(
            self._db, [spec], ring=self._announcer.ready, audited=True
        )
        if alone is not None:
            return alone[0]
        async with self._db.transaction() as tx:
            [added] = await self._enqueuer.add(tx, [spec], force=False, ring=self._announcer.ready)
            if added.created:
                await self.audit(
                    tx, actor, "job.enqueue", f"job:{added.job_id}", {"kind": spec.kind}
                )
        return added

    async def retry(self, job_id: JobId, *, actor: str) -> Enqueued:
        """The work of a job that failed or was cancelled, as a new job; asked twice it is the same
        new job."""
        _check_who(actor)
        async with self._db.transaction() as tx:
            row = await tx.row(SQL.again, job_id=_job_id(job_id))
            if row is None:
                raise _no_job(job_id)
            status = Status(row["status"])
            if status not in (Status.FAILED, Status.CANCELLED):
                raise InvalidState(
                    f"Job {job_id} is {status.word}; only what failed or was cancelled is done"
                    f" again."
                )
            spec = row_mapping.spec_again(row, actor)
            [added] = await self._enqueuer.add(tx, [spec], force=False, ring=self._announcer.ready)
            if added.created:
                await self.audit(tx, actor, "job.retry", f"job:{job_id}", {"job_id": added.job_id})
        return added

    async def promote(self) -> bool:
        """Make due jobs ready now; whether there were any. Claims do so as well."""
        return await self._exchange.watch.promote()

    async def reap(self, *, limit: int = 500, vanished: bool = True) -> Reaped:
        """Take lapsed attempts off their workers, fail what is overdue, and move gates that were
        left standing.

        Without `vanished`, only attempts whose time is used up: nobody may have heard the
        heartbeats of the others.
        """
        async with self._db.transaction() as tx:
            rows = await tx.fetch(
                SQL.reap,
                limit=limit,
                vanished=vanished,
                announce=self._announcer.uses_outbox,
            )
            requeued = [r for r in rows if r["status"] is None]
            failed = [r for r in rows if r["status"] is not None]
            expired = await tx.fetch(SQL.expire, limit=limit)
            fired = await self.gates.settle(tx, [*failed, *expired])
            tx.after_commit(lambda: self._ring_for(requeued))
        fired += await self._reap_groups(limit)
        reaped = Reaped(
            requeued=len(requeued),
            failed=len(failed),
            expired=len(expired),
            groups_fired=fired,
            kinds=Counter(r["kind"] for r in requeued),
        )
        self.metrics.reaped(reaped)
        return reaped

    async def _reap_groups(self, limit: int) -> int:
        async with self._db.transaction() as tx:
            stuck = await tx.fetch(SQL.group_stuck, limit=limit)
            overdue = [r["group_id"] for r in stuck if r["overdue"]]
            failing = [r["group_id"] for r in stuck if r["failing"] and not r["overdue"]]
            if overdue:
                error = {"code": DEADLINE_EXCEEDED, "message": "The group ran past its deadline."}
                await self.gates.fail(tx, overdue, error, running=True)
            if failing:
                await self.gates.cancel_members(tx, failing)
            looked_at = [r["group_id"] for r in stuck]
            fired = await self.gates.fire(tx, looked_at)
            if fired < len(looked_at):
                await tx.changed(SQL.group_looked, group_ids=looked_at)
            return fired

    # looking, draining, auditing

    async def job(self, job_id: JobId) -> JobView:
        row = await self._db.row(SQL.view, job_id=_job_id(job_id))
        if row is None:
            raise _no_job(job_id)
        attempts = await self._db.fetch(SQL.attempts, job_id=job_id)
        return row_mapping.job_view(row, [row_mapping.attempt_view(a) for a in attempts])

    async def drain(self, draining: bool, *, actor: str, reason: str = "") -> asyncpg.Record:
        _check_who(actor, reason)
        async with self._db.transaction() as tx:
            control = await tx.row(SQL.drain, draining=draining, actor=actor, reason=reason)
            await self.audit(
                tx, actor, "drain.on" if draining else "drain.off", "system", {"reason": reason}
            )
        if control is None:
            raise NotFound(
                "The control row is missing; the schema is damaged.", hint="penstock migrate"
            )
        return control

    async def control(self) -> asyncpg.Record:
        """How the system stands; the cheapest question that shows whether the database and its
        schema are there."""
        try:
            control = await self._db.row(SQL.control)
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as e:
            raise Unavailable(
                "The database has no schema of ours yet.", hint="penstock migrate"
            ) from e
        if control is None:
            raise NotFound(
                "The control row is missing; the schema is damaged.", hint="penstock migrate"
            )
        return control

    async def audit(self, tx: Tx, actor: str, action: str, subject: str, detail: object) -> None:
        text = row_mapping.dump(detail, "audit detail", self._max_bytes)
        await tx.fetch(SQL.audit, actor=actor, action=action, subject=subject, detail=text)


def _job_id(job_id: JobId) -> JobId:
    if not 0 < job_id <= MAX_JOB_ID:
        raise _no_job(job_id)
    return job_id


def _no_job(job_id: JobId) -> NotFound:
    return NotFound(f"There is no job {job_id}.")


def _check_who(actor: str, reason: str = "") -> None:
    check_text(actor, "actor")
    check_text(reason, "reason")
