"""Sources in complete runs: with native chunks (a point in time, a read session), and with exact
types."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from penstock.api import app
from penstock.api.internal import staging_jobs
from penstock.jobs.control_plane import client_factory
from penstock.reconcile.control_plane import ReconcileControlPlane
from penstock.reconcile.staging import handlers
from penstock.reconcile.staging.handlers import ChunkStager, StagePlanner
from penstock.sources.contract import Limits
from penstock.wiring.default_handlers import default_handlers
from tests.api.test_runs import QUEUES, RULES, deployment, me, over, start, upload  # noqa: F401 - fixtures
from tests.graphs.deployment import Deployment, connected, postgres, postgres_secrets
from tests.servers.bigquery_fake import BigQueryFake
from tests.servers.elastic_fake import ElasticFake
from tests.sources.test_bigquery import config_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2

    from penstock.jobs.handler import JobContext
    from penstock.reconcile.runs.payloads import StageChunkPayload
    from penstock.sources.contract import Source

ROWS = 3000
SMALL = Limits(chunk_bytes=20_000, max_chunks=3)
BANK = "\n".join(["id,ref,amount", *(f"{i},R{i},{i}.00" for i in range(0, ROWS, 2))]).encode()


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens at the source when the first chunk is about to be read."""
    calls: list[Callable[[], None]] = []
    original = ChunkStager._stage

    async def staged(
        self: ChunkStager, order: StageChunkPayload, source: Source, ctx: JobContext
    ) -> dict[str, Any]:
        while calls:
            calls.pop()()
        return await original(self, order, source, ctx)

    monkeypatch.setattr(ChunkStager, "_stage", staged)
    return calls


async def reconciled(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    **left: Any,
) -> tuple[dict[str, Any], pa.Table]:
    """The run, and the rows of its left side that were not matched."""
    registered = default_handlers(deployment.settings)
    registered._handlers["stage_plan"] = StagePlanner(
        client_factory(deployment.settings, ReconcileControlPlane), limits=SMALL
    )
    sides = {
        "left": {"source": "there", "table": "ledger", "primary_key": "id", **left},
        "right": {"upload": await upload(me, "bank.csv", BANK), "primary_key": "id"},
    }
    async with deployment.working(handlers=registered, queues=QUEUES):
        ended = await over(
            me, await start(me, recipe={"name": "far", "sources": sides, "rules": RULES})
        )
    assert ended["status"] == "completed", ended["error"]
    answer = await me.get(
        f"/api/runs/{ended['run_id']}/evidence/unmatched_left", params={"format": "arrow"}
    )
    return ended, pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()


async def test_elasticsearch_is_staged_in_slices_of_one_point_in_time(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    changes: list[Callable[[], None]],
) -> None:
    kinds = {"id": "long", "ref": "keyword", "amount": "long", "seen": "date"}
    seen = "2024-02-29T12:30:15.123Z"
    documents = [{"id": i, "ref": f"R{i}", "amount": i, "seen": seen} for i in range(ROWS)]
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    async with ElasticFake() as fake:
        fake.add("ledger", properties, documents)
        changes.append(lambda: fake.add("ledger", properties, documents[:5]))
        config = {"url": fake.url, "retry_seconds": 0.2}
        await deployment.graphs.sources.add(
            name="there", kind="elasticsearch", owner="me", config=config, secrets={}
        )
        ended, rest = await reconciled(deployment, me)
        slices = {search["slice"]["id"] for search in fake.searches() if "slice" in search}
        assert (slices, fake.open_moments()) == ({0, 1, 2}, 0)
    assert ended["progress"]["jobs"] == 1 + 3 + 1
    assert (ended["totals"]["left"]["rows"], ended["totals"]["left"]["matched"]) == (
        ROWS,
        ROWS // 2,
    )
    assert rest["seen"][0].as_py() == dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=dt.UTC)


@pytest.fixture
def older_control_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not tell the ends of chunks yet."""
    routers = [router for router in app.RECONCILIATION if router is not staging_jobs.router]
    monkeypatch.setattr(app, "RECONCILIATION", routers)


async def test_a_worker_that_is_newer_than_its_control_plane_looks_for_the_ends_of_chunks(
    older_control_plane: None,
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
) -> None:
    properties = {"id": {"type": "long"}, "ref": {"type": "keyword"}, "amount": {"type": "long"}}
    documents = [{"id": i, "ref": f"R{i}", "amount": i} for i in range(ROWS)]
    async with ElasticFake() as fake:
        fake.add("ledger", properties, documents)
        await deployment.graphs.sources.add(
            name="there", kind="elasticsearch", owner="me", config={"url": fake.url}, secrets={}
        )
        ended, _ = await reconciled(deployment, me)
    assert ended["totals"]["left"]["rows"] == ROWS


@pytest.mark.parametrize("what", ["all of it", "one of its shards"])
async def test_a_plan_whose_point_in_time_is_lost_is_made_again(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    changes: list[Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    monkeypatch.setattr(handlers, "ALIVE_SECONDS", 0.2)
    monkeypatch.setattr(handlers, "LOST_SECONDS", 0.2)
    properties = {"id": {"type": "long"}, "ref": {"type": "keyword"}, "amount": {"type": "long"}}
    documents = [{"id": i, "ref": f"R{i}", "amount": i} for i in range(ROWS)]
    async with ElasticFake() as fake:
        fake.add("ledger", properties, documents)
        lose = fake.lose_shards if what == "one of its shards" else fake.moments.clear
        changes.append(lose)
        config = {"url": fake.url, "retry_seconds": 0.2}
        await deployment.graphs.sources.add(
            name="there", kind="elasticsearch", owner="me", config=config, secrets={}
        )
        ended, _ = await reconciled(deployment, me)
    assert (ended["totals"]["left"]["rows"], ended["progress"]["jobs"]) == (ROWS, 1 + 3 + 3 + 1)


async def test_bigquery_is_staged_in_streams_of_one_session_with_exact_types(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    changes: list[Callable[[], None]],
) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.UTC)
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "ref": [f"R{i}" for i in range(ROWS)],
            "amount": pa.array([Decimal(i) for i in range(ROWS)], pa.decimal128(38, 9)),
            "day": pa.array([moment.date()] * ROWS, pa.date32()),
            "seen": pa.array([moment] * ROWS, pa.timestamp("us", tz="UTC")),
        }
    )
    async with BigQueryFake() as fake:
        fake.load("ledger", table)
        changes.append(lambda: fake.load("ledger", table.slice(0, 5)))
        await deployment.graphs.sources.add(
            name="there", kind="bigquery", owner="me", config=config_of(fake), secrets={}
        )
        scope = [{"column": "day", "op": "between", "value": ["2024-02-01", "2024-02-29"]}]
        ended, rest = await reconciled(deployment, me, filters=scope)
    assert ended["progress"]["jobs"] > 1 + 1 + 1
    assert (ended["totals"]["left"]["rows"], ended["totals"]["left"]["matched"]) == (
        ROWS,
        ROWS // 2,
    )
    assert rest.schema.field("amount").type == pa.decimal128(38, 9)
    first = rest.to_pylist()[0]
    assert (first["day"], first["seen"]) == (moment.date(), moment)


async def test_postgresql_and_duckdb_are_staged_with_exact_types(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
    tmp_path: Path,
) -> None:
    exact = Decimal("1234567890123456789012345678.0123456789")
    moment = dt.datetime(2024, 2, 29, 11, 30, 15, 123456, tzinfo=dt.UTC)
    values = (
        "1 AS id, 'none' AS ref, CAST(1 AS decimal(12, 2)) AS amount, "
        f"CAST('{exact}' AS decimal(38, 10)) AS exact,"
        " DATE '2024-02-29' AS day, TIMESTAMPTZ '2024-02-29 12:30:15.123456+01' AS seen,"
        " CAST('6ccd780c-baba-1026-9564-5b8c656024db' AS uuid) AS u,"
        " CAST('{\"a\": [1, null]}' AS json) AS doc"
    )
    async with connected(warehouse) as connection:
        await connection.execute(f"CREATE TABLE ledger AS SELECT {values}")
    with duckdb.connect(str(tmp_path / "there.duckdb")) as db:
        db.execute(f"CREATE TABLE ledger AS SELECT {values}")
    places = {
        "postgres": postgres(warehouse),
        "duckdb": {"database": str(tmp_path / "there.duckdb")},
    }
    for kind, config in places.items():
        secrets = postgres_secrets(warehouse) if kind == "postgres" else {}
        await deployment.graphs.sources.add(
            name=kind, kind=kind, owner="me", config=config, secrets=secrets
        )
        _, rest = await reconciled(deployment, me, source=kind)
        [row] = rest.to_pylist()
        assert (row["exact"], row["day"], row["seen"]) == (exact, dt.date(2024, 2, 29), moment), (
            kind
        )
        assert (row["u"], json.loads(row["doc"])) == (
            "6ccd780c-baba-1026-9564-5b8c656024db",
            {"a": [1, None]},
        ), kind


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
async def test_wide_numerics_instants_and_twin_columns_of_postgresql_are_matched_exactly(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
    engine: str,
) -> None:
    """As doubles both amounts would be one, in any case both references, and by its text the
    instant another day."""
    large = 10**24
    async with connected(warehouse) as connection:
        await connection.execute(
            'CREATE TABLE ledger ("_id" integer, ref text, "REF" text, '
            "amount numeric(40, 2), seen timestamptz);"
            f"INSERT INTO ledger VALUES (7, 'x', 'A', {large}.01, '2024-01-31 23:30:00-05'),"
            f" (5, 'x', 'B', {large}.02, '2024-01-31 23:30:00Z')"
        )
    bank = "id,ref,seen\n1,A,2024-02-01T04:30:00Z\n2,B,2024-01-31T23:30:00Z\n"
    await deployment.graphs.sources.add(
        name="there",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    key = {"left": "REF", "op": "eq", "right": "ref"}
    rules = [
        {
            "name": "same",
            "conditions": [key, {"left": "seen", "op": "date_window", "right": "seen", "days": 0}],
        }
    ]
    near = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.005"}
    exact = {"name": "exact", "conditions": [{"left": "REF", "op": "eq", "right": "REF"}, near]}
    left = {"source": "there", "table": "ledger", "primary_key": "_id"}
    right = {"upload": await upload(me, "bank.csv", bank.encode()), "primary_key": "id"}
    output = {"columns": {"left": ["amount"]}}
    twice = {
        "name": "wide",
        "engine": engine,
        "sources": {"left": left, "right": left},
        "rules": [exact],
        "output": output,
    }
    both = {
        "name": "wide",
        "engine": engine,
        "sources": {"left": left, "right": right},
        "rules": rules,
    }
    async with deployment.working(queues=QUEUES):
        runs = [await over(me, await start(me, recipe=recipe)) for recipe in (both, twice)]
    for run in runs:
        assert run["status"] == "completed", run["error"]
    days, amounts = [
        (await me.get(f"/api/runs/{run['run_id']}/evidence/matched")).json() for run in runs
    ]
    assert [(row["left__id"], row["right_id"]) for row in days] == [(7, "1"), (5, "2")]
    assert [(row["left__id"], row["right__id"], row["left_amount"]) for row in amounts] == [
        (7, 7, f"{large}.01"),
        (5, 5, f"{large}.02"),
    ]
