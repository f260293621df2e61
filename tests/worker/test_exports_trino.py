"""Exports from Trino: a protocol-true server in this process, and a real one where available."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.graphs.snapshots.export_resync import ExportResync
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.jobs.model import JobView, Status
from penstock.sources.trino import TrinoSource
from tests.graphs.deployment import Deployment, connected, running_deployment, settings, until
from tests.jobs.conformance import Clock
from tests.servers.http import Fault
from tests.servers.trino import CLIENT_TIMEOUT
from tests.servers.trino_engine import Engine, QueryError, Result
from tests.servers.trino_fake import Query, Script, TrinoFake
from tests.sources.trino.conftest import real_trino
from tests.sources.trino.subjects import RealSubject, run
from tests.worker.test_exports_kill import LEASE, Victims, environment, victims

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.servers.trino import Trino


__all__ = ["real_trino", "victims"]
ROWS = 5000
PEOPLE = {
    "job_type": "node",
    "entity_name": "Person",
    "sql": "SELECT id, name FROM people",
    "columns": [{"name": "id", "type": "INT64"}, {"name": "name", "type": "STRING"}],
    "starburst_role": "analyst",
}
UNLOADED = PEOPLE | {"mode": "unload", "target_catalog": "lake"}
DUE_SECONDS = 20


class UnloadingEngine(Engine):
    """Writes the files at the end of the query, as Starburst does; `lost` rows are left out."""

    def __init__(self) -> None:
        super().__init__(unload=True)
        self.lost = 0

    def _run_unload(self, sql: str) -> Result:
        result = super()._run_unload(sql)
        inner = sql.partition("TABLE(\n")[2].partition("\n), location")[0]
        location = re.search(r"location => 'file://([^']+)'", sql)
        assert location is not None
        folder = Path(location[1])
        files = self._arrow(f"SELECT * FROM ({inner}) LIMIT {ROWS - self.lost}")
        if not files.num_rows:
            return result
        folder.mkdir(parents=True)
        pq.write_table(files, folder / "000000_0.parquet")
        return result


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        yield it


@pytest.fixture
async def fake() -> AsyncIterator[TrinoFake]:
    async with TrinoFake(client_timeout=6, unload=True) as it:
        it.engine = UnloadingEngine()
        ids = pa.array(range(ROWS), pa.int64())
        it.engine.load(
            "people", pa.table({"id": ids, "name": pa.array([f"n{n}" for n in range(ROWS)])})
        )
        yield it


def config(server: TrinoFake, **changes: Any) -> dict[str, Any]:
    fields = {"url": server.url, "user": "tester", "catalog": "memory", "schema": "main"}
    return fields | {"client_timeout": server.client_timeout, "retry_seconds": 2, **changes}


async def person(
    deployment: Deployment, server: TrinoFake, job: dict[str, Any] = PEOPLE, **changes: Any
) -> int:
    source = await deployment.source("trino", config(server, **changes))
    return await deployment.snapshot(job | {"data_source_id": source})


async def the_job(deployment: Deployment, snapshot_id: int) -> JobView:
    [job] = await deployment.jobs(snapshot_id)
    return await deployment.services.store.job(job["id"])


def asked(server: TrinoFake, piece: str) -> list[Query]:
    """What jobs asked; the control plane looks at the schema whenever it likes."""
    of_jobs = [q for q in server.queries.values() if q.headers.get("x-trino-trace-token")]
    return [query for query in of_jobs if piece in query.sql and "LIMIT 0" not in query.sql]


async def all_rows(deployment: Deployment, snapshot_id: int) -> None:
    snapshot = await deployment.ready(snapshot_id)
    table = await deployment.table(snapshot, "nodes/Person")
    assert sorted(table["id"].to_pylist()) == list(range(ROWS))
    assert snapshot.node_counts == {"Person": ROWS}


async def test_a_query_is_streamed_under_the_jobs_own_role_and_its_spool_is_let_go(
    deployment: Deployment, fake: TrinoFake
) -> None:
    snapshot_id = await person(deployment, fake, starburst_role="somebody-else")
    async with deployment.working():
        await all_rows(deployment, snapshot_id)
    job = await the_job(deployment, snapshot_id)
    [query] = asked(fake, "people")
    assert query.headers["x-trino-role"] == "system=ROLE%7Banalyst%7D"
    assert query.headers["x-trino-trace-token"].startswith(f"penstock-job-{job.job_id}-attempt-")
    assert (query.headers["x-trino-source"], query.headers["x-trino-client-tags"]) == (
        "graph-olap-export-worker",
        "graph-olap-export",
    )
    assert fake.acknowledged
    assert fake.segments == {}


async def test_the_rows_so_far_are_shown_while_a_query_is_read(
    deployment: Deployment, fake: TrinoFake
) -> None:
    segments, rest = asyncio.Semaphore(1), asyncio.Event()

    async def one_then_wait() -> None:
        if segments.locked():
            await rest.wait()
        else:
            await segments.acquire()

    fake.before_segment = one_then_wait
    snapshot_id = await person(deployment, fake)
    async with deployment.working():

        async def some() -> bool:
            [job] = await deployment.jobs(snapshot_id)
            return 0 < (job["rows_so_far"] or 0) < ROWS

        await until(some)
        rest.set()
        await all_rows(deployment, snapshot_id)


@pytest.mark.parametrize("job", [PEOPLE, UNLOADED], ids=["direct", "unload"])
async def test_without_a_role_the_job_fails_at_once_and_trino_is_not_asked(
    deployment: Deployment, fake: TrinoFake, job: dict[str, Any]
) -> None:
    snapshot_id = await person(deployment, fake, job | {"starburst_role": None})
    async with deployment.working():
        snapshot = await deployment.failed(snapshot_id)
    view = await the_job(deployment, snapshot_id)
    assert view.error["message"] == "Missing use case ID (X-Use-Case-Id header required)"
    assert (view.attempt_no, fake.queries) == (1, {})
    assert snapshot.failed_step == "Person"


async def test_an_unload_is_parked_between_looks_and_ends_with_the_files_of_its_own_folder(
    deployment: Deployment, fake: TrinoFake
) -> None:
    snapshot_id = await person(deployment, fake, UNLOADED)
    async with deployment.working():
        await all_rows(deployment, snapshot_id)
    view = await the_job(deployment, snapshot_id)
    [query] = asked(fake, "system.unload")
    [part] = view.result["parts"]
    first = view.attempts[0]
    assert part["path"].endswith(f"/nodes/Person/attempt-{first.attempt_id}/000000_0.parquet")
    assert {attempt.how for attempt in view.attempts[:-1]} == {"parked"}
    assert (view.attempt_no, view.result["query"]["query_id"]) == (1, query.id)
    [job] = await deployment.jobs(snapshot_id)
    assert (job["status"], job["starburst_query_id"], job["row_count"]) == (
        "completed",
        query.id,
        ROWS,
    )
    assert job["poll_count"] >= 3


PAUSES = """
SELECT (l.state ->> 'poll_count')::int AS polls,
       extract(epoch FROM l.wake_at - (
           SELECT max(ended_at) FROM penstock.attempt a WHERE a.job_id = l.job_id
       )) AS pause
FROM penstock.live l WHERE l.status = 2 AND l.state ->> 'poll_count' <> '0'
"""


async def test_pauses_are_fibonaccis_and_never_longer_than_a_third_of_trinos_patience(
    deployment: Deployment, fake: TrinoFake, database: str
) -> None:
    fake.client_timeout = 7.5
    fake.scripts.append(Script(match="system.unload", release=asyncio.Event()))
    await person(deployment, fake, UNLOADED)
    seen: dict[int, float] = {}
    async with deployment.working(), connected(database) as connection:

        async def two_polls() -> bool:
            seen.update(
                {row["polls"]: float(row["pause"]) for row in await connection.fetch(PAUSES)}
            )
            return len(seen) >= 2

        await until(two_polls)
    assert (round(seen[1], 3), round(seen[2], 3)) == (2.0, 2.5)
    assert len(fake.running()) == 1


async def test_a_server_without_unload_is_read_directly_by_the_same_attempt(
    deployment: Deployment, fake: TrinoFake
) -> None:
    engine = Engine()
    engine.load("people", fake.engine._arrow("FROM people"))
    fake.engine = engine
    snapshot_id = await person(deployment, fake, UNLOADED)
    async with deployment.working():
        await all_rows(deployment, snapshot_id)
    view = await the_job(deployment, snapshot_id)
    assert (view.attempt_no, view.result["parts"][0]["path"].rpartition("/")[2][:11]) == (
        1,
        "part-00000-",
    )


async def test_an_unload_without_rows_and_without_files_leaves_a_file_with_the_schema(
    deployment: Deployment, fake: TrinoFake
) -> None:
    snapshot_id = await person(
        deployment, fake, UNLOADED | {"sql": "SELECT id, name FROM people WHERE id < 0"}
    )
    async with deployment.working():
        snapshot = await deployment.ready(snapshot_id)
    table = await deployment.table(snapshot, "nodes/Person")
    assert (table.num_rows, table.schema.types) == (0, [pa.int64(), pa.string()])


async def test_rows_that_did_not_arrive_in_the_files_fail_the_job(
    deployment: Deployment, fake: TrinoFake
) -> None:
    assert isinstance(fake.engine, UnloadingEngine)
    fake.engine.lost = 3
    snapshot_id = await person(deployment, fake, UNLOADED)
    async with deployment.working():
        snapshot = await deployment.failed(snapshot_id)
    view = await the_job(deployment, snapshot_id)
    assert view.error["code"] == "ROWS_DIFFER"
    assert (
        view.error["message"]
        == f"Node Person: The files contain {ROWS - 3} rows, but Trino wrote {ROWS}."
    )
    assert snapshot.status is SnapshotStatus.FAILED


async def parked(deployment: Deployment, snapshot_id: int) -> str:
    """The job's query, once it runs and nobody holds the job."""

    async def is_it() -> bool:
        [job] = await deployment.jobs(snapshot_id)
        view = await deployment.services.store.job(job["id"])
        return view.status is Status.PARKED and job["poll_count"] >= 2

    await until(is_it)
    [job] = await deployment.jobs(snapshot_id)
    return str(job["starburst_query_id"])


async def test_a_parked_job_that_is_cancelled_has_its_query_cancelled_at_trino(
    deployment: Deployment, fake: TrinoFake
) -> None:
    fake.scripts.append(Script(match="system.unload", release=asyncio.Event()))
    snapshot_id = await person(deployment, fake, UNLOADED)
    async with deployment.working():
        query = fake.queries[await parked(deployment, snapshot_id)]
        await deployment.services.store.cancel(
            (await the_job(deployment, snapshot_id)).job_id, actor="me"
        )
        await until(lambda: over(query))
    assert query.error is not None
    assert query.error.name == "USER_CANCELED"


async def over(query: Query) -> bool:
    return query.over


async def test_a_job_past_its_longest_duration_fails_and_its_query_is_cancelled_at_trino(
    deployment: Deployment, fake: TrinoFake, database: str
) -> None:
    fake.scripts.append(Script(match="system.unload", release=asyncio.Event()))
    snapshot_id = await person(deployment, fake, UNLOADED)
    async with deployment.working(), connected(database) as connection:
        query = fake.queries[await parked(deployment, snapshot_id)]
        await Clock(connection).advance(deployment.settings.export_max_duration_seconds + 1)
        [loop] = [loop for loop in deployment.services.loops if isinstance(loop, ExportResync)]
        await loop.run_once()
        snapshot = await deployment.failed(snapshot_id)
        await until(lambda: over(query))
    assert (await the_job(deployment, snapshot_id)).error["code"] == "DEADLINE_EXCEEDED"
    assert "deadline" in (snapshot.error_message or "")
    assert query.error is not None
    assert query.error.name == "USER_CANCELED"


async def test_a_running_job_that_is_cancelled_has_its_query_cancelled_at_trino(
    deployment: Deployment, fake: TrinoFake
) -> None:
    fake.scripts.append(Script(match="people", release=asyncio.Event()))
    snapshot_id = await person(deployment, fake)
    async with deployment.working():

        async def running() -> bool:
            return any(query.state == "RUNNING" for query in asked(fake, "people"))

        await until(running)
        [query] = asked(fake, "people")
        await deployment.services.store.cancel(
            (await the_job(deployment, snapshot_id)).job_id, actor="me"
        )
        await until(lambda: over(query))
    assert query.error is not None
    assert query.error.name == "USER_CANCELED"
    assert await deployment.files() == []


@pytest.mark.parametrize("step", ["its query is submitted", "its query was asked after"])
async def test_a_query_whose_worker_dies_is_not_abandoned_when_another_takes_over(
    deployment: Deployment, fake: TrinoFake, database: str, victims: Victims, step: str
) -> None:
    fake.client_timeout = 60
    snapshot_id = await person(deployment, fake, UNLOADED)
    died = await asyncio.wait_for(victims.run(step=step, environment=environment(deployment)), 60)
    assert died == -signal.SIGKILL
    async with connected(database) as connection:
        await Clock(connection).advance(LEASE)
        await deployment.services.store.reap()
        async with deployment.working():
            await all_rows(deployment, snapshot_id)
    view = await the_job(deployment, snapshot_id)
    finished = [query for query in asked(fake, "system.unload") if query.state == "FINISHED"]
    assert [query.id for query in finished] == [view.result["query"]["query_id"]]
    assert "lapsed" in [attempt.how for attempt in view.attempts]
    if step == "its query was asked after":
        assert len(asked(fake, "system.unload")) == 1


@pytest.mark.parametrize("job", [PEOPLE, UNLOADED], ids=["direct", "unload"])
async def test_an_error_that_is_not_the_querys_fault_is_tried_again_and_told(
    deployment: Deployment, fake: TrinoFake, job: dict[str, Any]
) -> None:
    fault = QueryError(
        "NO_NODES_AVAILABLE", "No nodes available to run query", kind="INSUFFICIENT_RESOURCES"
    )
    fake.scripts.append(Script(match="people", error=fault, times=1))
    snapshot_id = await person(deployment, fake, job)
    async with deployment.working():
        await all_rows(deployment, snapshot_id)
    view = await the_job(deployment, snapshot_id)
    [failed] = [attempt for attempt in view.attempts if attempt.how == "retried"]
    assert (
        failed.detail["message"]
        == "Node Person: NO_NODES_AVAILABLE: No nodes available to run query"
    )
    assert view.attempt_no == 2


@pytest.mark.parametrize("job", [PEOPLE, UNLOADED], ids=["direct", "unload"])
async def test_an_error_of_the_query_fails_the_job_at_once_with_trinos_own_words(
    deployment: Deployment, fake: TrinoFake, job: dict[str, Any]
) -> None:
    fault = QueryError("DIVISION_BY_ZERO", "Division by zero")
    fake.scripts.append(Script(match="people", error=fault))
    snapshot_id = await person(deployment, fake, job)
    async with deployment.working():
        await deployment.failed(snapshot_id)
    view = await the_job(deployment, snapshot_id)
    assert view.error["message"] == "Node Person: DIVISION_BY_ZERO: Division by zero"
    assert view.attempt_no == 1
    assert not any(name.endswith("manifest.json") for name in await deployment.files())


@pytest.mark.parametrize("misdeed", ["torn", "reset", "empty", "status"])
async def test_a_page_that_is_torn_or_lost_on_its_way_is_asked_for_again_and_no_row_is_doubled(
    deployment: Deployment, fake: TrinoFake, misdeed: Any
) -> None:
    fake.faults.append(Fault(misdeed=misdeed, times=2, skip=2))
    snapshot_id = await person(deployment, fake, encodings=[])
    async with deployment.working():
        await all_rows(deployment, snapshot_id)
    assert (await the_job(deployment, snapshot_id)).attempt_no == 1


async def test_an_answer_that_is_no_page_fails_the_job_with_a_sentence(
    deployment: Deployment, fake: TrinoFake
) -> None:
    fake.faults.append(Fault(misdeed="html", times=50, skip=3))
    snapshot_id = await person(deployment, fake, encodings=[])
    async with deployment.working():
        await deployment.failed(snapshot_id)
    view = await the_job(deployment, snapshot_id)
    assert view.error["message"].startswith("Node Person: Trino did not return JSON")
    assert await deployment.files() == []


@asynccontextmanager
async def beside(
    trino: Trino, database: str, tmp_path: Path
) -> AsyncIterator[tuple[Deployment, int]]:
    """A stand whose storage is a folder that the real Trino can write into, and Trino as its
    source."""
    root = trino.folder / tmp_path.name
    root.mkdir()
    config = settings(
        tmp_path / "home",
        storage_url=f"file://{root}",
        storage_engine_url=f"local:///{tmp_path.name}",
    )
    async with running_deployment(database, config) as deployment:
        real = {
            "url": trino.url,
            "user": "tester",
            "role_catalog": None,
            "catalog": "tpch",
            "schema": "tiny",
        }
        yield (
            deployment,
            await deployment.source("trino", real | {"client_timeout": CLIENT_TIMEOUT}),
        )


CUSTOMERS = {
    "job_type": "node",
    "entity_name": "Customer",
    "sql": "SELECT custkey, name, acctbal FROM customer",
    "columns": [{"name": name} for name in ("custkey", "name", "acctbal")],
    "starburst_role": "analyst",
}
WRITTEN = CUSTOMERS | {"mode": "ctas", "target_catalog": "lake", "target_schema": "exports"}
SLOW = (
    "SELECT a.orderkey, b.partkey FROM tpch.sf100.lineitem a, tpch.sf1.lineitem b"
    " WHERE a.partkey = b.suppkey"
)


async def schema_in_lake(deployment: Deployment, source: int) -> None:
    opening = await deployment.graphs.sources.opening(source)
    async with opening.opened() as trino:
        assert isinstance(trino, TrinoSource)
        statements = trino.as_role("analyst").statements()
        await run(statements, "CREATE SCHEMA IF NOT EXISTS lake.exports")


async def test_a_real_trino_is_streamed_and_writes_tables_itself_with_the_same_rows(
    real_trino: Trino, database: str, tmp_path: Path
) -> None:
    async with beside(real_trino, database, tmp_path) as (deployment, source), deployment.working():
        await schema_in_lake(deployment, source)
        direct = await deployment.snapshot(CUSTOMERS | {"data_source_id": source})
        written = await deployment.snapshot(WRITTEN | {"data_source_id": source})
        tables = []
        for snapshot_id in (direct, written):
            snapshot = await deployment.ready(snapshot_id)
            assert snapshot.node_counts == {"Customer": 1500}
            tables.append(
                (await deployment.table(snapshot, "nodes/Customer")).sort_by("custkey").cast(COMMON)
            )
        assert tables[0].equals(tables[1])
        opening = await deployment.graphs.sources.opening(source)
        async with opening.opened() as trino:
            assert isinstance(trino, TrinoSource)

            async def no_table_is_left() -> bool:
                tables = await trino.as_role("analyst").catalog.tables()
                return not [table for table in tables if table.schema == "exports"]

            await until(no_table_is_left)
        assert (await deployment.table(snapshot, "nodes/Customer")).num_rows == 1500


COMMON = pa.schema([("custkey", pa.int64()), ("name", pa.string()), ("acctbal", pa.float64())])


async def test_a_real_query_goes_on_when_its_worker_dies_and_ends_when_its_job_is_cancelled(
    real_trino: Trino, database: str, tmp_path: Path, victims: Victims
) -> None:
    subject = RealSubject(real_trino)
    async with beside(real_trino, database, tmp_path) as (deployment, source):
        await schema_in_lake(deployment, source)
        columns = [{"name": "orderkey"}, {"name": "partkey"}]
        snapshot_id = await deployment.snapshot(
            WRITTEN | {"sql": SLOW, "columns": columns, "data_source_id": source}
        )
        variables = environment(deployment) | {
            "PENSTOCK_STORAGE_URL": str(deployment.settings.storage_url),
            "PENSTOCK_STORAGE_ENGINE_URL": str(deployment.settings.storage_engine_url),
        }
        assert (
            await victims.run(step="its query was asked after", environment=variables)
            == -signal.SIGKILL
        )
        async with connected(database) as connection:
            await Clock(connection).advance(LEASE)
            await deployment.services.store.reap()
        async with deployment.working():
            query_id = await parked(deployment, snapshot_id)
            began = time.monotonic()

            async def outlived_its_patience() -> bool:
                return time.monotonic() - began > CLIENT_TIMEOUT + 2

            await until(outlived_its_patience)
            assert await subject.ended(query_id) is None
            [job] = await deployment.jobs(snapshot_id)
            assert job["starburst_query_id"] == query_id
            await deployment.services.store.cancel(job["id"], actor="me")

            async def ended() -> bool:
                return await subject.ended(query_id) is not None

            await until(ended)
        assert await subject.ended(query_id) == "USER_CANCELED"
        view = await deployment.services.store.job(job["id"])
        assert [a.how for a in view.attempts].count("lapsed") == 1
