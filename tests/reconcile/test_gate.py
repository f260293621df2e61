"""Plans, chunks, gates and the match on the real job engine; the test is the worker."""

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
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.model import Claimed, Outcome

RECIPE = recipe(rules=[{"name": "r", "conditions": [{"left": "ref", "op": "eq", "right": "ref"}]}])
TO_STAGE = {"data_source_id": 1, "document": {"source": "s", "table": "t", "primary_key": ["id"]}}
FILES = {"files": [{"key": "uploads/x.parquet", "rows": 5, "size": 1, "sha256": "0"}], "rows": 5}


class RunHarness:
    """The kernel, the runs, and a worker's hands."""

    def __init__(self, store: PgJobStore, runs: Runs, dsn: str) -> None:
        self.store = store
        self.runs = runs
        self.dsn = dsn

    async def run(self, **inputs: Any) -> Run:
        sides = {"left": TO_STAGE, "right": FILES} | inputs
        return await self.runs.add(owner="me", recipe=RECIPE, inputs=sides, callback_url=None)

    async def claim(self, queue: str = "stage", count: int = 1) -> list[Claimed]:
        claimed = await self.store.claim("worker", [queue], count)
        assert len(claimed) == count
        return claimed

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
                "CREATE OR REPLACE FUNCTION penstock.now() RETURNS timestamptz "
                "LANGUAGE sql STABLE PARALLEL SAFE "
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
async def harness_on(dsn: str) -> AsyncIterator[RunHarness]:
    async with (
        Db(dsn, size=8, settings=ENGINE_SETTINGS) as db,
        PgJobStore(db, default_kinds()) as store,
    ):
        runs = Runs(db, store)
        store.gates.handle(STAGED, runs.staged)
        store.gates.handle(MATCHED, runs.matched)
        yield RunHarness(store, runs, dsn)


@pytest.fixture
async def harness(database: str) -> AsyncIterator[RunHarness]:
    async with harness_on(database) as it:
        yield it


async def test_a_run_goes_from_staging_to_ready_to_executing_to_completed(
    harness: RunHarness,
) -> None:
    run = await harness.run()
    assert run.status is RunStatus.STAGING
    [plan] = await harness.claim()
    await harness.plan(plan, 2)
    assert await harness.status(run) is RunStatus.STAGING
    for chunk in await harness.claim(count=2):
        await harness.end(chunk, staged(chunk))
    assert await harness.status(run) is RunStatus.READY
    [match] = await harness.claim("match")
    assert [file["sha256"] for file in match.payload["inputs"]["left"]["files"]] == ["0", "1"]
    assert match.payload["inputs"]["left"]["rows"] == 20
    assert await harness.status(run) is RunStatus.EXECUTING
    await harness.end(match, DONE)
    assert await harness.status(run) is RunStatus.COMPLETED


async def test_files_that_are_there_already_are_matched_at_once(harness: RunHarness) -> None:
    run = await harness.run(left=FILES)
    assert run.status is RunStatus.READY
    [match] = await harness.claim("match")
    await harness.end(match, DONE)
    assert await harness.status(run) is RunStatus.COMPLETED


async def test_the_gate_waits_for_the_plan_of_the_other_side(harness: RunHarness) -> None:
    run = await harness.run(right=TO_STAGE)
    first, second = await harness.claim(count=2)
    await harness.plan(first, 1)
    [chunk] = await harness.claim()
    await harness.end(chunk, staged(chunk))
    assert await harness.status(run) is RunStatus.STAGING
    await harness.plan(second, 1)
    [chunk] = await harness.claim()
    await harness.end(chunk, staged(chunk))
    assert await harness.status(run) is RunStatus.READY
    assert await harness.matches() == 1


async def test_a_plan_that_ran_twice_counts_once(harness: RunHarness) -> None:
    """The first attempt added its chunks and died; the second cut anew."""
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.store.enqueue([spec(plan, number) for number in range(3)])
    old = await harness.claim(count=3)
    await harness.end(old[0], staged(old[0], rows=7))
    await harness.later("3 minutes")
    await harness.store.renew(beat(*(chunk.fence for chunk in old[1:])))
    await harness.store.reap()
    claimed = await harness.claim(count=1)
    again = claimed[0]
    assert again.payload == plan.payload
    assert again.fence != plan.fence
    assert await harness.end(plan, planned(plan, 3, spawn=False)) is Verdict.STALE
    await harness.store.enqueue([spec(again, number) for number in range(2)])
    for chunk in [*old[1:], *await harness.claim(count=2)]:
        await harness.end(chunk, staged(chunk))
    await harness.end(again, planned(again, 2, spawn=False))
    [match] = await harness.claim("match")
    left = match.payload["inputs"]["left"]
    assert (left["rows"], {file["key"].split("/")[1] for file in left["files"]}) == (
        20,
        {str(again.fence.attempt_id)},
    )
    assert await harness.status(run) is RunStatus.EXECUTING


async def test_a_chunk_that_ends_twice_counts_once(harness: RunHarness) -> None:
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.plan(plan, 2)
    first, second = await harness.claim(count=2)
    assert await harness.end(first, staged(first)) is Verdict.DONE
    assert await harness.end(first, staged(first)) is Verdict.REPEATED
    assert await harness.status(run) is RunStatus.STAGING
    await harness.end(second, staged(second))
    [match] = await harness.claim("match")
    assert match.payload["inputs"]["left"]["rows"] == 20
    assert await harness.matches() == 1


@pytest.mark.parametrize("times", range(3))
async def test_the_last_two_finishers_at_once_open_one_match(
    harness: RunHarness, times: int
) -> None:
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.plan(plan, 4)
    chunks = await harness.claim(count=4)
    await asyncio.gather(*(harness.end(chunk, staged(chunk)) for chunk in chunks))
    assert await harness.status(run) is RunStatus.READY
    assert await harness.matches() == 1


async def test_a_chunk_that_is_reaped_after_its_end_changes_nothing(harness: RunHarness) -> None:
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.plan(plan, 1)
    [chunk] = await harness.claim()
    await harness.end(chunk, staged(chunk))
    await harness.later("10 minutes")
    await harness.store.reap()
    assert await harness.status(run) is RunStatus.READY
    assert await harness.matches() == 1


async def test_a_job_that_is_out_of_attempts_fails_the_run_and_takes_the_others_along(
    harness: RunHarness,
) -> None:
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.plan(plan, 3)
    [chunk] = await harness.claim()
    await harness.end(
        chunk, Failed(error={"code": "SOURCE_ERROR", "message": "The table is gone."})
    )
    ended = await harness.runs.get(run.run_id)
    assert ended.status is RunStatus.FAILED
    assert ended.error is not None
    assert (ended.error["message"], ended.error["step"]) == ("The table is gone.", "stage_chunk")
    assert await harness.store.claim("worker", ["stage"], 5) == []
    assert await harness.matches() == 0


async def test_a_run_past_its_time_fails_and_its_jobs_are_cancelled(harness: RunHarness) -> None:
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.plan(plan, 1)
    await harness.later("7201 seconds")
    await harness.store.reap()
    ended = await harness.runs.get(run.run_id)
    assert ended.status is RunStatus.FAILED
    assert ended.error is not None
    assert "deadline" in ended.error["message"].lower()


async def test_a_cancelled_run_is_over_at_once_and_for_good(harness: RunHarness) -> None:
    run = await harness.run(right=TO_STAGE)
    [plan] = await harness.claim()
    cancelled = await harness.runs.cancel(run.run_id, actor="me", reason="wrong month")
    assert (cancelled.status, cancelled.error and cancelled.error["message"]) == (
        RunStatus.CANCELLED,
        "wrong month",
    )
    assert await harness.end(plan, planned(plan, 2)) is Verdict.STALE
    assert await harness.store.claim("worker", ["stage"], 5) == []
    assert (await harness.runs.cancel(run.run_id, actor="me")).status is RunStatus.CANCELLED


async def test_a_run_that_is_over_is_not_cancelled(harness: RunHarness) -> None:
    run = await harness.run(left=FILES)
    [match] = await harness.claim("match")
    await harness.end(match, DONE)
    with pytest.raises(InvalidState, match="has already ended: completed"):
        await harness.runs.cancel(run.run_id, actor="me")
    with pytest.raises(InvalidState):
        await harness.runs.retry(run.run_id)


async def test_a_failed_run_is_tried_again_as_a_new_one_from_its_sources(
    harness: RunHarness,
) -> None:
    run = await harness.run()
    await harness.runs.cancel(run.run_id, actor="me")
    again = await harness.runs.retry(run.run_id)
    assert (again.retry_of, again.status, again.owner_username) == (
        run.run_id,
        RunStatus.STAGING,
        run.owner_username,
    )
    assert again.inputs["left"] == TO_STAGE


async def test_a_passed_threshold_fails_the_run_with_its_result(harness: RunHarness) -> None:
    run = await harness.run(left=FILES)
    [match] = await harness.claim("match")
    error = {"code": "RECONCILE_THRESHOLD", "message": "12 % is unmatched."}
    await harness.end(match, Succeeded(result={"totals": {"left": 1}, "threshold": error}))
    ended = await harness.runs.get(run.run_id)
    assert (ended.status, ended.error) == (RunStatus.FAILED, error)
    assert ended.result is not None
    assert ended.result["totals"] == {"left": 1}


async def test_two_runs_of_one_recipe_at_once_are_strangers(harness: RunHarness) -> None:
    runs = [await harness.run(left=FILES) for _ in range(2)]
    for match in await harness.claim("match", 2):
        await harness.end(match, DONE)
    assert [await harness.status(run) for run in runs] == [RunStatus.COMPLETED] * 2


async def test_progress_tells_rows_share_and_jobs(harness: RunHarness) -> None:
    run = await harness.run()
    [plan] = await harness.claim()
    await harness.plan(plan, 2)
    first, _ = await harness.claim(count=2)
    await harness.end(first, staged(first))
    progress = await harness.runs.progress(await harness.runs.get(run.run_id))
    assert (progress.stage, progress.rows, progress.percent, progress.jobs, progress.jobs_over) == (
        "staging",
        10,
        25.0,
        3,
        2,
    )
    assert progress.eta_seconds is not None


async def test_what_is_not_there_is_not_found(harness: RunHarness) -> None:
    for run_id in (1, 0, -1, 2**63):
        with pytest.raises(NotFound):
            await harness.runs.get(run_id)
