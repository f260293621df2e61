"""Work that a job has running elsewhere, when its attempt is cut short from outside the handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from penstock.jobs.metrics import KernelMetrics
from penstock.jobs.model import Claimed, Ending, Failed, JobSpec, Parking, Verdict
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.wiring.job_kinds import default_kinds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STATE = {"query_id": "q1"}


@pytest.fixture
async def store(database: str) -> AsyncIterator[PgJobStore]:
    async with (
        Db(database, size=3, settings=ENGINE_SETTINGS) as db,
        PgJobStore(db, default_kinds(), metrics=KernelMetrics(CollectorRegistry())) as job_store,
    ):
        yield job_store


async def held(store: PgJobStore, *, state: object = STATE) -> Claimed:
    """A job that was parked with a state, and is looked at again."""
    await store.enqueue([JobSpec(kind="unload", payload={"n": 1})])
    [job] = await store.claim("w", ["export"], 1)
    await store.park([Parking(fence=job.fence, state=state, wake_in=0)])
    [again] = await store.claim("w", ["export"], 1)
    return again


async def end(store: PgJobStore, job: Claimed, code: str) -> Verdict:
    [verdict] = await store.finish(
        [Ending(fence=job.fence, outcome=Failed(error={"code": code, "message": "It ended."}))]
    )
    return verdict


async def sent(store: PgJobStore) -> list[Claimed]:
    return await store.claim("w", ["publish"], 10)


@pytest.mark.parametrize("code", ["WORKER_STOPPED", "DEADLINE_EXCEEDED"])
async def test_somebody_is_sent_to_stop_it(store: PgJobStore, code: str) -> None:
    job = await held(store)
    assert await end(store, job, code) is Verdict.DONE
    [cancelling] = await sent(store)
    assert cancelling.kind == "cancel_query"
    assert cancelling.payload == {
        "job_id": job.job_id,
        "kind": "unload",
        "payload": {"n": 1},
        "state": STATE,
    }


async def test_nobody_is_sent_where_the_handler_ended_it_or_nothing_was_begun(
    store: PgJobStore,
) -> None:
    assert await end(store, await held(store), "SOURCE_QUERY_ERROR") is Verdict.DONE
    assert await end(store, await held(store, state=None), "WORKER_STOPPED") is Verdict.DONE
    assert await sent(store) == []


async def test_who_lost_the_job_sends_nobody(store: PgJobStore) -> None:
    job = await held(store)
    await store.park([Parking(fence=job.fence, state=STATE, wake_in=0)])
    assert await end(store, job, "WORKER_STOPPED") is Verdict.STALE
    assert await sent(store) == []
