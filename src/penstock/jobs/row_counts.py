"""How many there are: exactly where that costs little, else estimated, and labelled so.

A count reads every row that it counts, so at millions of rows it takes seconds, and at 100,000 it
costs thirty times what the page beside it costs. A list asks the planner first: what it holds to be
cheap is counted up to a bound (statistics may be old), of the rest its estimate is given. Queues
are counted by their indexes up to a bound; a queue that has more is estimated from a sample of the
table's pages. So a small queue beside a huge one is counted exactly: a scaler must see its one job.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.jobs.model import Status
from penstock.kit.sqlfile import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import asyncpg

    from penstock.kit.db import Tx
    from penstock.kit.sqlfile import Statement

SQL = load("penstock.jobs.sql")
CHEAP_COST = 250
"""In the planner's units; well under a millisecond, as the page itself."""
MOST_COUNTED = 5_000
PLAN_SECONDS = 5.0
MOST_PLANS = 256
SMALL_TABLE_PAGES = 800
QUEUE_BOUND = 2_000
OTHERS_BOUND = 10_000
SAMPLED_PAGES = 400
_STATUSES = {
    "ready": Status.READY,
    "running": Status.RUNNING,
    "parked": Status.PARKED,
    "scheduled": Status.SCHEDULED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    value: int
    estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    queue: str
    ready: int
    running: int
    parked: int
    scheduled: int
    oldest_wait: float | None
    estimated: bool = False


class Estimates:
    """What the planner holds of counts, remembered for a moment: lists are looked at again and
    again."""

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._plans: OrderedDict[tuple[object, ...], _Plan] = OrderedDict()

    async def count(self, tx: Tx, statement: Statement, values: dict[str, object]) -> Count:
        """What the statement counts up to `:most`, or what the planner expects it to count."""
        plan = await self._plan(tx, statement, values)
        if plan.cost > CHEAP_COST:
            return Count(value=plan.rows, estimated=True)
        value: int = await tx.value(statement, **values, most=MOST_COUNTED + 1)
        if value > MOST_COUNTED:
            return Count(value=max(value, plan.rows), estimated=True)
        return Count(value=value, estimated=False)

    async def _plan(self, tx: Tx, statement: Statement, values: dict[str, object]) -> _Plan:
        key = (statement.name, *(_hashable(value) for value in values.values()))
        now = self._ticks()
        plan = self._plans.get(key)
        if plan is None or now - plan.made_at > PLAN_SECONDS:
            shown = await tx.plan(statement, **values, most=None)
            rows = int(shown["Plans"][0]["Plan Rows"])
            plan = self._plans[key] = _Plan(cost=shown["Total Cost"], rows=rows, made_at=now)
            self._plans.move_to_end(key)
            while len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    cost: float
    rows: int
    made_at: float


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


async def count_queues(tx: Tx) -> list[QueueView]:
    pages = await tx.value(SQL.live_pages)
    if pages <= SMALL_TABLE_PAGES:
        return [QueueView(**dict(row)) for row in await tx.fetch(SQL.queues)]
    bounded = await tx.fetch(SQL.queues_bounded, queue_bound=QUEUE_BOUND, others_bound=OTHERS_BOUND)
    if not any(_is_cut(row) for row in bounded):
        return [_exact(row) for row in bounded]
    percent = min(100.0, 100 * SAMPLED_PAGES / pages)
    sample = await tx.fetch(SQL.queues_sampled, percent=percent)
    return _estimated(bounded, sample, 100 / percent)


def _is_cut(row: asyncpg.Record) -> bool:
    return bool(row["ready"] >= QUEUE_BOUND or row["running_cut"] or row["waiting_cut"])


def _exact(row: asyncpg.Record) -> QueueView:
    return QueueView(**{name: row[name] for name in (*_STATUSES, "queue", "oldest_wait")})


def _estimated(
    bounded: Sequence[asyncpg.Record], sample: Sequence[asyncpg.Record], factor: float
) -> list[QueueView]:
    """What was counted, and more where the count was cut and the sample has more."""
    scaled = Counter({(row["queue"], row["status"]): round(row["rows"] * factor) for row in sample})
    counted = {row["queue"]: row for row in bounded}
    views = []
    for queue in sorted(counted.keys() | {row["queue"] for row in sample}):
        row = counted.get(queue)
        counts = {name: 0 if row is None else row[name] for name in _STATUSES}
        cut = {name for name, value in counts.items() if _is_cut_at(name, value, bounded[0])}
        counts |= {name: max(counts[name], scaled[queue, _STATUSES[name]]) for name in cut}
        oldest_wait = None if row is None else row["oldest_wait"]
        views.append(QueueView(queue=queue, **counts, oldest_wait=oldest_wait, estimated=bool(cut)))
    return views


def _is_cut_at(name: str, value: int, flags: asyncpg.Record) -> bool:
    if name == "ready":
        return value >= QUEUE_BOUND
    return bool(flags["running_cut" if name == "running" else "waiting_cut"])
