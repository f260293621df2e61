"""The explorer itself: it walks every order, sees a lock for what it is, and finds a deadlock where
there is one."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

from penstock.jobs.model import JobSpec
from penstock.kit.sqlfile import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.jobs.store import PgJobStore
    from tests.proof.explorer import Explorer, Script
    from tests.proof.tapped import TappedDb

NOW = parse("look", "SELECT 1")
TOUCH = parse("touch", "UPDATE penstock.live SET polls = polls + 1 WHERE job_id = :job_id")


def touching(*job_ids: int) -> Script:
    async def touch(_store: PgJobStore, db: TappedDb) -> None:
        async with db.transaction() as tx:
            for job_id in job_ids:
                await tx.fetch(TOUCH, job_id=job_id)

    return touch


async def test_two_actors_of_three_steps_have_twenty_orders(explorer: Explorer) -> None:
    async def look(_store: PgJobStore, db: TappedDb) -> None:
        for _ in range(3):
            await db.fetch(NOW)

    async def arrange() -> Mapping[str, Script]:
        return {"A": look, "B": look}

    orders = [str(order) async for order in explorer.walk(arrange)]
    assert len(orders) == len(set(orders)) == comb(6, 3)


async def test_no_step_is_taken_past_a_lock(explorer: Explorer) -> None:
    async def arrange() -> Mapping[str, Script]:
        [job_id] = await explorer.proof_db.add(JobSpec(kind="plain"))
        return {"A": touching(job_id), "B": touching(job_id)}

    orders = [order async for order in explorer.walk(arrange)]
    assert {str(order) for order in orders} == {
        "A:UPDATE A:COMMIT B:UPDATE B:COMMIT",
        "A:UPDATE B:UPDATE A:COMMIT B:COMMIT",
        "B:UPDATE A:UPDATE B:COMMIT A:COMMIT",
        "B:UPDATE B:COMMIT A:UPDATE A:COMMIT",
    }
    assert sum(order.deadlocks for order in orders) == 0


async def test_a_deadlock_is_found(explorer: Explorer) -> None:
    async def arrange() -> Mapping[str, Script]:
        one, two = await explorer.proof_db.add(JobSpec(kind="plain"), JobSpec(kind="plain"))
        return {"A": touching(one, two), "B": touching(two, one)}

    orders = [order async for order in explorer.walk(arrange)]
    assert any(order.deadlocks for order in orders)
    assert not all(order.deadlocks for order in orders)
