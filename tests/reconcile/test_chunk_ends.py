"""A plan hears of the ends of its chunks; it does not look for them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock
from uuid import uuid4

import duckdb
import orjson
import pytest

from penstock.jobs.announcer import Outbox
from penstock.jobs.handler import Park
from penstock.jobs.kinds import Kinds
from penstock.jobs.model import Claimed, Fence, GroupSpec, JobSpec, Status
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.outbound import WITH_PRIVATE
from penstock.reconcile.runs.payloads import STAGE_CHUNK, StageChunkPayload
from penstock.reconcile.runs.repository import STAGED
from penstock.reconcile.staging.chunk_ends import CHUNKS_ENDED, ChunkEnds
from penstock.reconcile.staging.handlers import ChunkStager
from penstock.sources.errors import SnapshotLost, SourceQueryError
from tests.api.control_plane import POLICIES, plane
from tests.jobs.conformance import done, failed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from penstock.api.services import Services
    from penstock.jobs.gates import Fired
    from penstock.kit.db import Tx
    from penstock.kit.errors import PenstockError

WAIT = 3600.0


async def opens(_tx: Tx, _fired: Fired) -> None:
    """A gate that fires and does nothing."""


@pytest.fixture
async def services(database: str) -> AsyncIterator[Services]:
    async with plane(database) as services:
        services.store.gates.handle(STAGED, opens, announce=CHUNKS_ENDED)
        yield services


@pytest.fixture
async def neighbor(database: str, services: Services) -> AsyncIterator[Services]:
    """Another process of the control plane."""
    async with plane(database) as other:
        other.store.gates.handle(STAGED, opens, announce=CHUNKS_ENDED)
        await other.store.notifier.listening.wait()
        yield other


def ends(services: Services) -> ChunkEnds:
    return ChunkEnds(services.store._db, services.store.notifier)


async def chunks(services: Services, count: int) -> list[Claimed]:
    group = GroupSpec(name="stage", gate=STAGED)
    await services.store.open_group(group, [JobSpec(kind="once")] * count)
    return await services.store.claim("w1", ["default"], count)


@pytest.mark.parametrize("writer", ["the same process", "another process"])
async def test_a_waiting_plan_hears_of_the_end_of_a_chunk(
    services: Services, neighbor: Services, writer: str
) -> None:
    first, second = await chunks(services, 2)
    ids = [first.job_id, second.job_id]
    assert await ends(neighbor).ended(ids) == {}
    waiting = asyncio.create_task(ends(neighbor).ended(ids, wait=WAIT))
    await asyncio.sleep(0)
    store = (neighbor if writer == "the same process" else services).store
    await store.finish([done(second)])
    async with asyncio.timeout(30):
        assert await waiting == {second.job_id: Status.SUCCEEDED}


async def test_a_chunk_that_fails_and_those_that_fail_with_it_are_heard_of(
    services: Services,
) -> None:
    first, second = await chunks(services, 2)
    waiting = asyncio.create_task(ends(services).ended([first.job_id], wait=WAIT))
    await asyncio.sleep(0)
    await services.store.finish([failed(first)])
    async with asyncio.timeout(30):
        assert await waiting == {first.job_id: Status.FAILED}
    await services.store.cancel(second.job_id, actor="me")
    over = await ends(services).ended([first.job_id, second.job_id])
    assert over == {first.job_id: Status.FAILED, second.job_id: Status.CANCELLED}


async def test_a_chunk_that_has_ended_is_told_at_once(services: Services) -> None:
    [chunk] = await chunks(services, 1)
    await services.store.finish([done(chunk)])
    async with asyncio.timeout(30):
        over = await ends(services).ended([chunk.job_id], wait=WAIT)
    assert over == {chunk.job_id: Status.SUCCEEDED}


async def test_other_processes_hear_of_it_where_jobs_are_announced_by_messages(
    database: str,
) -> None:
    async with AsyncExitStack() as stack:
        stores, heard = [], []
        for _ in range(2):
            db = await stack.enter_async_context(Db(database, size=3, settings=ENGINE_SETTINGS))
            store = PgJobStore(db, Kinds(POLICIES), outbox=Outbox())
            store.gates.handle(STAGED, opens, announce=CHUNKS_ENDED)
            stores.append(await stack.enter_async_context(store))
            heard.append(ChunkEnds(db, store.notifier))
            await store.notifier.listening.wait()
        await stores[0].open_group(GroupSpec(name="stage", gate=STAGED), [JobSpec(kind="once")])
        [chunk] = await stores[0].claim("w1", ["default"], 1)
        assert await heard[1].ended([chunk.job_id]) == {}
        waiting = asyncio.create_task(heard[1].ended([chunk.job_id], wait=WAIT))
        await asyncio.sleep(0)
        await stores[0].finish([done(chunk)])
        async with asyncio.timeout(30):
            assert await waiting == {chunk.job_id: Status.SUCCEEDED}


class Plan:
    """A plan that goes on, or one that kept nothing open and is over."""

    def __init__(self, database: Path, status: Status) -> None:
        self._database = database
        self._status = status

    async def __aenter__(self) -> Plan:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def job(self, _job_id: int) -> Any:
        return Mock(status=self._status, attempts=(), result={"plan": "plan"})

    async def source(self, _fence: Fence) -> dict[str, Any]:
        return {
            "type": "duckdb",
            "config": {"database": str(self._database)},
            "secrets": {},
            "outbound": WITH_PRIVATE.to_wire(),
        }


@pytest.mark.parametrize(
    ("error", "plan", "parked"),
    [
        (SnapshotLost("The point in time is gone, it does not exist."), Status.RUNNING, True),
        (SnapshotLost("The point in time is gone, it does not exist."), Status.SUCCEEDED, False),
        (SourceQueryError('relation "snapshots" does not exist'), Status.RUNNING, False),
    ],
)
async def test_a_chunk_waits_for_its_plan_when_its_snapshot_is_lost_and_for_no_other_error(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: PenstockError,
    plan: Status,
    *,
    parked: bool,
) -> None:
    async def broken(*_: object) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(ChunkStager, "_stage", broken)
    database = tmp_path / "shop.duckdb"
    duckdb.connect(str(database)).close()
    payload = StageChunkPayload(
        run_id=1,
        side="left",
        data_source_id=1,
        plan="plan",
        plan_job=1,
        number=0,
        sql="SELECT 1",
        snapshot="exported",
    )
    fence = Fence(job_id=2, attempt_id=uuid4())
    job = Claimed(
        fence=fence,
        queue="stage",
        kind=STAGE_CHUNK,
        raw_payload=orjson.dumps(payload.payload()).decode(),
        attempt_no=1,
        max_attempts=3,
        lease_seconds=60,
        seconds_left=60,
        waited=0,
    )
    control_plane, store, context = (
        Mock(return_value=Plan(database, plan)),
        Mock(),
        Mock(fence=fence),
    )
    stager = ChunkStager(control_plane, store)
    if parked:
        assert isinstance(await stager(job, context), Park)
    else:
        with pytest.raises(type(error), match="does not exist"):
            await stager(job, context)
