"""How sources are cut and staged: by thresholds that a recipe or a run sets, by keys, with exact
types."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.reconcile.staging.ranges import in_ranges
from penstock.sources.contract import Limits
from tests.api.test_runs import (  # noqa: F401 - fixtures
    PAYMENTS,
    QUEUES,
    RULES,
    deployment,
    fill,
    me,
    over,
    sides,
    start,
    upload,
)
from tests.graphs.deployment import Deployment, connected, postgres, postgres_secrets
from tests.servers.trino_fake import TrinoFake
from tests.sources.conformance import collect_chunks
from tests.sources.test_mysql import server, source, subject  # noqa: F401 - fixtures
from tests.worker.test_exports_trino import config as trino_config

if TYPE_CHECKING:
    import httpx2

    from penstock.sources.contract import Source
    from tests.sources.test_mysql import MySQLSubject

MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=dt.UTC)
SKEWED = ["common"] * 6000 + [f"k{i % 97} \\' {i}" for i in range(6000)] + [None] * 50


async def staged(deployment: Deployment, me: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:  # noqa: F811
    async with deployment.working(queues=QUEUES):
        ended = await over(me, await start(me, **body))
    assert ended["status"] == "completed", ended["error"]
    return ended


@pytest.mark.parametrize(
    ("threshold", "jobs"), [(2000, 3 + 1 + 1), (1999, 3 + 2 + 1), (100, 3 + 4 + 4)]
)
async def test_a_table_is_cut_above_the_threshold_and_into_no_more_chunks_than_asked(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
    threshold: int,
    jobs: int,
) -> None:
    await fill(warehouse, 2000)
    await deployment.graphs.sources.add(
        name="db",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    recipe = {
        "name": "pg",
        "sources": sides(),
        "rules": RULES,
        "staging": {"chunk_threshold_rows": 1},
    }
    options = {"chunk_threshold_rows": threshold, "max_parallel_chunks": 4}
    ended = await staged(deployment, me, recipe=recipe, staging=options)
    assert ended["totals"]["left"]["rows"] == 2000
    assert ended["progress"]["jobs"] == jobs


async def test_a_wrong_staging_is_refused(me: httpx2.AsyncClient) -> None:  # noqa: F811
    side = {"upload": await upload(me, "payments.csv", PAYMENTS), "primary_key": "id"}
    recipe = {"name": "x", "sources": {"left": side, "right": side}, "rules": RULES}
    for wrong in (
        {"max_parallel_chunks": 0},
        {"max_parallel_chunks": 101},
        {"chunk_threshold_rows": 0},
        {"rows": 1},
    ):
        refused = await me.post("/api/runs", json={"recipe": recipe, "staging": wrong})
        assert refused.status_code == 422, refused.text


async def test_a_view_is_cut_at_quantiles_of_a_text_key_with_skew(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
) -> None:
    await fill(warehouse, 4000)
    async with connected(warehouse) as connection:
        await connection.execute(
            "CREATE VIEW shown AS SELECT id, ref, amount,"
            " CASE WHEN id % 2 = 0 THEN 'common' ELSE ref END AS part"
            " FROM invoices"
        )
    name = await deployment.graphs.sources.add(
        name="db",
        kind="postgres",
        owner="me",
        config=postgres(warehouse),
        secrets=postgres_secrets(warehouse),
    )
    options = {"chunk_threshold_rows": 500, "max_parallel_chunks": 6}
    left = {"table": "shown", "partition_key": "part"}
    ended = await staged(
        deployment,
        me,
        recipe={"name": "pg", "sources": sides(**left), "rules": RULES},
        staging=options,
    )
    assert ended["totals"]["left"]["rows"] == 4000
    assert ended["totals"]["left"]["matched"] == 3600
    async with (await deployment.graphs.sources.opening(name.data_source_id)).opened() as source:  # noqa: F811
        for sql in (
            "SELECT * FROM shown",
            "SELECT s.* FROM shown AS s JOIN invoices AS i USING (id)",
        ):
            plan = await source.plan(sql, Limits(chunk_rows=500, max_chunks=6, key="part"))
            sizes = [sum([b.num_rows async for b in source.stream(chunk)]) for chunk in plan.chunks]
            assert plan.hold is not None
            await plan.hold.close()
            assert sum(sizes) == 4000
            # One value is half of all: it cannot be cut, and the other half is.
            assert len(sizes) >= 3
            assert max(sizes) < 3000


async def test_mysql_is_cut_by_a_text_key_with_skew_quotes_and_nulls(
    subject: MySQLSubject,  # noqa: F811
    source: Source,  # noqa: F811
) -> None:
    rows = pa.table({"id": pa.array(range(len(SKEWED)), pa.int64()), "part": pa.array(SKEWED)})
    await subject.load("ledger", rows)
    sql = "SELECT * FROM ledger;"
    limits = Limits(chunk_rows=1000, max_chunks=8, key="part")
    plan = await in_ranges(source, sql, await source.plan(sql, limits), limits)
    assert 3 <= len(plan.chunks) <= 8
    table = await collect_chunks(source, plan)
    assert sorted(table["id"].to_pylist()) == list(range(len(SKEWED)))
    sizes = [sum([b.num_rows async for b in source.stream(chunk)]) for chunk in plan.chunks]
    assert max(sizes) < 8500
    few = Limits(chunk_rows=len(SKEWED), max_chunks=8, key="part")
    assert len((await in_ranges(source, sql, await source.plan(sql, few), few)).chunks) == 1


async def evidence(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    left: dict[str, Any],
    **more: Any,
) -> pa.Table:
    """The rows of a left side that nothing matches, as they came through staging."""
    right = {
        "upload": await upload(me, "none.csv", b"id,ref,amount\n9,none,0\n"),
        "primary_key": "id",
    }
    recipe = {"name": "types", "sources": {"left": left, "right": right}, "rules": RULES}
    ended = await staged(deployment, me, recipe=recipe, **more)
    answer = await me.get(
        f"/api/runs/{ended['run_id']}/evidence/unmatched_left", params={"format": "arrow"}
    )
    return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()


async def test_mariadb_is_staged_with_exact_types(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    subject: MySQLSubject,  # noqa: F811
) -> None:
    subject.execute(
        "CREATE TABLE ledger (id int, ref varchar(20), amount decimal(12, 2),"
        " exact decimal(38, 10), day date, seen timestamp(6) null, u uuid, doc json)"
    )
    one = (
        "7.25, '0123456789012345678901234567.0123456789', '2024-02-29',"
        " '2024-02-29 12:30:15.123456',"
    )
    subject.execute(
        f"INSERT INTO ledger VALUES (1, 'A', {one} '6ccd780c-baba-1026-9564-5b8c656024db',"
        " '{\"a\": 1}'), (2, 'B', NULL, -0.0000000001, NULL, NULL, NULL, NULL)"
    )
    ledger = await deployment.graphs.sources.add(
        name="shop", kind="mysql", owner="me", config=subject.config, secrets=subject.secrets
    )
    left = {"source": ledger.name, "table": "ledger", "primary_key": "id", "partition_key": "id"}
    table = await evidence(deployment, me, left, staging={"chunk_threshold_rows": 1})
    first, second = sorted(table.to_pylist(), key=lambda row: int(row["id"]))
    assert table.schema.field("exact").type == pa.decimal128(38, 10)
    assert (first["exact"], second["exact"]) == (
        Decimal("123456789012345678901234567.0123456789"),
        Decimal("-0.0000000001"),
    )
    assert (first["day"], first["seen"]) == (dt.date(2024, 2, 29), MOMENT)
    assert (first["u"], first["doc"]) == ("6ccd780c-baba-1026-9564-5b8c656024db", '{"a": 1}')
    assert {second[name] for name in ("day", "seen", "u", "doc")} == {None}


async def test_trino_is_staged_with_exact_types_and_cut_by_a_key(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
) -> None:
    count = 3000
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "ref": [f"R{i}" for i in range(count)],
            "amount": pa.array([Decimal(i) / 1000 for i in range(count)], pa.decimal128(38, 10)),
            "day": pa.array([MOMENT.date()] * count, pa.date32()),
            "seen": pa.array([MOMENT] * count, pa.timestamp("us", tz="UTC")),
            "u": ["6ccd780c-baba-1026-9564-5b8c656024db"] * count,
            "doc": ['{"a": 1}'] * count,
        }
    )
    async with TrinoFake() as fake:
        fake.engine.load("ledger", rows)
        config = trino_config(fake, starburst_role="analyst")
        await deployment.graphs.sources.add(
            name="lake", kind="trino", owner="me", config=config, secrets={}
        )
        query = "SELECT id, ref, amount, day, seen, CAST(u AS uuid) AS u, doc FROM ledger"
        left = {"source": "lake", "query": query, "primary_key": "id", "partition_key": "ref"}
        table = await evidence(deployment, me, left, staging={"chunk_threshold_rows": 1000})
        chunks = [
            q
            for q in fake.queries.values()
            if "WHERE" in q.sql and "R" in q.sql and "LIMIT 0" not in q.sql
        ]
    assert len(chunks) >= 3
    assert table.num_rows == count
    row = next(row for row in table.to_pylist() if row["id"] == 1)
    assert table.schema.field("amount").type == pa.decimal128(38, 10)
    assert (row["amount"], row["day"], row["seen"]) == (Decimal("0.001"), MOMENT.date(), MOMENT)
    assert (row["u"], row["doc"]) == ("6ccd780c-baba-1026-9564-5b8c656024db", '{"a": 1}')
