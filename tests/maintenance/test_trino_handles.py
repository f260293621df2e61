"""What becomes of Trino's query when workers go, die or are told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.jobs.model import Status
from penstock.kit.errors import ResourceLocked
from penstock.maintenance.actions.model import parse
from penstock.maintenance.engines.trino import QUERY_ID
from penstock.maintenance.payloads import MAINTENANCE, Order
from tests.graphs.deployment import TOKEN, connected, running_deployment, settings, until
from tests.maintenance.tables import rows
from tests.maintenance.test_lifecycle import Scene, zygote
from tests.servers.trino_engine import Result
from tests.servers.trino_fake import Query, Script, TrinoFake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ACTIONS = ("expire_snapshots", "rewrite_data_files", "rewrite_position_delete_files")


class Committing:
    """In place of the engine: what a statement does to the table is a snapshot that names the
    query."""

    def __init__(self, far: Far) -> None:
        self._far = far

    def run(self, sql: str) -> Result:
        if "optimize(" in sql and self._far.commits:
            [query] = [
                q for q in self._far.trino.queries.values() if q.sql == sql and q.state == "QUEUED"
            ]
            table = self._far.scene.table.table
            table.append(rows(1000, 1), snapshot_properties={QUERY_ID: query.id})
        return Result(columns=[], table=pa.table({}), update="ALTER TABLE EXECUTE")


class Far:
    def __init__(self, scene: Scene, trino: TrinoFake, dsn: str) -> None:
        self.scene = scene
        self.trino = trino
        self.dsn = dsn
        self.commits = True
        self.release = asyncio.Event()
        trino.scripts.append(Script(match="optimize(", release=self.release))
        trino.engine = Committing(self)

    @property
    def store(self) -> Any:
        return self.scene.plane.services.store

    def queries(self, word: str = "optimize(") -> list[Query]:
        return [query for query in self.trino.queries.values() if word in query.sql]

    async def submit(self, *actions: str, dry_run: bool = False) -> int:
        name = self.scene.kept.service.name(None, "shop", "orders")
        order = Order(name=name, actions=parse(actions or ACTIONS), engine="far", dry_run=dry_run)
        return await self.scene.kept.service.submit(order, actor="me")

    async def running(self) -> Query:
        async def is_it() -> bool:
            return bool([query for query in self.queries() if query.state == "RUNNING"])

        await until(is_it)
        return self.queries()[-1]

    async def parked(self, job_id: int) -> None:
        async def is_it() -> bool:
            return (await self.store.job(job_id)).status is Status.PARKED

        await until(is_it)

    async def wake(self) -> None:
        """Whoever claims next has the job, however long it was to be parked."""
        async with connected(self.dsn) as db:
            await db.execute("UPDATE penstock.live SET wake_at = penstock.now() WHERE status = 2")

    async def lapse(self) -> None:
        async with connected(self.dsn) as db:
            await db.execute(
                "UPDATE penstock.live SET lease_until = penstock.now() - interval '1 s' "
                "WHERE status = 1"
            )
        await self.store.reap()

    async def told(self, job_id: int) -> dict[str, str]:
        return {
            a["action"]: a["status"] for a in await self.scene.kept.service.store.actions(job_id)
        }


@asynccontextmanager
async def far_away(database: str, home: Path) -> AsyncIterator[Far]:
    async with TrinoFake() as trino:
        engine = {"type": "trino", "url": trino.url, "catalog": "kept"}
        catalog = {"warehouse": (home / "warehouse").as_uri()}
        config = settings(home, catalogs={"lake": catalog}, maintenance_engines={"far": engine})
        async with running_deployment(database, config) as plane:
            scene = Scene(plane)
            await asyncio.to_thread(scene.table.create)
            yield Far(scene, trino, database)


@pytest.fixture
async def far(database: str, tmp_path: Path) -> AsyncIterator[Far]:
    async with far_away(database, tmp_path) as scene:
        yield scene


async def test_a_job_is_parked_with_the_handle_of_its_query_and_holds_the_table(far: Far) -> None:
    job_id = await far.submit()
    async with far.scene.working():
        query = await far.running()
        await far.parked(job_id)
        async with connected(far.dsn) as db:
            state = await db.fetchval(
                "SELECT state->>'query_id' FROM penstock.live WHERE job_id = $1", job_id
            )
        assert state == query.id
        with pytest.raises(ResourceLocked, match=str(job_id)):
            await far.submit()
        far.release.set()
        view = await far.scene.over(job_id)
    assert view.status is Status.SUCCEEDED, view.error
    assert await far.told(job_id) == {
        "expire_snapshots": "nothing_to_do",
        "rewrite_data_files": "completed",
        "rewrite_position_delete_files": "refused",
    }
    assert [len(far.queries(word)) for word in ("expire_snapshots", "optimize(")] == [1, 1]


async def test_a_dry_run_asks_trino_for_nothing(far: Far) -> None:
    job_id = await far.submit(dry_run=True)
    async with far.scene.working():
        assert (await far.scene.over(job_id)).status is Status.SUCCEEDED
    assert set((await far.told(job_id)).values()) == {"planned", "refused"}
    assert far.trino.queries == {}


async def test_a_cancelled_job_ends_its_query_though_nobody_holds_it(far: Far) -> None:
    job_id = await far.submit("rewrite_data_files")
    async with far.scene.working():
        query = await far.running()
        await far.parked(job_id)
        await far.store.cancel(job_id, actor="me")
        await until(lambda: _is_over(query))
    assert query.error is not None
    assert query.error.name == "USER_CANCELED"
    assert (await far.store.job(job_id)).status is Status.CANCELLED
    assert await far.told(job_id) == {}


@pytest.mark.parametrize("cause", ["sigterm", "cancel"])
async def test_whoever_is_told_to_stop_in_a_look_ends_the_query_first(far: Far, cause: str) -> None:
    far.trino.long_poll = 30.0
    job_id = await far.submit("rewrite_data_files")
    async with far.scene.working() as worker:
        query = await far.running()
        if cause == "sigterm":
            worker.stop(grace=0)
        else:
            await far.store.cancel(job_id, actor="me")
        await until(lambda: _is_over(query), within=5)
        view = await far.scene.over(job_id)
    assert query.error is not None
    assert query.error.name == "USER_CANCELED"
    if cause == "sigterm":
        assert (view.status, view.error["message"]) == (Status.FAILED, "Worker received SIGTERM")
    assert await far.submit()


async def test_the_query_of_a_process_that_has_no_time_to_end_it_is_ended_by_another(
    far: Far,
) -> None:
    """It hangs in a look, so nobody there can cancel: the end is written beside it, and sends
    somebody."""
    job_id = await far.submit("rewrite_data_files")
    async with zygote() as victims:
        await victims.say(url=far.scene.url, token=TOKEN)
        assert await victims.hear("code") == 0, "parked with its query"
        await far.wake()
        await victims.say(url=far.scene.url, token=TOKEN, hang="statement_looked_at")
        pid = await victims.hear("pid")
        await victims.hear("hangs")
        os.kill(pid, signal.SIGTERM)
        assert await victims.hear("code") == 1
    view = await far.store.job(job_id)
    assert (view.status, view.error["message"]) == (Status.FAILED, "Worker received SIGTERM")
    [query] = far.queries()
    assert query.error is None, "it goes on"
    async with far.scene.working():
        await until(lambda: _is_over(query))
    assert query.error is not None
    assert query.error.name == "USER_CANCELED"


async def test_the_query_of_a_worker_that_died_is_adopted_by_the_next(far: Far) -> None:
    job_id = await far.submit("rewrite_data_files")
    async with far.scene.working():
        query = await far.running()
        await far.parked(job_id)
    await far.wake()
    [claimed] = await far.store.claim("dead", [MAINTENANCE], 1)
    assert claimed.job_id == job_id
    await far.lapse()
    far.release.set()
    async with far.scene.working():
        assert (await far.scene.over(job_id)).status is Status.SUCCEEDED
    assert far.queries() == [query]
    assert await far.told(job_id) == {"rewrite_data_files": "completed"}


@pytest.mark.parametrize("landed", [True, False])
async def test_what_a_lost_query_committed_counts_and_else_a_new_one_begins(
    far: Far, landed: bool
) -> None:
    far.commits = landed
    job_id = await far.submit("rewrite_data_files")
    async with far.scene.working():
        await far.running()
        await far.parked(job_id)
    far.trino.queries.clear()
    far.commits = True
    far.release.set()
    await far.wake()
    async with far.scene.working():
        view = await far.scene.over(job_id)
    assert view.status is Status.SUCCEEDED, view.error
    assert await far.told(job_id) == {"rewrite_data_files": "completed"}
    assert len(far.queries()) == (0 if landed else 1)
    assert far.scene.table.ids().count(1000) == 1


async def _is_over(query: Query) -> bool:
    return query.over
