"""Plans, chunks, the gate and the match, on the real kernel; the test is the worker."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from penstock.jobs.model import Ending, Failed, JobSpec, Succeeded, Verdict
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.errors import InvalidState, NotFound
from penstock.reconcile.runs.model import Run, RunStatus
from penstock.reconcile.runs.payloads import STAGE_CHUNK, StageChunkPayload
from penstock.reconcile.runs.repository import MATCHED, STAGED, Runs
from penstock.wiring.job_kinds import default_kinds
from tests.jobs.conformance import beat
from tests.reconcile.stand import recipe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.model import Claimed, Outcome

RECIPE = recipe(rules=[{"name": "r", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}])
TO_STAGE = {"data_source_id": 1, "document": {"source": "s", "table": "t", "primary_key": ["id"]}}
FILES = {"files": [{"key": "uploads/x.parquet", "rows": 5, "size": 1, "sha256": "0"}], "rows": 5}


class Floor:
    """The kernel, the runs, and a worker's hands."""

    def __init__(self, store: PgJobStore, runs: Runs, dsn: str) -> None:
        self.store = store
        self.runs = runs
        self.dsn = dsn

    async def run(self, **inputs: Any) -> Run:
        given = {"left": TO_STAGE, "right": FILES} | inputs
        return await self.runs.add(owner="me", recipe=RECIPE, inputs=given, callback_url=None)

    async def claim(self, queue: str = "stage", count: int = 1) -> list[Claimed]:
        found = await self.store.claim("hand", [queue], count)
        assert len(found) == count
        return found

    async def end(self, job: Claimed, outcome: Outcome) -> Verdict:
        return (await self.store.finish([Ending(fence=job.fence, outcome=outcome)]))[0]

    async def plan(self, job: Claimed, chunks: int) -> None:
        """The plan's end, with its chunks."""
        await self.end(job, planned(job, chunks))

    async def status(self, run: Run) -> RunStatus:
        return (await self.runs.get(run.run_id)).status

    async def matches(self) -> int:
        connection = await asyncpg.connect(self.dsn)
        try:
            return int(
                await connection.fetchval("SELECT count(*) FROM penstock.job WHERE kind = 'match'")
            )
        finally:
            await connection.close()

    async def later(self, span: str) -> None:
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(
                "CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE "
                f"AS $$SELECT statement_timestamp() + interval '{span}'$$"
            )
        finally:
            await connection.close()


def planned(job: Claimed, chunks: int, *, spawn: bool = True) -> Succeeded:
    plan = str(job.fence.attempt_id)
    specs = [spec(job, number) for number in range(chunks)] if spawn else []
    return Succeeded(result={"plan": plan, "chunks": chunks, "snapshot": None}, spawn=specs)


def spec(job: Claimed, number: int) -> JobSpec:
    order = StageChunkPayload(
        run_id=job.payload["run_id"],
        side=job.payload["side"],
        data_source_id=1,
        plan=str(job.fence.attempt_id),
        plan_job=job.job_id,
        number=number,
        sql="SELECT 1",
        snapshot=None,
    )
    key = f"{STAGE_CHUNK}:{job.fence.attempt_id}:{number}"
    return JobSpec(kind=STAGE_CHUNK, payload=order.payload(), group_id=job.group_id, unique_key=key)


def staged(job: Claimed, rows: int = 10) -> Succeeded:
    number = job.payload["number"]
    files = [
        {
            "key": f"staging/{job.payload['plan']}/{number}",
            "rows": rows,
            "size": 1,
            "sha256": str(number),
        }
    ]
    return Succeeded(
        result={"plan": job.payload["plan"], "number": number, "rows": rows, "files": files}
    )


DONE = Succeeded(result={"totals": {}, "threshold": None})


@asynccontextmanager
async def floor_on(dsn: str) -> AsyncIterator[Floor]:
    async with (
        Db(dsn, size=8, settings=ENGINE_SETTINGS) as db,
        PgJobStore(db, default_kinds()) as store,
    ):
        runs = Runs(db, store)
        store.gates.handle(STAGED, runs.staged)
        store.gates.handle(MATCHED, runs.matched)
        yield Floor(store, runs, dsn)


@pytest.fixture
async def floor(database: str) -> AsyncIterator[Floor]:
    async with floor_on(database) as it:
        yield it


async def test_a_run_goes_from_staging_to_ready_to_executing_to_completed(floor: Floor) -> None:
    run = await floor.run()
    assert run.status is RunStatus.STAGING
    [plan] = await floor.claim()
    await floor.plan(plan, 2)
    assert await floor.status(run) is RunStatus.STAGING
    for chunk in await floor.claim(count=2):
        await floor.end(chunk, staged(chunk))
    assert await floor.status(run) is RunStatus.READY
    [match] = await floor.claim("match")
    assert [file["sha256"] for file in match.payload["inputs"]["left"]["files"]] == ["0", "1"]
    assert match.payload["inputs"]["left"]["rows"] == 20
    assert await floor.status(run) is RunStatus.EXECUTING
    await floor.end(match, DONE)
    assert await floor.status(run) is RunStatus.COMPLETED


async def test_files_that_are_there_already_are_matched_at_once(floor: Floor) -> None:
    run = await floor.run(left=FILES)
    assert run.status is RunStatus.READY
    [match] = await floor.claim("match")
    await floor.end(match, DONE)
    assert await floor.status(run) is RunStatus.COMPLETED


async def test_the_gate_waits_for_the_plan_of_the_other_side(floor: Floor) -> None:
    run = await floor.run(right=TO_STAGE)
    first, second = await floor.claim(count=2)
    await floor.plan(first, 1)
    [chunk] = await floor.claim()
    await floor.end(chunk, staged(chunk))
    assert await floor.status(run) is RunStatus.STAGING
    await floor.plan(second, 1)
    [chunk] = await floor.claim()
    await floor.end(chunk, staged(chunk))
    assert await floor.status(run) is RunStatus.READY
    assert await floor.matches() == 1


async def test_a_plan_that_ran_twice_counts_once(floor: Floor) -> None:
    """The first attempt added its chunks and died; the second cut anew."""
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.store.enqueue([spec(plan, number) for number in range(3)])
    old = await floor.claim(count=3)
    await floor.end(old[0], staged(old[0], rows=7))
    await floor.later("3 minutes")
    await floor.store.renew(beat(*(chunk.fence for chunk in old[1:])))
    await floor.store.reap()
    found = await floor.claim(count=1)
    again = found[0]
    assert again.payload == plan.payload
    assert again.fence != plan.fence
    assert await floor.end(plan, planned(plan, 3, spawn=False)) is Verdict.STALE
    await floor.store.enqueue([spec(again, number) for number in range(2)])
    for chunk in [*old[1:], *await floor.claim(count=2)]:
        await floor.end(chunk, staged(chunk))
    await floor.end(again, planned(again, 2, spawn=False))
    [match] = await floor.claim("match")
    left = match.payload["inputs"]["left"]
    assert (left["rows"], {file["key"].split("/")[1] for file in left["files"]}) == (
        20,
        {str(again.fence.attempt_id)},
    )
    assert await floor.status(run) is RunStatus.EXECUTING


async def test_a_chunk_that_ends_twice_counts_once(floor: Floor) -> None:
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.plan(plan, 2)
    first, second = await floor.claim(count=2)
    assert await floor.end(first, staged(first)) is Verdict.DONE
    assert await floor.end(first, staged(first)) is Verdict.REPEATED
    assert await floor.status(run) is RunStatus.STAGING
    await floor.end(second, staged(second))
    [match] = await floor.claim("match")
    assert match.payload["inputs"]["left"]["rows"] == 20
    assert await floor.matches() == 1


@pytest.mark.parametrize("times", range(3))
async def test_the_last_two_finishers_at_once_open_one_match(floor: Floor, times: int) -> None:
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.plan(plan, 4)
    chunks = await floor.claim(count=4)
    await asyncio.gather(*(floor.end(chunk, staged(chunk)) for chunk in chunks))
    assert await floor.status(run) is RunStatus.READY
    assert await floor.matches() == 1


async def test_a_chunk_that_is_reaped_after_its_end_changes_nothing(floor: Floor) -> None:
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.plan(plan, 1)
    [chunk] = await floor.claim()
    await floor.end(chunk, staged(chunk))
    await floor.later("10 minutes")
    await floor.store.reap()
    assert await floor.status(run) is RunStatus.READY
    assert await floor.matches() == 1


async def test_a_job_that_is_out_of_attempts_fails_the_run_and_takes_the_others_along(
    floor: Floor,
) -> None:
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.plan(plan, 3)
    [chunk] = await floor.claim()
    await floor.end(chunk, Failed(error={"code": "SOURCE_ERROR", "message": "The table is gone."}))
    ended = await floor.runs.get(run.run_id)
    assert ended.status is RunStatus.FAILED
    assert ended.error is not None
    assert (ended.error["message"], ended.error["step"]) == ("The table is gone.", "stage_chunk")
    assert await floor.store.claim("hand", ["stage"], 5) == []
    assert await floor.matches() == 0


async def test_a_run_past_its_time_fails_and_its_jobs_are_cancelled(floor: Floor) -> None:
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.plan(plan, 1)
    await floor.later("7201 seconds")
    await floor.store.reap()
    ended = await floor.runs.get(run.run_id)
    assert ended.status is RunStatus.FAILED
    assert ended.error is not None
    assert "deadline" in ended.error["message"].lower()


async def test_a_cancelled_run_is_over_at_once_and_for_good(floor: Floor) -> None:
    run = await floor.run(right=TO_STAGE)
    [plan] = await floor.claim()
    cancelled = await floor.runs.cancel(run.run_id, actor="me", reason="wrong month")
    assert (cancelled.status, cancelled.error and cancelled.error["message"]) == (
        RunStatus.CANCELLED,
        "wrong month",
    )
    assert await floor.end(plan, planned(plan, 2)) is Verdict.STALE
    assert await floor.store.claim("hand", ["stage"], 5) == []
    assert (await floor.runs.cancel(run.run_id, actor="me")).status is RunStatus.CANCELLED


async def test_a_run_that_is_over_is_not_cancelled(floor: Floor) -> None:
    run = await floor.run(left=FILES)
    [match] = await floor.claim("match")
    await floor.end(match, DONE)
    with pytest.raises(InvalidState, match="is over: completed"):
        await floor.runs.cancel(run.run_id, actor="me")
    with pytest.raises(InvalidState):
        await floor.runs.retry(run.run_id)


async def test_a_failed_run_is_tried_again_as_a_new_one_from_its_sources(floor: Floor) -> None:
    run = await floor.run()
    await floor.runs.cancel(run.run_id, actor="me")
    again = await floor.runs.retry(run.run_id)
    assert (again.retry_of, again.status, again.owner_username) == (
        run.run_id,
        RunStatus.STAGING,
        run.owner_username,
    )
    assert again.inputs["left"] == TO_STAGE


async def test_a_passed_threshold_fails_the_run_with_its_result(floor: Floor) -> None:
    run = await floor.run(left=FILES)
    [match] = await floor.claim("match")
    error = {"code": "RECONCILE_THRESHOLD", "message": "12 % is unmatched."}
    await floor.end(match, Succeeded(result={"totals": {"left": 1}, "threshold": error}))
    ended = await floor.runs.get(run.run_id)
    assert (ended.status, ended.error) == (RunStatus.FAILED, error)
    assert ended.result is not None
    assert ended.result["totals"] == {"left": 1}


async def test_two_runs_of_one_recipe_at_once_are_strangers(floor: Floor) -> None:
    runs = [await floor.run(left=FILES) for _ in range(2)]
    for match in await floor.claim("match", 2):
        await floor.end(match, DONE)
    assert [await floor.status(run) for run in runs] == [RunStatus.COMPLETED] * 2


async def test_progress_tells_rows_share_and_jobs(floor: Floor) -> None:
    run = await floor.run()
    [plan] = await floor.claim()
    await floor.plan(plan, 2)
    first, _ = await floor.claim(count=2)
    await floor.end(first, staged(first))
    said = await floor.runs.progress(await floor.runs.get(run.run_id))
    assert (said.stage, said.rows, said.percent, said.jobs, said.jobs_over) == (
        "staging",
        10,
        25.0,
        3,
        2,
    )
    assert said.eta_seconds is not None


async def test_what_is_not_there_is_not_found(floor: Floor) -> None:
    for run_id in (1, 0, -1, 2**63):
        with pytest.raises(NotFound):
            await floor.runs.get(run_id)
