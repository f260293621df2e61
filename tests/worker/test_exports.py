"""Exports by a real worker over HTTP: sources of two kinds into storage of two kinds, and all that
can go wrong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.accounts.role import Role
from penstock.accounts.users import SYSTEM_ACTOR
from penstock.graphs.errors import ExportTooLarge
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.payloads import NO_CAPS, ExportCaps
from penstock.storage.manifest import read_manifest
from tests.graphs.deployment import (
    CUSTOMER,
    PURCHASED,
    Deployment,
    connected,
    fill,
    postgres,
    postgres_secrets,
    running_deployment,
    settings,
    shop,
    until,
)
from tests.worker.places import in_s3, s3

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

__all__ = ["s3"]
ROWS = 300_000
FACE = "/api/internal/export-jobs"


@pytest.fixture
async def deployment(database: str, tmp_path: Path) -> AsyncIterator[Deployment]:
    async with running_deployment(database, settings(tmp_path / "home")) as it:
        yield it


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
@pytest.mark.parametrize("place", ["folder", "s3"])
async def test_every_row_of_a_query_is_in_the_files_that_the_manifest_names(
    database: str,
    warehouse: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: str,
    place: str,
) -> None:
    configured = settings(tmp_path / "home")
    if place == "s3":
        configured = settings(
            tmp_path / "home",
            **in_s3(request.getfixturevalue("s3"), f"{kind}-{time.monotonic_ns()}"),
        )
    async with running_deployment(database, configured) as deployment, deployment.working():
        if kind == "duckdb":
            config = shop(tmp_path, customers=ROWS)
        else:
            await fill(warehouse, ROWS)
            config = postgres(warehouse)
        secrets = postgres_secrets(warehouse) if kind == "postgres" else {}
        source = await deployment.source(kind, config, secrets)
        snapshot_id = await deployment.snapshot(CUSTOMER | {"data_source_id": source})
        snapshot = await deployment.ready(snapshot_id)
        table = await deployment.table(snapshot, "nodes/Customer")
        assert table.schema.types == [pa.int64(), pa.string(), pa.int64()]
        assert sorted(table["id"].to_pylist()) == list(range(ROWS))
        assert snapshot.node_counts == {"Customer": ROWS}
        [job] = await deployment.jobs(snapshot_id)
        assert (job["status"], job["row_count"], job["size_bytes"]) == (
            "completed",
            ROWS,
            snapshot.size_bytes,
        )
        manifest = await read_manifest(deployment.store, snapshot.prefix or "")
        [entity] = manifest.entities.values()
        assert {part.path for part in entity.parts} | {f"{snapshot.prefix}manifest.json"} == set(
            await deployment.files()
        )


async def test_a_query_without_rows_leaves_a_file_with_the_declared_types(
    deployment: Deployment, tmp_path: Path
) -> None:
    source = await deployment.source("duckdb", shop(tmp_path))
    columns = [{"name": "id", "type": "INT64"}, {"name": "gone", "type": "DATE"}]
    nobody = {
        "sql": "SELECT id, NULL::DATE AS gone FROM customers WHERE id < 0",
        "columns": columns,
    }
    async with deployment.working():
        snapshot = await deployment.ready(
            await deployment.snapshot(CUSTOMER | nobody | {"data_source_id": source})
        )
    table = await deployment.table(snapshot, "nodes/Customer")
    assert (table.num_rows, table.schema.types) == (0, [pa.int64(), pa.date32()])
    assert snapshot.node_counts == {"Customer": 0}


async def test_an_edge_type_between_several_labels_is_one_count_and_several_entities(
    deployment: Deployment, tmp_path: Path
) -> None:
    edge = PURCHASED | {"data_source_id": await deployment.source("duckdb", shop(tmp_path))}
    pairs = [edge | {"from_node": name, "to_node": "Item"} for name in ("Customer", "Company")]
    async with deployment.working():
        snapshot = await deployment.ready(await deployment.snapshot(*pairs))
    assert snapshot.edge_counts == {"PURCHASED": 6000}
    for name in ("Customer", "Company"):
        assert (await deployment.table(snapshot, f"edges/PURCHASED/{name}-Item")).num_rows == 3000


BAD_SQL = {
    "writes": ("DELETE FROM customers", "SQL_STATEMENT_REFUSED", "DELETE"),
    "makes a table": ("CREATE TABLE x AS SELECT 1 AS id", "SQL_STATEMENT_REFUSED", "CREATE"),
    "two statements": (
        "SELECT 1 AS id; DROP TABLE customers",
        "SQL_STATEMENT_REFUSED",
        "statements",
    ),
    "reads a file": ("SELECT * FROM read_csv('/etc/passwd')", "SQL_FUNCTION_REFUSED", "read_csv"),
    "a file as a table": ("SELECT * FROM '/etc/passwd'", "SQL_TABLE_REFUSED", "/etc/passwd"),
    "a function off the list": ("SELECT getenv('HOME') AS id", "SQL_FUNCTION_REFUSED", "getenv"),
    "nonsense": ("SELEC id FROM customers", "SQL_", "Node Customer"),
    "no such table": ("SELECT id FROM nobody", "SOURCE_QUERY_ERROR", "nobody"),
}
BAD_COLUMNS = {
    "one name twice": ("SELECT id, name, name FROM customers", ["id", "name", "age"], "name"),
    "one name twice by a star": (
        "SELECT * FROM customers a JOIN customers b ON a.id = b.id",
        ["id", "name", "age"],
        "id",
    ),
    "one too many": (
        "SELECT id, name, age, 1 AS extra FROM customers",
        ["id", "name", "age"],
        "extra",
    ),
    "one too few": ("SELECT id, name FROM customers", ["id", "name", "age"], "age"),
    "another order": ("SELECT name, id FROM customers", ["id", "name"], "id"),
    "a text for a number": ("SELECT name AS id FROM customers", [("id", "INT64")], "id"),
    "a decimal for a number": (
        "SELECT id::DECIMAL(12, 2) AS id FROM customers",
        [("id", "DOUBLE")],
        "id",
    ),
    "a wide number": ("SELECT id FROM customers", [("id", "INT16")], "id"),
}


async def test_what_a_query_must_not_do_fails_its_job_with_a_reason_and_leaves_no_file(
    deployment: Deployment, tmp_path: Path
) -> None:
    source = await deployment.source("duckdb", shop(tmp_path))
    async with deployment.working():
        snapshots = {
            case: await deployment.snapshot(
                {
                    "job_type": "node",
                    "entity_name": "Customer",
                    "sql": sql,
                    "data_source_id": source,
                }
            )
            for case, (sql, _, _) in BAD_SQL.items()
        }
        for case, snapshot_id in snapshots.items():
            _, code, piece = BAD_SQL[case]
            snapshot = await deployment.failed(snapshot_id)
            error = await _error(deployment, snapshot_id)
            assert error["code"].startswith(code), (case, error)
            assert error["message"].startswith("Node Customer: "), (case, error)
            assert piece in f"{error['message']} {error.get('hint')}", (case, error)
            assert snapshot.failed_step == "Customer"
            assert (snapshot.error_message or "").startswith(error["message"][:500]), case
    assert await deployment.files() == []


async def test_columns_that_are_not_the_declared_ones_are_named_each_with_a_suggestion(
    deployment: Deployment, tmp_path: Path
) -> None:
    source = await deployment.source("duckdb", shop(tmp_path))
    async with deployment.working():
        snapshots = {}
        for case, (sql, names, _) in BAD_COLUMNS.items():
            pairs = [(name, None) if isinstance(name, str) else name for name in names]
            columns = [{"name": name, "type": kind} for name, kind in pairs]
            job = {"job_type": "node", "entity_name": "Customer", "sql": sql, "columns": columns}
            snapshots[case] = await deployment.snapshot(job | {"data_source_id": source})
        for case, snapshot_id in snapshots.items():
            await deployment.failed(snapshot_id)
            error = await _error(deployment, snapshot_id)
            assert error["message"].startswith("Node Customer: "), (case, error)
            assert BAD_COLUMNS[case][2] in error["message"], (case, error)
            assert error["hint"], (case, error)
            assert not error["retryable"]
    assert await deployment.files() == []


async def _error(deployment: Deployment, snapshot_id: int) -> dict[str, Any]:
    [job] = await deployment.jobs(snapshot_id)
    error: dict[str, Any] = (await deployment.services.store.job(job["id"])).error
    return error


async def test_a_job_that_is_cancelled_leaves_no_file_and_no_query(
    warehouse: str, deployment: Deployment, tmp_path: Path
) -> None:
    await fill(warehouse, 10)
    source = await deployment.source("postgres", postgres(warehouse), postgres_secrets(warehouse))
    slow = {
        "sql": "SELECT id, name, age FROM customers,"
        " (SELECT count(*) AS n FROM generate_series(1, 20000000000)) AS q"
    }
    snapshot_id = await deployment.snapshot(CUSTOMER | slow | {"data_source_id": source})
    async with deployment.working() as worker:
        [job] = await deployment.jobs(snapshot_id)

        async def queries() -> int:
            async with connected(warehouse) as connection:
                count: int = await connection.fetchval(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE query LIKE '%20000000000%' AND pid <> pg_backend_pid()"
                    " AND state = 'active'"
                )
                return count

        await until(queries)
        await deployment.services.store.cancel(job["id"], actor="me", reason="Not needed")

        async def idle() -> bool:
            return not worker.busy and not await queries()

        await until(idle)
    assert await deployment.files() == []
    snapshot = await deployment.graphs.snapshots.get(snapshot_id)
    assert (snapshot.status, snapshot.failed_step) == (SnapshotStatus.FAILED, "Customer")
    assert "Not needed" in (snapshot.error_message or "")


async def test_a_failed_snapshot_is_tried_again_and_only_what_did_not_complete(
    deployment: Deployment, tmp_path: Path
) -> None:
    config = shop(tmp_path)
    source = await deployment.source("duckdb", config)
    early = PURCHASED | {"sql": "SELECT customer, item FROM purchased"}
    snapshot_id = await deployment.snapshot(
        CUSTOMER | {"data_source_id": source}, early | {"data_source_id": source}
    )

    async def all_over() -> bool:
        return all(
            job["status"] in ("completed", "failed") for job in await deployment.jobs(snapshot_id)
        )

    async with deployment.working():
        await until(all_over)
    before = {job["entity_name"]: job for job in await deployment.jobs(snapshot_id)}
    snapshot = await deployment.failed(snapshot_id)
    assert (snapshot.failed_step, snapshot.node_counts) == ("PURCHASED", {"Customer": 1000})
    with duckdb.connect(config["database"]) as db:
        db.execute("CREATE TABLE purchased AS FROM purchases")
    await deployment.graphs.exports.retry(snapshot_id)
    async with deployment.working():
        snapshot = await deployment.ready(snapshot_id)
    after = {job["entity_name"]: job for job in await deployment.jobs(snapshot_id)}
    assert after["Customer"] == before["Customer"]
    assert after["PURCHASED"]["id"] != before["PURCHASED"]["id"]
    assert (snapshot.node_counts, snapshot.edge_counts) == ({"Customer": 1000}, {"PURCHASED": 3000})
    assert (snapshot.error_message, snapshot.failed_step) == (None, None)
    assert (await deployment.services.store.job(before["PURCHASED"]["id"])).error[
        "code"
    ] == "SOURCE_QUERY_ERROR"


async def test_files_of_a_worker_that_only_told_their_rows_are_found_and_counted(
    deployment: Deployment, tmp_path: Path
) -> None:
    """As export workers of another make do it: they write into the entity's folder and say how many
    rows."""
    source = await deployment.source("duckdb", shop(tmp_path))
    snapshots = {}
    for case, rows in (("told", 3), ("lied", 4), ("no file", 3)):
        snapshots[case] = await deployment.snapshot(CUSTOMER | {"data_source_id": source})
        [job] = (await deployment.ask("POST", f"{FACE}/claim", worker_id="another", limit=1))[
            "jobs"
        ]
        if case != "no file":
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table({"id": [1, 2, 3]}), sink)
            prefix = job["gcs_path"].removeprefix(deployment.settings.storage_root + "/")
            key = f"{prefix}data.parquet"
            await deployment.store.create(key, sink.getvalue().to_pybytes())
        update = {"attempt_id": job["attempt_id"], "status": "completed", "row_count": rows}
        await deployment.ask("PATCH", f"{FACE}/{job['id']}", **update)
    async with deployment.working():
        snapshot = await deployment.ready(snapshots["told"])
        assert snapshot.node_counts == {"Customer": 3}
        assert (await deployment.table(snapshot, "nodes/Customer"))["id"].to_pylist() == [1, 2, 3]
        for case, words in (
            ("lied", "hold 3 rows, but 4 were sent"),
            ("no file", "There is no file in"),
        ):
            snapshot = await deployment.failed(snapshots[case])
            assert snapshot.failed_step == "publish"
            assert (snapshot.error_message or "").startswith("Node Customer: ")
            assert words in (snapshot.error_message or "")


@pytest.mark.parametrize(("rows", "is_whole"), [(1000, True), (999, False)])
async def test_an_analyst_exports_as_many_rows_as_allowed_and_not_one_more(
    database: str, tmp_path: Path, rows: int, is_whole: bool
) -> None:
    config = settings(tmp_path / "home", export_max_rows=rows)
    async with running_deployment(database, config) as deployment, deployment.working():
        source = await deployment.source("duckdb", shop(tmp_path, customers=1000))
        over = await deployment.over(
            await deployment.snapshot(CUSTOMER | {"data_source_id": source})
        )
        assert (over.status is SnapshotStatus.READY) == is_whole
        if not is_whole:
            assert "more than 999 rows" in (over.error_message or "")
            [job] = await deployment.jobs(over.snapshot_id)
            view = await deployment.services.store.job(job["id"])
            assert (view.error["code"], view.attempt_no) == ("EXPORT_TOO_LARGE", 1)


async def test_an_admin_exports_more_than_an_analyst_and_nobody_more_bytes_than_allowed(
    database: str, tmp_path: Path
) -> None:
    config = settings(tmp_path / "home", export_max_rows=10, export_max_mb_admin=1)
    async with running_deployment(database, config) as deployment, deployment.working():
        assert deployment.services.people is not None
        await deployment.services.people.users.add(
            "me@example.com", role=Role.ADMIN, actor=SYSTEM_ACTOR
        )
        small = await deployment.source("duckdb", shop(tmp_path, customers=1000))
        await deployment.ready(await deployment.snapshot(CUSTOMER | {"data_source_id": small}))
        wide = CUSTOMER | {"sql": "SELECT id, repeat(name, 1000) AS name, age FROM customers"}
        failed = await deployment.failed(
            await deployment.snapshot(wide | {"data_source_id": small})
        )
        assert "more than 1,000,000 bytes" in (failed.error_message or "")


def test_the_caps_of_an_export_hold_at_the_limit_and_one_past_it() -> None:
    caps = ExportCaps(max_rows=10, max_bytes=100)
    caps.check(10, 100)
    for rows, size in ((11, 100), (10, 101)):
        with pytest.raises(ExportTooLarge):
            caps.check(rows, size)
    NO_CAPS.check(10**18, 10**18)
