"""Every order in which members end, fail, join, spawn and die: the gate fires once, for all of
them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.kinds import Kinds
from penstock.jobs.model import (
    Ending,
    GroupSpec,
    JobSpec,
    Reaped,
    Succeeded,
)
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.errors import InvalidState
from tests.proof.proof_db import LEASE, POLICIES, proof_db_on
from tests.proof.scripts import AFTER, BADLY, FEW, PLAIN, WELL, check, count, enqueue, finish, reap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.jobs.gates import Fired
    from penstock.kit.db import Tx
    from tests.proof.explorer import Explorer, Script

_CLOCK_THAT_HOLDS_THE_REAPER = """
CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF current_query() LIKE '%Groups that the reaper must look at%' THEN PERFORM
    pg_advisory_xact_lock_shared(42); END IF;
  RETURN (SELECT at FROM penstock.proof_clock);
END $$"""


async def test_a_gate_fires_once_whoever_finishes_last(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.store.open_group(GroupSpec(name="g", on_success=[AFTER]), [PLAIN, PLAIN])
        left, right = await proof_db.claim(limit=2)
        return {"A": finish(left), "B": finish(right)}

    async for order in explorer.walk(arrange):
        assert await count(proof_db, "once") == 1, f"{order}"
        await check(proof_db, order)
        assert await count(proof_db, "once") == 1, f"{order}"


async def test_a_gate_fires_once_among_a_last_finisher_a_failure_and_the_reaper(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        spec = GroupSpec(name="g", on_failure=[AFTER], deadline_in=timedelta(seconds=10))
        await proof_db.store.open_group(
            spec, [PLAIN, PLAIN, JobSpec(kind="plain", run_in=timedelta(hours=1))]
        )
        left, right = await proof_db.claim(limit=2)
        await proof_db.advance(11)
        return {"A": finish(left), "B": finish(right, outcome=BADLY), "C": reap()}

    async for order in explorer.walk(arrange, switches=FEW - 1):
        await check(proof_db, order)
        assert await count(proof_db, "once") == 1, f"{order}"


async def test_a_job_joins_a_group_before_its_gate_fires_or_not_at_all(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        group_id, _ = await proof_db.store.open_group(
            GroupSpec(name="g", on_success=[AFTER]), [PLAIN]
        )
        claimed = await proof_db.claim_one()
        return {"A": finish(claimed), "B": enqueue(JobSpec(kind="plain", group_id=group_id))}

    async for order in explorer.walk(arrange):
        joined = isinstance(order.results["B"], list)
        assert joined or isinstance(order.results["B"], InvalidState), f"{order}"
        assert await count(proof_db, "once") == (0 if joined else 1), f"{order}"
        await check(proof_db, order)
        assert await count(proof_db, "once") == 1, f"{order}"


async def test_two_plans_of_one_group_both_spawn_and_the_gate_waits_for_all(
    explorer: Explorer,
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        group_id, _ = await proof_db.store.open_group(
            GroupSpec(name="g", on_success=[AFTER]), [PLAIN, PLAIN]
        )
        left, right = await proof_db.claim(limit=2)
        chunks = Succeeded(spawn=[JobSpec(kind="brief", group_id=group_id)] * 2)
        return {"A": finish(left, outcome=chunks), "B": finish(right, outcome=chunks)}

    async for order in explorer.walk(arrange):
        assert (await count(proof_db, "brief"), await count(proof_db, "once")) == (4, 0), f"{order}"
        await check(proof_db, order)
        assert await count(proof_db, "once") == 1, f"{order}"


@pytest.mark.parametrize("crash_at", [1, 2, 3, 4, 5])
async def test_a_finisher_that_dies_at_any_step_leaves_a_gate_that_still_fires_once(
    explorer: Explorer, crash_at: int
) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.store.open_group(GroupSpec(name="g", on_success=[AFTER]), [PLAIN, PLAIN])
        left, right = await proof_db.claim(limit=2)
        return {"A": finish(left), "B": finish(right)}

    async for order in explorer.walk(arrange, crash=("B", crash_at), switches=FEW):
        await check(proof_db, order)
        assert await count(proof_db, "once") == 1, f"{order}"


async def test_two_reapers_reap_a_job_once(explorer: Explorer) -> None:
    proof_db = explorer.proof_db

    async def arrange() -> Mapping[str, Script]:
        await proof_db.store.open_group(
            GroupSpec(name="g", on_failure=[AFTER]), [JobSpec(kind="once", queue="q"), PLAIN]
        )
        await proof_db.store.claim("w", ["q"], 1)
        await proof_db.advance(LEASE + 1)
        return {"A": reap(), "B": reap()}

    async for order in explorer.walk(arrange, switches=FEW):
        reaped = [r for r in order.results.values() if isinstance(r, Reaped)]
        assert sum(r.failed for r in reaped) == 1, f"{order}"
        await check(proof_db, order)
        assert await count(proof_db, "once") == 2, f"{order}"


async def test_a_job_that_joins_while_the_reaper_looks_at_its_group_is_not_cancelled(
    database: str,
) -> None:
    """The reaper's statement is held between its snapshot and its lock, which no order of steps can
    do."""

    async def gate(tx: Tx, fired: Fired) -> None:
        raise ValueError("not yet")

    async with (
        proof_db_on(database) as proof_db,
        Db(database, size=1, settings=ENGINE_SETTINGS) as db,
    ):
        proof_db.store.gates.handle("late", gate)
        group_id, _ = await proof_db.store.open_group(GroupSpec(name="g", gate="late"), [PLAIN])
        await proof_db.store.finish(
            [Ending(fence=(await proof_db.claim_one()).fence, outcome=WELL)]
        )
        await proof_db.eye.execute(_CLOCK_THAT_HOLDS_THE_REAPER)
        reaper = PgJobStore(db, Kinds(POLICIES))
        await reaper.reap()
        await proof_db.eye.execute("SELECT pg_advisory_lock(42)")
        reaping = asyncio.create_task(reaper.reap())
        async with asyncio.timeout(20):
            while not await proof_db.eye.fetchval(
                "SELECT count(*) FROM pg_locks WHERE NOT granted"
            ):
                assert not reaping.done()
        [joined] = await proof_db.add(JobSpec(kind="plain", group_id=group_id))
        await proof_db.eye.execute("SELECT pg_advisory_unlock(42)")
        await reaping
        assert await proof_db.status(joined) == "READY"
