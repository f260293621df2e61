"""One user's long list of jobs does not keep the workers from the others'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.jobs.fair_share import MOST_LEAD, FairShare
from penstock.jobs.model import GroupSpec, JobSpec

if TYPE_CHECKING:
    from penstock.api.services import Services
    from tests.jobs.conformance import Clock

STEP = 5.0


async def add(services: Services, who: str, jobs: int, *, step: float = STEP) -> None:
    specs = [JobSpec(kind="work", payload={"who": who}, created_by=who) for _ in range(jobs)]
    async with services.store._db.transaction() as tx:
        _, added = await services.store.open_group(GroupSpec(name=who), specs, tx=tx)
        await FairShare(step=step).spread(tx, "default", who, [job.job_id for job in added])


async def served(services: Services, jobs: int) -> list[str]:
    claimed = [(await services.store.claim("w", ["default"], 1))[0] for _ in range(jobs)]
    return [str(job.payload["who"]) for job in claimed]


@pytest.mark.parametrize(("step", "expected"), [(0.0, 1000), (STEP, 1)])
async def test_whoever_comes_after_a_thousand_jobs_of_one_user_waits_for_one_of_them(
    services: Services, clock: Clock, step: float, expected: int
) -> None:
    await add(services, "ann", 1000, step=step)
    await add(services, "ben", 2, step=step)
    [[before]] = await clock.fetch(
        "SELECT count(*) FROM penstock.live l JOIN penstock.job j USING (job_id) WHERE"
        " j.created_by = 'ann' AND l.order_key < (SELECT min(order_key) FROM penstock.live JOIN"
        " penstock.job USING (job_id) WHERE created_by = 'ben')"
    )
    assert before == expected


async def test_two_users_are_served_in_turn(services: Services) -> None:
    await add(services, "ann", 20)
    await add(services, "ben", 20)
    assert await served(services, 8) == ["ann", "ben"] * 4


async def test_a_list_that_is_added_job_by_job_is_spread_like_one_that_comes_at_once(
    services: Services,
) -> None:
    for _ in range(20):
        await add(services, "ann", 1)
    await add(services, "ben", 3)
    assert await served(services, 6) == ["ann", "ben"] * 3


async def test_nobody_is_put_back_by_more_than_the_lead(services: Services, clock: Clock) -> None:
    await add(services, "ann", int(MOST_LEAD / STEP) * 3)
    await add(services, "ann", 1)
    await clock.advance(MOST_LEAD + 60)
    await add(services, "ben", 1)
    rows = await clock.fetch(
        "SELECT j.created_by, max(l.order_key) AS last FROM penstock.live l JOIN penstock.job j"
        " USING (job_id) GROUP BY j.created_by"
    )
    last = {row["created_by"]: row["last"] for row in rows}
    assert last["ann"] < last["ben"]
