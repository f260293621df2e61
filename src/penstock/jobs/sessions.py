"""Sessions: which process is the current one of a worker's name.

A process registers once, before its first claim. Whatever an earlier process of that name still
runs is taken over in the same transaction, fence and all, so a worker that was killed and restarted
does not wait for its own leases.

Two live processes that share a name by mistake cannot take each other's work in turns. A session is
superseded only by the registration of a later one, never by a heartbeat or a claim, and one that
was superseded cannot register again. If it is alive after all, its next heartbeat is answered with
what it lost, and it works on; from then on the name is known to be shared, and a later registration
takes nothing over until it has not been shared for a while.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.jobs.limits import MAX_QUEUES, check_text
from penstock.jobs.model import Reaped, Registered
from penstock.kit import logging
from penstock.kit.errors import Conflict, InvalidInput
from penstock.kit.ids import check_name
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    import asyncpg

    from penstock.jobs.gates import Gates
    from penstock.jobs.metrics import KernelMetrics
    from penstock.jobs.model import Beat, Registration
    from penstock.kit.db import Db, Tx

SQL = load("penstock.jobs.sql")
log = logging.get(__name__)
SHARED_SECONDS = 600
"""So long after the last sign of it a name counts as shared."""
OWN_NAMES = "Two live processes use one name. Give each its own, or none: then it draws one."


class Sessions:
    def __init__(
        self,
        db: Db,
        gates: Gates,
        metrics: KernelMetrics,
        *,
        announce: bool,
        ring_for: Callable[[Sequence[asyncpg.Record]], None],
    ) -> None:
        self._db = db
        self._gates = gates
        self._metrics = metrics
        self._announce = announce
        self._ring_for = ring_for

    async def register(self, registration: Registration) -> Registered:
        _check(registration)
        worker, session = registration.worker, registration.session
        async with self._db.transaction() as tx:
            await tx.fetch(SQL.session_lock, worker=worker)
            earlier = await tx.row(SQL.session_get, session=session)
            if earlier is not None:
                _check_current(earlier, worker)
                return Registered()
            shared = await tx.value(SQL.session_shared, worker=worker, seconds=SHARED_SECONDS)
            superseded = await tx.changed(SQL.session_supersede, worker=worker, session=session)
            await tx.changed(SQL.session_add, worker=worker, session=session)
            vanished = await tx.fetch(
                SQL.session_vanished, worker=worker, session=session, sparing=shared
            )
            sessions = [row["session"] for row in vanished]
            taken = await tx.fetch(
                SQL.take_over, worker=worker, sessions=sessions, announce=self._announce
            )
            requeued = [row for row in taken if row["status"] is None]
            failed = [row for row in taken if row["status"] is not None]
            fired = await self._gates.settle(tx, failed)
            await tx.fetch(SQL.beat, **_seen(registration), running=0)
            tx.after_commit(lambda: self._ring_for(requeued))
        kinds = Counter(row["kind"] for row in requeued)
        self._metrics.reaped(
            Reaped(requeued=len(requeued), failed=len(failed), groups_fired=fired, kinds=kinds)
        )
        spared = bool(shared and superseded)
        if spared:
            log.error("worker_name_shared", worker=worker, session=str(session), hint=OWN_NAMES)
        elif taken:
            log.warning(
                "attempts_taken_over",
                worker=worker,
                session=str(session),
                jobs=[r["job_id"] for r in taken],
            )
        return Registered(requeued=len(requeued), failed=len(failed), shared=spared)

    async def beat(self, tx: Tx, beat: Beat) -> bool:
        """Note that the worker is there; whether its session was superseded."""
        row = await tx.row(SQL.beat, **_seen(beat), running=len(beat.held))
        shared, superseded = (
            (row["shared"], row["superseded"]) if row is not None else (False, False)
        )
        if shared or superseded:
            log.error(
                "worker_name_shared", worker=beat.worker, session=str(beat.session), hint=OWN_NAMES
            )
        return superseded

    async def still_alive(self, beat: Beat) -> None:
        """Note that a superseded process beats; not in the transaction that shares its session with
        other heartbeats, which would wait for each other."""
        await self._db.changed(SQL.session_alive, session=beat.session)

    async def farewell(self, worker: str, session: UUID) -> None:
        """End a session. The session is locked before the list of workers, as registration does,
        which rules out deadlocks.
        """
        async with self._db.transaction() as tx:
            await tx.changed(SQL.session_end, session=session)
            await tx.changed(SQL.farewell, name=worker, session=session)


def _seen(one: Registration | Beat) -> dict[str, object]:
    return {
        "name": one.worker,
        "session": one.session,
        "slots": one.slots,
        "queues": list(one.queues),
        "version": one.version,
    }


def _check(registration: Registration) -> None:
    check_name(registration.worker, "Worker")
    check_text(registration.version, "version")
    if not 1 <= len(registration.queues) <= MAX_QUEUES:
        raise InvalidInput(
            f"A worker serves 1 to {MAX_QUEUES} queues, not {len(registration.queues)}."
        )
    for queue in registration.queues:
        check_name(queue, "Queue")


def _check_current(earlier: asyncpg.Record, worker: str) -> None:
    if earlier["worker"] != worker:
        raise InvalidInput(
            f"This session registered as worker {earlier['worker']!r}; it cannot be {worker!r} as"
            f" well."
        )
    if earlier["superseded_by"] is not None:
        raise Conflict(
            f"Another process has registered as worker {worker!r} since.", hint=OWN_NAMES
        )
    if earlier["ended_at"] is not None:
        raise Conflict(
            f"This session of worker {worker!r} has said farewell.", hint="Start a new process."
        )
