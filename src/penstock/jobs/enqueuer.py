"""Enqueues jobs: checks each spec, completes it from the policy of its kind and inserts all in
as few statements as possible.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import asyncpg

from penstock.jobs.enqueue_batcher import EnqueueBatcher
from penstock.jobs.limits import MAX_TIMEOUT, PRIORITIES, check_batch, check_key, check_span
from penstock.jobs.model import Enqueued, JobSpec
from penstock.jobs.row_mapping import column, dump
from penstock.kit.errors import Conflict, Draining, InvalidInput, InvalidState, ResourceLocked
from penstock.kit.ids import check_name
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Sized

    from penstock.jobs.kinds import Kinds
    from penstock.kit.db import Db, Tx

SQL = load("penstock.jobs.sql")
AGEING_SECONDS = 60
"""A job one priority step lower overtakes whatever came this much later: urgent first, and nobody
starves."""
MOST_SHAPES = 200
"""Remembered between calls; a call may add as many as it has specs."""
OWN_SIZE = 3
"""What the kernel adds itself may be larger: a clean-up carries a payload and a state that were
each taken before."""


@dataclass(slots=True)
class _Row:
    """`shared` is one object for all rows of one shape, so that they can go in one statement."""

    shared: dict[str, object]
    payload: str
    created_by: str | None
    trace: str | None
    unique_key: str | None
    lock_key: str | None
    place: int


class Enqueuer:
    def __init__(
        self,
        kinds: Kinds,
        *,
        max_payload_bytes: int,
        announce: bool,
        on_refusal: Callable[[], None],
    ) -> None:
        self.kinds = kinds
        self._max_payload_bytes = max_payload_bytes
        self._announce = announce
        self._on_refusal = on_refusal
        self._shapes: dict[tuple[object, ...], dict[str, object]] = {}
        self._batcher: EnqueueBatcher[_Row, int] = EnqueueBatcher()

    async def finish(self) -> None:
        """Wait for the enqueues that are still on their way."""
        await self._batcher.finish()

    async def add(
        self, tx: Tx, specs: Sequence[JobSpec], *, force: bool, ring: Callable[[str, int], None]
    ) -> list[Enqueued]:
        """Insert the specs, all or none, into the caller's transaction.

        Lock keys are locked first, live rows second, groups third and unique keys last, each in its
        own order; that rules out deadlocks.
        """
        rows = sorted(
            self._rows(specs, self._max_payload_bytes * (OWN_SIZE if force else 1)),
            key=_unique_order,
        )
        holders = await self._take_locks(tx, rows)
        await self._join_groups(tx, specs)
        if holders:
            await self._refuse_held(tx, rows, holders, force=force)
        batches = _batches(rows)
        answers: dict[int, Enqueued] = {}
        async with tx.savepoint() if len(batches) > 1 else nullcontext():
            for shared, batch in batches:
                added = await self._insert(tx, shared, batch, force=force, ring=ring)
                answers |= zip((r.place for r in batch), added, strict=True)
        return [answers[place] for place in range(len(specs))]

    async def add_alone(
        self,
        db: Db,
        specs: Sequence[JobSpec],
        *,
        ring: Callable[[str, int], None],
        audited: bool = False,
    ) -> list[Enqueued] | None:
        """Insert the specs in one statement, alone or batched with similar ones; None when they
        need more than one.

        `audited` adds an entry to the audit log for each, under its author.
        """
        rows = self._rows(specs, self._max_payload_bytes)
        shared = rows[0].shared
        if shared["group_id"] is not None or any(
            r.shared is not shared or r.unique_key or r.lock_key for r in rows
        ):
            return None

        async def send(batch: Sequence[_Row]) -> Sequence[int]:
            job_ids, order_key = await self._insert_plain(
                db, shared, batch, force=False, audited=audited
            )
            if job_ids and shared["run_in"] is None:
                ring(str(shared["queue"]), order_key)
            return job_ids

        job_ids = await self._batcher.add((audited, _shape(specs[0])), rows, send)
        _check_taken(job_ids, rows)
        return [Enqueued(job_id=job_id, created=True) for job_id in job_ids]

    def check(self, spec: JobSpec) -> None:
        """Raise now for a spec that will be enqueued later."""
        self._rows([spec], self._max_payload_bytes)

    def _rows(self, specs: Sequence[JobSpec], limit: int) -> list[_Row]:
        check_batch(specs)
        if len(self._shapes) > MOST_SHAPES:
            self._shapes.clear()
        rows = []
        for place, spec in enumerate(specs):
            shape = _shape(spec)
            if shape not in self._shapes:
                self._shapes[shape] = self._shared(spec)
            rows.append(
                _Row(
                    self._shapes[shape],
                    dump(spec.payload, "payload", limit),
                    check_key(spec.created_by, "created_by"),
                    check_key(spec.trace, "trace"),
                    check_key(spec.unique_key, "unique_key"),
                    check_key(spec.lock_key, "lock_key"),
                    place,
                )
            )
        return rows

    def _shared(self, spec: JobSpec) -> dict[str, object]:
        """What all jobs of one shape have in common, checked and completed."""
        policy = self.kinds[spec.kind]
        queue = check_name(spec.queue or policy.queue, "Queue")
        priority = policy.priority if spec.priority is None else spec.priority
        if priority not in PRIORITIES:
            raise InvalidInput(
                f"Priority {priority} is out of range.", hint="0 is the most urgent, 9 the least."
            )
        max_attempts = policy.max_attempts if spec.max_attempts is None else spec.max_attempts
        if not 1 <= max_attempts <= 1000:
            raise InvalidInput(
                f"max_attempts {max_attempts} is out of range.", hint="Choose 1 to 1000."
            )
        timeout = policy.timeout if spec.timeout is None else int(spec.timeout.total_seconds())
        if not 1 <= timeout <= MAX_TIMEOUT.total_seconds():
            raise InvalidInput(
                f"The timeout of a job must be one second to {MAX_TIMEOUT.days} days."
            )
        check_span(spec.run_in, "run_in")
        check_span(spec.deadline_in, "deadline_in")
        return {
            "group_id": spec.group_id,
            "retry_of": spec.retry_of,
            "deadline_in": spec.deadline_in,
            "run_in": spec.run_in,
            "lease_s": policy.lease,
            "timeout_s": timeout,
            "max_attempts": max_attempts,
            "priority": priority,
            "kind": spec.kind,
            "queue": queue,
            "cleanup_kind": policy.cleanup_kind,
        }

    async def _take_locks(self, tx: Tx, rows: Sequence[_Row]) -> dict[str, asyncpg.Record]:
        """Lock the lock keys of the rows against other enqueues; returns the present holders."""
        lock_keys = [r.lock_key for r in rows if r.lock_key is not None]
        if not lock_keys:
            return {}
        if len(set(lock_keys)) < len(lock_keys):
            raise Conflict("Two jobs of one call want the same lock; only one job can hold it.")
        await tx.fetch(SQL.lock_keys, lock_keys=lock_keys)
        return {r["lock_key"]: r for r in await tx.fetch(SQL.lock_holders, lock_keys=lock_keys)}

    async def _refuse_held(
        self, tx: Tx, rows: Sequence[_Row], holders: Mapping[str, asyncpg.Record], *, force: bool
    ) -> None:
        """Refuse rows whose locks are held, unless they are in already by their unique keys."""
        if not force and await tx.value(SQL.is_draining):
            raise _draining()
        blocked = [
            (r, holders[r.lock_key])
            for r in rows
            if r.lock_key is not None and r.lock_key in holders
        ]
        existing = await self._existing(
            tx, [r.unique_key for r, _ in blocked if r.unique_key is not None]
        )
        for row, holder in blocked:
            if row.unique_key not in existing:
                self._on_refusal()
                raise _held_by(holder)

    async def _join_groups(self, tx: Tx, specs: Sequence[JobSpec]) -> None:
        group_ids = {s.group_id for s in specs if s.group_id is not None}
        if not group_ids:
            return
        open_ids = {
            r["group_id"] for r in await tx.fetch(SQL.group_join, group_ids=sorted(group_ids))
        }
        if missing := sorted(group_ids - open_ids):
            raise InvalidState(
                f"Group {missing[0]} does not exist or is over; no job can join it.",
                group_ids=missing,
            )

    async def _insert(
        self,
        tx: Tx,
        shared: dict[str, object],
        batch: Sequence[_Row],
        *,
        force: bool,
        ring: Callable[[str, int], None],
    ) -> list[Enqueued]:
        if any(r.unique_key or r.lock_key for r in batch):
            added = await self._insert_keyed(tx, shared, batch, force=force)
            _check_taken(added, batch)
            order_key = min((r["order_key"] for r in added if r["created"]), default=None)
            enqueued = await self._with_existing(tx, added, batch)
        else:
            job_ids, order_key = await self._insert_plain(tx, shared, batch, force=force)
            _check_taken(job_ids, batch)
            enqueued = [Enqueued(job_id=job_id, created=True) for job_id in job_ids]
        if shared["run_in"] is None and order_key is not None:
            tx.after_commit(partial(ring, str(shared["queue"]), order_key))
        return enqueued

    async def _insert_plain(
        self,
        db: Db | Tx,
        shared: dict[str, object],
        batch: Sequence[_Row],
        *,
        force: bool,
        audited: bool = False,
    ) -> tuple[Sequence[int], int]:
        """Without keys nothing can be there already: the new jobs in their order, and the order key
        of the first."""
        [added] = await db.fetch(
            SQL.enqueue,
            **_values(shared, batch, force=force),
            audited=audited,
            announce=self._announce,
        )
        return added["job_ids"] or (), added["order_key"]

    async def _insert_keyed(
        self, tx: Tx, shared: dict[str, object], batch: Sequence[_Row], *, force: bool
    ) -> list[asyncpg.Record]:
        lock_keys = [r.lock_key for r in batch]
        try:
            async with tx.savepoint():
                return await tx.fetch(
                    SQL.enqueue_keyed,
                    **_values(shared, batch, force=force),
                    places=[r.place for r in batch],
                    unique_keys=[r.unique_key for r in batch],
                    lock_keys=lock_keys,
                    announce=self._announce,
                )
        except asyncpg.UniqueViolationError as e:
            self._on_refusal()
            raise await _refusal(tx, [key for key in lock_keys if key]) from e

    async def _existing(self, tx: Tx, unique_keys: Sequence[str]) -> dict[str, int]:
        if not unique_keys:
            return {}
        rows = await tx.fetch(SQL.by_unique_key, unique_keys=unique_keys)
        return {r["unique_key"]: r["job_id"] for r in rows}

    async def _with_existing(
        self, tx: Tx, added: Sequence[asyncpg.Record], batch: Sequence[_Row]
    ) -> list[Enqueued]:
        repeated = [
            row.unique_key for row, new in zip(batch, added, strict=True) if not new["created"]
        ]
        existing = await self._existing(tx, [key for key in repeated if key is not None])
        return [
            Enqueued(job_id=new["job_id"], created=True)
            if new["created"]
            else Enqueued(job_id=existing[str(row.unique_key)], created=False)
            for row, new in zip(batch, added, strict=True)
        ]


def _unique_order(row: _Row) -> str:
    """Unique keys are inserted in this order by every transaction, which rules out deadlocks."""
    return row.unique_key or ""


def _batches(rows: Sequence[_Row]) -> list[tuple[dict[str, object], list[_Row]]]:
    batches = [list(batch) for _, batch in groupby(rows, key=lambda r: id(r.shared))]
    return [(batch[0].shared, sorted(batch, key=lambda r: r.place)) for batch in batches]


def _shape(spec: JobSpec) -> tuple[object, ...]:
    """All of a spec but what may differ between the rows of one statement."""
    return (
        spec.kind,
        spec.queue,
        spec.priority,
        spec.run_in,
        spec.deadline_in,
        spec.max_attempts,
        spec.timeout,
        spec.group_id,
        spec.retry_of,
    )


def _values(shared: dict[str, object], rows: Sequence[_Row], *, force: bool) -> dict[str, object]:
    return shared | {
        "payloads": [r.payload for r in rows],
        "created_bys": column([r.created_by for r in rows]),
        "traces": column([r.trace for r in rows]),
        "force": force,
        "ageing_us": AGEING_SECONDS * 1_000_000,
    }


def _check_taken(added: Sized, rows: Sized) -> None:
    if len(added) < len(rows):
        raise _draining()


def _draining() -> Draining:
    return Draining(
        "The system is draining: no new jobs are taken.",
        hint="Try again after `penstock drain off`.",
    )


async def _refusal(tx: Tx, lock_keys: list[str]) -> Exception:
    holders = await tx.fetch(SQL.lock_holders, lock_keys=lock_keys)
    if not holders:
        return Conflict("The lock was held a moment ago and is free now.", hint="Try again.")
    return _held_by(holders[0])


def _held_by(holder: asyncpg.Record) -> ResourceLocked:
    return ResourceLocked(
        f"{holder['lock_key']} is locked by job {holder['job_id']} ({holder['kind']}).",
        hint=f"Wait for job {holder['job_id']}, or cancel it.",
        lock_key=holder["lock_key"],
        holder_job_id=holder["job_id"],
        holder_name=holder["worker"] or holder["created_by"] or f"job {holder['job_id']}",
    )
