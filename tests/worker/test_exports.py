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
from penstock.accounts.users import ITSELF
from penstock.graphs.errors import ExportTooLarge
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.graphs.snapshots.payloads import NO_CAPS, ExportCaps
from penstock.storage.manifest import read_manifest
from tests.graphs.stand import (
    CUSTOMER,
    PURCHASED,
    Stand,
    connected,
    fill,
    postgres,
    postgres_secrets,
    settings,
    shop,
    standing,
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
async def stand(database: str, tmp_path: Path) -> AsyncIterator[Stand]:
    async with standing(database, settings(tmp_path / "home")) as it:
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
    async with standing(database, configured) as stand, stand.working():
        if kind == "duckdb":
            config = shop(tmp_path, customers=ROWS)
        else:
            await fill(warehouse, ROWS)
            config = postgres(warehouse)
        secrets = postgres_secrets(warehouse) if kind == "postgres" else {}
        source = await stand.source(kind, config, secrets)
        snapshot_id = await stand.snapshot(CUSTOMER | {"data_source_id": source})
        snapshot = await stand.ready(snapshot_id)
        table = await stand.table(snapshot, "nodes/Customer")
        assert table.schema.types == [pa.int64(), pa.string(), pa.int64()]
        assert sorted(table["id"].to_pylist()) == list(range(ROWS))
        assert snapshot.node_counts == {"Customer": ROWS}
        [job] = await stand.jobs(snapshot_id)
        assert (job["status"], job["row_count"], job["size_bytes"]) == (
            "completed",
            ROWS,
            snapshot.size_bytes,
        )
        manifest = await read_manifest(stand.store, snapshot.prefix or "")
        [entity] = manifest.entities.values()
        assert {part.path for part in entity.parts} | {f"{snapshot.prefix}manifest.json"} == set(
            await stand.files()
        )


async def test_a_query_without_rows_leaves_a_file_with_the_declared_types(
    stand: Stand, tmp_path: Path
) -> None:
    source = await stand.source("duckdb", shop(tmp_path))
    columns = [{"name": "id", "type": "INT64"}, {"name": "gone", "type": "DATE"}]
    nobody = {
        "sql": "SELECT id, NULL::DATE AS gone FROM customers WHERE id < 0",
        "columns": columns,
    }
    async with stand.working():
        snapshot = await stand.ready(
            await stand.snapshot(CUSTOMER | nobody | {"data_source_id": source})
        )
    table = await stand.table(snapshot, "nodes/Customer")
    assert (table.num_rows, table.schema.types) == (0, [pa.int64(), pa.date32()])
    assert snapshot.node_counts == {"Customer": 0}


async def test_an_edge_type_between_several_labels_is_one_count_and_several_entities(
    stand: Stand, tmp_path: Path
) -> None:
    edge = PURCHASED | {"data_source_id": await stand.source("duckdb", shop(tmp_path))}
    pairs = [edge | {"from_node": name, "to_node": "Item"} for name in ("Customer", "Company")]
    async with stand.working():
        snapshot = await stand.ready(await stand.snapshot(*pairs))
    assert snapshot.edge_counts == {"PURCHASED": 6000}
    for name in ("Customer", "Company"):
        assert (await stand.table(snapshot, f"edges/PURCHASED/{name}-Item")).num_rows == 3000


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
    stand: Stand, tmp_path: Path
) -> None:
    source = await stand.source("duckdb", shop(tmp_path))
    async with stand.working():
        snapshots = {
            case: await stand.snapshot(
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
            snapshot = await stand.failed(snapshot_id)
            error = await _error(stand, snapshot_id)
            assert error["code"].startswith(code), (case, error)
            assert error["message"].startswith("Node Customer: "), (case, error)
            assert piece in f"{error['message']} {error.get('hint')}", (case, error)
            assert snapshot.failed_step == "Customer"
            assert (snapshot.error_message or "").startswith(error["message"][:500]), case
    assert await stand.files() == []


async def test_columns_that_are_not_the_declared_ones_are_named_each_with_a_suggestion(
    stand: Stand, tmp_path: Path
) -> None:
    source = await stand.source("duckdb", shop(tmp_path))
    async with stand.working():
        snapshots = {}
        for case, (sql, names, _) in BAD_COLUMNS.items():
            pairs = [(name, None) if isinstance(name, str) else name for name in names]
            columns = [{"name": name, "type": kind} for name, kind in pairs]
            job = {"job_type": "node", "entity_name": "Customer", "sql": sql, "columns": columns}
            snapshots[case] = await stand.snapshot(job | {"data_source_id": source})
        for case, snapshot_id in snapshots.items():
            await stand.failed(snapshot_id)
            error = await _error(stand, snapshot_id)
            assert error["message"].startswith("Node Customer: "), (case, error)
            assert BAD_COLUMNS[case][2] in error["message"], (case, error)
            assert error["hint"], (case, error)
            assert not error["retryable"]
    assert await stand.files() == []


async def _error(stand: Stand, snapshot_id: int) -> dict[str, Any]:
    [job] = await stand.jobs(snapshot_id)
    error: dict[str, Any] = (await stand.parts.store.job(job["id"])).error
    return error


async def test_a_job_that_is_cancelled_leaves_no_file_and_no_query(
    warehouse: str, stand: Stand, tmp_path: Path
) -> None:
    await fill(warehouse, 10)
    source = await stand.source("postgres", postgres(warehouse), postgres_secrets(warehouse))
    slow = {
        "sql": "SELECT id, name, age FROM customers,"
        " (SELECT count(*) AS n FROM generate_series(1, 20000000000)) AS q"
    }
    snapshot_id = await stand.snapshot(CUSTOMER | slow | {"data_source_id": source})
    async with stand.working() as worker:
        [job] = await stand.jobs(snapshot_id)

        async def queries() -> int:
            async with connected(warehouse) as connection:
                count: int = await connection.fetchval(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE query LIKE '%20000000000%' AND pid <> pg_backend_pid()"
                    " AND state = 'active'"
                )
                return count

        await until(queries)
        await stand.parts.store.cancel(job["id"], actor="me", reason="Not needed")

        async def idle() -> bool:
            return not worker.busy and not await queries()

        await until(idle)
    assert await stand.files() == []
    snapshot = await stand.graphs.snapshots.get(snapshot_id)
    assert (snapshot.status, snapshot.failed_step) == (SnapshotStatus.FAILED, "Customer")
    assert "Not needed" in (snapshot.error_message or "")


async def test_a_failed_snapshot_is_tried_again_and_only_what_did_not_complete(
    stand: Stand, tmp_path: Path
) -> None:
    config = shop(tmp_path)
    source = await stand.source("duckdb", config)
    early = PURCHASED | {"sql": "SELECT customer, item FROM purchased"}
    snapshot_id = await stand.snapshot(
        CUSTOMER | {"data_source_id": source}, early | {"data_source_id": source}
    )

    async def all_over() -> bool:
        return all(
            job["status"] in ("completed", "failed") for job in await stand.jobs(snapshot_id)
        )

    async with stand.working():
        await until(all_over)
    before = {job["entity_name"]: job for job in await stand.jobs(snapshot_id)}
    snapshot = await stand.failed(snapshot_id)
    assert (snapshot.failed_step, snapshot.node_counts) == ("PURCHASED", {"Customer": 1000})
    with duckdb.connect(config["database"]) as db:
        db.execute("CREATE TABLE purchased AS FROM purchases")
    await stand.graphs.exports.retry(snapshot_id)
    async with stand.working():
        snapshot = await stand.ready(snapshot_id)
    after = {job["entity_name"]: job for job in await stand.jobs(snapshot_id)}
    assert after["Customer"] == before["Customer"]
    assert after["PURCHASED"]["id"] != before["PURCHASED"]["id"]
    assert (snapshot.node_counts, snapshot.edge_counts) == ({"Customer": 1000}, {"PURCHASED": 3000})
    assert (snapshot.error_message, snapshot.failed_step) == (None, None)
    assert (await stand.parts.store.job(before["PURCHASED"]["id"])).error[
        "code"
    ] == "SOURCE_QUERY_ERROR"


async def test_files_of_a_worker_that_only_told_their_rows_are_found_and_counted(
    stand: Stand, tmp_path: Path
) -> None:
    """As export workers of another make do it: they write into the entity's folder and say how many
    rows."""
    source = await stand.source("duckdb", shop(tmp_path))
    snapshots = {}
    for case, rows in (("told", 3), ("lied", 4), ("no file", 3)):
        snapshots[case] = await stand.snapshot(CUSTOMER | {"data_source_id": source})
        [job] = (await stand.ask("POST", f"{FACE}/claim", worker_id="another", limit=1))["jobs"]
        if case != "no file":
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table({"id": [1, 2, 3]}), sink)
            key = f"{job['gcs_path'].removeprefix(stand.settings.storage_root + '/')}data.parquet"
            await stand.store.create(key, sink.getvalue().to_pybytes())
        update = {"attempt_id": job["attempt_id"], "status": "completed", "row_count": rows}
        await stand.ask("PATCH", f"{FACE}/{job['id']}", **update)
    async with stand.working():
        snapshot = await stand.ready(snapshots["told"])
        assert snapshot.node_counts == {"Customer": 3}
        assert (await stand.table(snapshot, "nodes/Customer"))["id"].to_pylist() == [1, 2, 3]
        for case, words in (
            ("lied", "hold 3 rows, but 4 were sent"),
            ("no file", "There is no file in"),
        ):
            snapshot = await stand.failed(snapshots[case])
            assert snapshot.failed_step == "publish"
            assert (snapshot.error_message or "").startswith("Node Customer: ")
            assert words in (snapshot.error_message or "")


@pytest.mark.parametrize(("rows", "is_whole"), [(1000, True), (999, False)])
async def test_an_analyst_exports_as_many_rows_as_allowed_and_not_one_more(
    database: str, tmp_path: Path, rows: int, is_whole: bool
) -> None:
    config = settings(tmp_path / "home", export_max_rows=rows)
    async with standing(database, config) as stand, stand.working():
        source = await stand.source("duckdb", shop(tmp_path, customers=1000))
        over = await stand.over(await stand.snapshot(CUSTOMER | {"data_source_id": source}))
        assert (over.status is SnapshotStatus.READY) == is_whole
        if not is_whole:
            assert "more than 999 rows" in (over.error_message or "")
            [job] = await stand.jobs(over.snapshot_id)
            view = await stand.parts.store.job(job["id"])
            assert (view.error["code"], view.attempt_no) == ("EXPORT_TOO_LARGE", 1)


async def test_an_admin_exports_more_than_an_analyst_and_nobody_more_bytes_than_allowed(
    database: str, tmp_path: Path
) -> None:
    config = settings(tmp_path / "home", export_max_rows=10, export_max_mb_admin=1)
    async with standing(database, config) as stand, stand.working():
        assert stand.parts.people is not None
        await stand.parts.people.users.add("me@example.com", role=Role.ADMIN, actor=ITSELF)
        small = await stand.source("duckdb", shop(tmp_path, customers=1000))
        await stand.ready(await stand.snapshot(CUSTOMER | {"data_source_id": small}))
        wide = CUSTOMER | {"sql": "SELECT id, repeat(name, 1000) AS name, age FROM customers"}
        failed = await stand.failed(await stand.snapshot(wide | {"data_source_id": small}))
        assert "more than 1,000,000 bytes" in (failed.error_message or "")


def test_the_caps_of_an_export_hold_at_the_limit_and_one_past_it() -> None:
    caps = ExportCaps(max_rows=10, max_bytes=100)
    caps.check(10, 100)
    for rows, size in ((11, 100), (10, 101)):
        with pytest.raises(ExportTooLarge):
            caps.check(rows, size)
    NO_CAPS.check(10**18, 10**18)
