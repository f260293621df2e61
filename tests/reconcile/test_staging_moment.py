"""A source that changes while it is staged gives one snapshot, or an error that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from penstock.reconcile.staging import handlers
from penstock.reconcile.staging.consistent_read import (
    SourceChanged,
    Unchanged,
    pinned,
    rows,
    unchanged,
)
from penstock.reconcile.staging.handlers import ChunkStager
from penstock.reconcile.staging.ranges import in_ranges
from penstock.sources.contract import Limits
from penstock.sources.registry import open_source
from tests.api.test_runs import PAYMENTS, QUEUES, RULES, deployment, me, over, start, upload  # noqa: F401 - fixtures
from tests.graphs.deployment import Deployment, connected, fill, postgres, postgres_secrets
from tests.servers.trino_engine import QueryError
from tests.servers.trino_fake import Script, TrinoFake
from tests.sources.conformance import collect_chunks
from tests.sources.test_mysql import server, source, subject  # noqa: F401 - fixtures
from tests.sources.trino.conftest import real_trino  # noqa: F401 - fixture
from tests.sources.trino.subjects import RealSubject, opened
from tests.sources.trino.subjects import run as statement
from tests.worker.test_exports_trino import config as trino_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2

    from penstock.jobs.handler import JobContext
    from penstock.reconcile.runs.payloads import StageChunkPayload
    from penstock.sources.contract import Source
    from tests.servers.trino import Trino
    from tests.sources.test_mysql import MySQLSubject

COUNT = 3000
LIMITS = Limits(chunk_rows=1000, max_chunks=4, key="ref")
LEDGER = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "ref": [f"R{i}" for i in range(COUNT)],
        "amount": pa.array(range(COUNT), pa.int64()),
    }
)
CHANGES = [
    "INSERT INTO ledger VALUES (-1, 'R-1', 0)",
    "DELETE FROM ledger WHERE id = 17",
    "UPDATE ledger SET amount = amount + CASE WHEN id = 5 THEN -3 ELSE 3 END WHERE id IN (5, 2900)",
    "UPDATE ledger SET ref = NULL WHERE id = 5",
]


async def in_chunks(source: Source, sql: str = "SELECT * FROM ledger") -> Any:  # noqa: F811
    return await in_ranges(source, sql, await source.plan(sql, LIMITS), LIMITS)


@pytest.mark.parametrize("change", CHANGES)
async def test_mariadb_notices_what_changed_between_its_chunks(
    subject: MySQLSubject,  # noqa: F811
    source: Source,  # noqa: F811
    change: str,
) -> None:
    await subject.load("ledger", LEDGER)
    plan = await in_chunks(source)
    assert isinstance(plan.hold, Unchanged)
    assert (await collect_chunks(source, plan)).num_rows == COUNT
    await plan.hold.check()
    subject.execute(change)
    with pytest.raises(SourceChanged, match="changed while it was staged"):
        await plan.hold.check()


@pytest.mark.parametrize("forever", [False, True])
async def test_a_run_over_a_table_that_changes_reads_it_again_or_fails_and_says_why(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    subject: MySQLSubject,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    *,
    forever: bool,
) -> None:
    await subject.load("ledger", LEDGER)
    changed: list[int] = []

    def change(order: StageChunkPayload) -> None:
        if order.number == 0 and (forever or not changed):
            changed.append(COUNT + len(changed))
            subject.execute(f"INSERT INTO ledger VALUES ({changed[-1]}, 'zzz', 1)")

    after_each_chunk(monkeypatch, change)
    await deployment.graphs.sources.add(
        name="shop", kind="mysql", owner="me", config=subject.config, secrets=subject.secrets
    )
    left = {"source": "shop", "table": "ledger", "primary_key": "id", "partition_key": "id"}
    ended = await run(deployment, me, left)
    if forever:
        assert (ended["status"], ended["error"]["code"]) == ("failed", "SOURCE_CHANGED")
        assert "changed while it was staged" in ended["error"]["message"]
        assert len(changed) == 3
    else:
        assert ended["status"] == "completed", ended["error"]
        assert ended["totals"]["left"]["rows"] == COUNT + 1


async def test_postgresql_gives_the_rows_of_one_moment_whatever_is_written_meanwhile(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await fill(warehouse, COUNT)
    async with connected(warehouse) as writer:
        await writer.execute(
            "CREATE TABLE ledger AS SELECT id, name AS ref, age AS amount FROM customers"
        )
        await writer.execute("ANALYZE ledger")
        moved = (
            "UPDATE ledger SET amount = amount + 1;"
            " INSERT INTO ledger SELECT id + 10000, ref, 0 FROM ledger"
        )
        original = ChunkStager._stage

        async def staged(
            self: ChunkStager, order: StageChunkPayload, source: Source, ctx: JobContext
        ) -> dict[str, Any]:
            if order.number == 0:
                await writer.execute(moved)
            return await original(self, order, source, ctx)

        monkeypatch.setattr(ChunkStager, "_stage", staged)
        await deployment.graphs.sources.add(
            name="db",
            kind="postgres",
            owner="me",
            config=postgres(warehouse),
            secrets=postgres_secrets(warehouse),
        )
        left = {"source": "db", "table": "ledger", "primary_key": "id"}
        ended = await run(
            deployment, me, left, output={"amount": {"left": "amount", "right": "amount"}}
        )
        before = await writer.fetchval("SELECT sum(age) FROM customers")
    assert ended["status"] == "completed", ended["error"]
    assert ended["totals"]["left"]["rows"] == COUNT
    assert ended["totals"]["left"]["amounts"]["total"][""] == str(before)


async def test_a_side_is_staged_again_when_postgresql_ends_the_transaction_of_its_snapshot(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "ALIVE_SECONDS", 0.2)
    monkeypatch.setattr(handlers, "LOST_SECONDS", 0.2)
    await fill(warehouse, COUNT)
    async with connected(warehouse) as operator:
        await operator.execute(
            "CREATE TABLE ledger AS SELECT id, name AS ref, age AS amount FROM customers"
        )
        await operator.execute("ANALYZE ledger")
        ended_by_operator: list[int] = []
        original = ChunkStager._stage

        async def staged(
            self: ChunkStager, order: StageChunkPayload, source: Source, ctx: JobContext
        ) -> dict[str, Any]:
            if not ended_by_operator:
                holders = await operator.fetch(
                    "SELECT pid, pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND state = 'idle in transaction'"
                )
                ended_by_operator.extend(row["pid"] for row in holders)
            return await original(self, order, source, ctx)

        monkeypatch.setattr(ChunkStager, "_stage", staged)
        await deployment.graphs.sources.add(
            name="db",
            kind="postgres",
            owner="me",
            config=postgres(warehouse),
            secrets=postgres_secrets(warehouse),
        )
        left = {"source": "db", "table": "ledger", "primary_key": "id"}
        ended = await run(deployment, me, left)
    assert len(ended_by_operator) == 1
    assert ended["status"] == "completed", ended["error"]
    assert ended["totals"]["left"]["rows"] == COUNT


async def test_a_table_of_iceberg_is_read_at_its_snapshot() -> None:
    async with (
        TrinoFake() as fake,
        open_source("trino", trino_config(fake, starburst_role="analyst"), {}) as lake,
    ):
        fake.engine.load("ledger", LEDGER)
        fake.engine.load("ledger@77", LEDGER)
        fake.engine.load(
            "ledger$refs", pa.table({"name": ["old", "main"], "snapshot_id": [76, 77]})
        )
        plan = await in_chunks(lake, "SELECT id, ref, amount FROM ledger WHERE id >= 0")
        assert (len(plan.chunks), plan.hold) == (3, None)
        fake.engine.load("ledger", LEDGER.slice(0, 5))
        assert (await collect_chunks(lake, plan)).sort_by("id") == LEDGER


async def test_another_table_of_trino_is_watched_and_one_that_cannot_be_is_not_cut() -> None:
    async with (
        TrinoFake() as fake,
        open_source("trino", trino_config(fake, starburst_role="analyst"), {}) as lake,
    ):
        fake.engine.load("ledger", LEDGER)
        plan = await in_chunks(lake)
        assert (len(plan.chunks), type(plan.hold)) == (3, Unchanged)
        await plan.hold.check()
        fake.engine.load(
            "ledger", LEDGER.set_column(2, "amount", pa.array(range(1, COUNT + 1), pa.int64()))
        )
        with pytest.raises(SourceChanged):
            await plan.hold.check()
        fake.scripts.append(
            Script(match="checksum(", error=QueryError("FUNCTION_NOT_FOUND", "no such function"))
        )
        assert len((await in_chunks(lake)).chunks) == 1


async def test_a_real_lake_has_snapshots_and_fingerprints(real_trino: Trino) -> None:  # noqa: F811
    select = "SELECT n AS id, 'R' || CAST(n AS varchar) AS ref, CAST(n AS decimal(12,2)) AS amount"
    async with opened(RealSubject(real_trino)) as lake:
        do = lake.statements()
        await statement(do, "CREATE SCHEMA IF NOT EXISTS lake.moments")
        rows_of = f"FROM UNNEST(sequence(1, {COUNT})) AS t(n)"
        await statement(do, f"CREATE TABLE lake.moments.ledger AS {select} {rows_of}")
        plan = await in_chunks(lake, 'SELECT * FROM "lake"."moments"."ledger"')
        assert (len(plan.chunks), plan.hold) == (3, None)
        await statement(do, "DELETE FROM lake.moments.ledger WHERE id > 10")
        assert (await collect_chunks(lake, plan)).num_rows == COUNT
        watched = await unchanged(lake, "SELECT * FROM lake.moments.ledger", plan.schema.names)
        assert watched is not None
        await watched.check()
        await statement(do, "UPDATE lake.moments.ledger SET amount = amount + 1 WHERE id = 3")
        with pytest.raises(SourceChanged):
            await watched.check()


async def test_a_duckdb_file_has_one_reader(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute(
            "CREATE TABLE ledger AS SELECT range AS id, 'R' || range AS ref FROM range(5000)"
        )
    async with open_source("duckdb", {"database": str(tmp_path / "shop.duckdb")}, {}) as shop:
        assert len((await in_chunks(shop)).chunks) == 1
        assert await pinned(shop, "SELECT * FROM ledger") is None
        assert await rows(shop, "SELECT count(*) FROM ledger") == [(5000,)]


def after_each_chunk(
    monkeypatch: pytest.MonkeyPatch, do: Callable[[StageChunkPayload], None]
) -> None:
    original = ChunkStager._stage

    async def staged(
        self: ChunkStager,
        order: StageChunkPayload,
        source: Source,  # noqa: F811
        ctx: JobContext,
    ) -> dict[str, Any]:
        result = await original(self, order, source, ctx)
        do(order)
        return result

    monkeypatch.setattr(ChunkStager, "_stage", staged)


async def run(
    deployment: Deployment,  # noqa: F811
    me: httpx2.AsyncClient,  # noqa: F811
    left: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:
    right = {"upload": await upload(me, "payments.csv", PAYMENTS), "primary_key": "id"}
    recipe = {"name": "moment", "sources": {"left": left, "right": right}, "rules": RULES, **more}
    async with deployment.working(queues=QUEUES):
        return await over(
            me, await start(me, recipe=recipe, staging={"chunk_threshold_rows": 1000})
        )
