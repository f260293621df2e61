"""Ends a batch of jobs and claims the next batch, in one statement and so in one commit.

Most of a job engine's cost is commits, and a worker that ends jobs wants the next ones anyway.
Three things make the claim cheap at any depth: an index that holds ready rows only; a low-water
mark per queue, below which this process has seen no ready row (it skips dead rows that a long
transaction keeps from being vacuumed, and a full look once a second makes sure that it hides
nothing); and promotion of due rows apart from the claim.

Claims come last in a transaction, so that a holder of claimed rows waits for nothing. Where the
ends move gates or spawn jobs, which may wait for locks, the claim is a statement of its own after
them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, TypeGuard, TypeVar

from penstock.jobs import row_mapping
from penstock.jobs.model import (
    CUT_SHORT,
    Claimed,
    Ending,
    Failed,
    Fence,
    JobSpec,
    Outcome,
    Succeeded,
    Verdict,
)
from penstock.jobs.queue_watch import QueueWatch
from penstock.jobs.waiters import Waiters
from penstock.kit.errors import DatabaseUnavailable
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    import asyncpg

    from penstock.jobs.announcer import Announcer
    from penstock.jobs.gates import Gates
    from penstock.jobs.metrics import KernelMetrics
    from penstock.jobs.notifier import Line, Notifier
    from penstock.kit.db import Db, Tx

SQL = load("penstock.jobs.sql")
NO_MARK = -(2**63)
FULL_LOOK_SECONDS = 1.0
PROMOTE_SECONDS = 0.25


class AttemptEnd(Protocol):
    @property
    def fence(self) -> Fence: ...


Held = TypeVar("Held", bound=AttemptEnd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """The worker that claims, and the session that it registered."""

    worker: str
    session: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is to be claimed from one queue; `exchange.sql` explains the mark and `polled`."""

    claimer: Claimer
    queue: str
    limit: int
    mark: int
    polled: bool | None


@dataclass(slots=True, kw_only=True)
class _Written:
    """Which attempts' ends stand, and as what."""

    done: set[Fence] = field(default_factory=set)
    retried: set[Fence] = field(default_factory=set)
    repeated: set[Fence] = field(default_factory=set)

    def verdict(self, fence: Fence) -> Verdict:
        if fence in self.done:
            return Verdict.DONE
        if fence in self.retried:
            return Verdict.RETRYING
        return Verdict.REPEATED if fence in self.repeated else Verdict.STALE


class FinishAndClaim:
    def __init__(
        self,
        db: Db,
        notifier: Notifier,
        announcer: Announcer,
        gates: Gates,
        metrics: KernelMetrics,
        *,
        max_bytes: int,
        on_stale: Callable[[Fence, str], None],
    ) -> None:
        self._db = db
        self._notifier = notifier
        self._announcer = announcer
        self.watch = QueueWatch(db, notifier, announcer, metrics.background)
        self._gates = gates
        self._metrics = metrics
        self._max_bytes = max_bytes
        self._on_stale = on_stale
        self._marks: dict[str, int] = {}
        self._full_look_at: dict[str, float] = {}
        self._promote_at = 0.0
        self._listeners = Waiters(notifier)
        notifier.on_notification(self._lower_mark)

    async def run(
        self,
        endings: Sequence[Ending],
        worker: str,
        queues: Sequence[str],
        limit: int,
        wait: float,
        line: Line | None = None,
        polled: bool | None = None,
        session: UUID | None = None,
    ) -> tuple[list[Verdict], list[Claimed]]:
        claimer = Claimer(worker=worker, session=session)
        heard = self._notifier.heard(queues)
        if wait and not endings and self.watch.all_empty(queues):
            return [], await self._wait_and_claim(claimer, queues, limit, wait, line, heard, polled)
        if limit and time.monotonic() >= self._promote_at:
            await self._promote()
        one = queues[0] if len(queues) == 1 and limit else None
        verdicts, claimed = await self._step(
            endings, claimer, one or "", limit if one else 0, polled
        )
        if limit and not claimed:
            claimed = await self._look(claimer, queues, limit, polled, again=one is not None)
        if limit and not claimed and wait:
            claimed = await self._wait_and_claim(claimer, queues, limit, wait, line, heard, polled)
        return verdicts, claimed

    async def _wait_and_claim(
        self,
        claimer: Claimer,
        queues: Sequence[str],
        limit: int,
        wait: float,
        line: Line | None,
        heard: int,
        polled: bool | None,
    ) -> list[Claimed]:
        """`heard` is the number of notifications seen before a look that returned nothing."""
        until = time.monotonic() + wait
        rung = self._notifier.wait if polled is None else self._listeners.wait
        with self.watch.awaiting(queues):
            while (left := until - time.monotonic()) > 0 and await rung(
                queues, left, heard=heard, line=line
            ):
                if line is not None and line.dead:
                    self._notifier.pass_on(queues)
                    break
                heard = self._notifier.heard(queues)
                if claimed := await self._look(claimer, queues, limit, polled):
                    self._notifier.pass_on(queues)
                    return claimed
        return []

    async def _look(
        self,
        claimer: Claimer,
        queues: Sequence[str],
        limit: int,
        polled: bool | None,
        *,
        again: bool = False,
    ) -> list[Claimed]:
        """What is ready; failing that, what comes due at this moment. `again`, after a look that
        found nothing."""
        claimed = [] if again else await self._claim_over(claimer, queues, limit, polled)
        if not claimed and await self._promote():
            claimed = await self._claim_over(claimer, queues, limit, polled)
        return claimed

    async def _claim_over(
        self, claimer: Claimer, queues: Sequence[str], limit: int, polled: bool | None
    ) -> list[Claimed]:
        """Several queues are claimed in the order of their oldest job, one statement each, until
        the limit is met."""
        if len(queues) > 1:
            queues = [r["queue"] for r in await self._db.fetch(SQL.heads, queues=list(queues))]
        claimed: list[Claimed] = []
        for queue in queues:
            if len(claimed) < limit:
                try:
                    claimed += (await self._step((), claimer, queue, limit - len(claimed), polled))[
                        1
                    ]
                except DatabaseUnavailable:
                    if not claimed:
                        raise
                    break
        return claimed

    async def _step(
        self,
        endings: Sequence[Ending],
        claimer: Claimer,
        queue: str,
        limit: int,
        polled: bool | None = None,
    ) -> tuple[list[Verdict], list[Claimed]]:
        mark = self._mark(queue) if polled is None else NO_MARK
        claim = Claim(claimer=claimer, queue=queue, limit=limit, mark=mark, polled=polled)
        first = _first(endings)
        records: list[asyncpg.Record] = []
        written = _Written()
        places: list[int] = []
        if all(_is_plain(e.outcome) for e in first):
            records = await self._statement(self._db, first, claim, alone=True)
            places = _places(records)
        if len(places) < len(first):
            written.done = {first[place - 1].fence for place in places}
            remaining = [e for e in first if e.fence not in written.done]
            records = await self._in_transaction(remaining, claim, written)
        if first:
            self._announcer.left([e.fence.job_id for e in first])
        taken = sorted((r for r in records if r["places"] is None), key=itemgetter("order_key"))
        claimed = [row_mapping.claimed(r, queue) for r in taken]
        self._metrics.claimed(queue, claimed)
        if claimed and polled is None:
            self._marks[queue] = taken[-1]["order_key"]
        elif limit and mark != NO_MARK:
            self._marks.pop(queue, None)
            claimed = (await self._step((), claimer, queue, limit))[1]
        if len(places) == len(endings):
            return [Verdict.DONE] * len(endings), claimed
        written.done.update(first[place - 1].fence for place in places)
        return self._verdicts(endings, written), claimed

    async def _in_transaction(
        self, endings: Sequence[Ending], claim: Claim, written: _Written
    ) -> list[asyncpg.Record]:
        """Ends that may retry, spawn jobs, move gates or be stale, and then the claim."""
        async with self._db.transaction() as tx:
            await self._hold(tx, endings)
            retried = await self._retry(tx, endings)
            terminal = [e for e in endings if e.fence not in retried]
            left = await self._left_behind(tx, terminal)
            spawning = bool(_spawned(terminal))
            records = await self._statement(
                tx, terminal, replace(claim, limit=0) if spawning else claim, alone=False
            )
            done = _done(terminal, records)
            members = [r for r in records if r["places"] is not None and r["group_id"] is not None]
            if spawning or members:
                await self._gates.settle(
                    tx, members, _spawned(e for e in terminal if e.fence in done)
                )
            await self._gates.clean_up(tx, [r for r in left if fences_of([r]) <= done])
            missing = [e.fence for e in terminal if e.fence not in done]
            repeated = await already(tx, missing, "ended") if missing else set()
            retried |= await already(tx, missing, "retried") if missing else set()
            if claim.limit and (spawning or members):
                records = await self._statement(tx, (), claim, alone=False)
        written.done |= done
        written.retried |= retried
        written.repeated |= repeated
        return records

    async def _statement(
        self, db: Db | Tx, endings: Sequence[Ending], claim: Claim, *, alone: bool
    ) -> list[asyncpg.Record]:
        outcomes = [e.outcome for e in endings]
        return await db.fetch(
            SQL.exchange,
            **columns(e.fence for e in endings),
            results=row_mapping.column([self._result(o) for o in outcomes]),
            errors=row_mapping.column([self._error(o) for o in outcomes]),
            worker=claim.claimer.worker,
            session=claim.claimer.session,
            queue=claim.queue,
            limit=claim.limit,
            mark=claim.mark,
            polled=claim.polled,
            alone=alone,
        )

    async def _left_behind(self, tx: Tx, endings: Sequence[Ending]) -> list[asyncpg.Record]:
        """The external work that interrupted attempts had recorded; it is written with their
        end.
        """
        cut = [
            e.fence
            for e in endings
            if isinstance(e.outcome, Failed) and _code(e.outcome) in CUT_SHORT
        ]
        return await tx.fetch(SQL.left_behind, **columns(cut)) if cut else []

    def _result(self, outcome: Outcome) -> str | None:
        if isinstance(outcome, Failed) or outcome.result is None:
            return None
        return row_mapping.dump(outcome.result, "result", self._max_bytes)

    def _error(self, outcome: Outcome) -> str | None:
        return (
            row_mapping.dump(outcome.error, "error", self._max_bytes)
            if isinstance(outcome, Failed)
            else None
        )

    async def _hold(self, tx: Tx, endings: Sequence[Ending]) -> None:
        """Lock all lock keys and live rows at once, where several statements will write them."""
        lock_keys = [s.lock_key for s in _spawned(endings) if s.lock_key is not None]
        if lock_keys:
            await tx.fetch(SQL.lock_keys, lock_keys=lock_keys)
        if lock_keys or len({_is_retry(e.outcome) for e in endings}) > 1:
            await tx.fetch(SQL.hold, **columns(e.fence for e in endings), lock_keys=lock_keys)

    async def _retry(self, tx: Tx, endings: Sequence[Ending]) -> set[Fence]:
        retries = {e.fence: e.outcome for e in endings if _is_retry(e.outcome)}
        if not retries:
            return set()
        return fences_of(
            await tx.fetch(
                SQL.retry,
                **columns(retries),
                errors=[self._error(failed) for failed in retries.values()],
                retry_ins=[failed.retry_in for failed in retries.values()],
            )
        )

    def _verdicts(self, endings: Sequence[Ending], written: _Written) -> list[Verdict]:
        verdicts = {e.fence: written.verdict(e.fence) for e in endings}
        for fence, verdict in verdicts.items():
            if verdict is Verdict.STALE:
                self._on_stale(fence, "finish")
        return [_answer(verdicts, e.fence) for e in endings]

    def _mark(self, queue: str) -> int:
        now = time.monotonic()
        if now - self._full_look_at.get(queue, 0) > FULL_LOOK_SECONDS:
            self._full_look_at[queue] = now
            return NO_MARK
        return self._marks.get(queue, NO_MARK)

    def _lower_mark(self, queue: str, order_key: int) -> None:
        if order_key < self._marks.get(queue, NO_MARK):
            self._marks[queue] = order_key

    async def _promote(self) -> bool:
        self._promote_at = time.monotonic() + PROMOTE_SECONDS
        return await self.watch.promote()


async def already(tx: Tx | Db, fences: Sequence[Fence], how: str) -> set[Fence]:
    """Which of these writes stand: what changed nothing is stale only after a look, for a reply may
    have been lost."""
    records = await tx.fetch(SQL.repeated, **columns(fences))
    return fences_of(r for r in records if r["how"] == how)


def _places(records: Iterable[asyncpg.Record]) -> list[int]:
    """Of the ends that were written, counted from 1."""
    return [place for r in records if r["places"] is not None for place in r["places"]]


def _done(endings: Sequence[Ending], records: Iterable[asyncpg.Record]) -> set[Fence]:
    return {endings[place - 1].fence for place in _places(records)}


def _is_plain(outcome: Outcome) -> bool:
    """Whether the end is nothing but the end of its own job, unless that is a member of a group."""
    return isinstance(outcome, Succeeded) and not outcome.spawn


def _is_retry(outcome: Outcome) -> TypeGuard[Failed]:
    return isinstance(outcome, Failed) and outcome.retry_in is not None


def _code(failed: Failed) -> object:
    return failed.error.get("code") if isinstance(failed.error, dict) else None


def columns(fences: Iterable[Fence]) -> dict[str, list[object]]:
    listed = list(fences)
    return {"job_ids": [f.job_id for f in listed], "attempt_ids": [f.attempt_id for f in listed]}


def fences_of(records: Iterable[asyncpg.Record]) -> set[Fence]:
    return {Fence(job_id=r["job_id"], attempt_id=r["attempt_id"]) for r in records}


def in_lock_order(items: Iterable[Held]) -> list[Held]:
    """Endings by job id: live rows are locked in this order everywhere, which rules out
    deadlocks.
    """
    return sorted(items, key=lambda item: item.fence.job_id)


def _first(endings: Sequence[Ending]) -> list[Ending]:
    """One ending an attempt, the first that was given. Fences are compared only where a job comes
    twice."""
    if len({e.fence.job_id for e in endings}) == len(endings):
        return in_lock_order(endings)
    return in_lock_order({e.fence: e for e in reversed(endings)}.values())


def _spawned(endings: Iterable[Ending]) -> list[JobSpec]:
    return [spec for e in endings if isinstance(e.outcome, Succeeded) for spec in e.outcome.spawn]


def _answer(verdicts: dict[Fence, Verdict], fence: Fence) -> Verdict:
    """The verdict; a second ending of the same attempt in one batch gets the same one."""
    verdict = verdicts[fence]
    if verdict.accepted:
        verdicts[fence] = Verdict.REPEATED
    return verdict
