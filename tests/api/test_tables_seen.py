"""The list of tables: those that cannot be read have no score and say why; namespaces in namespaces
are in it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from penstock.kit.loop import LoopMetrics
from penstock.kit.migrate import find, migrate
from penstock.wiring.maintenance import keeping
from penstock.wiring.settings import Settings
from tests.api.test_tables import http, maintenance, sample, tables  # noqa: F401 - fixtures
from tests.maintenance.tables import SCHEMA, SampleTable, rows

if TYPE_CHECKING:
    import httpx2

    from penstock.api.services import Maintenance, Services

BROKEN = "/tables/shop/broken"


def add(sample: SampleTable, *name: str, files: int = 2) -> SampleTable:  # noqa: F811
    sample.catalog.create_namespace_if_not_exists(name[:-1])
    sample.catalog.create_table(name, SCHEMA)
    other = SampleTable(sample.catalog, name)
    for number in range(files):
        other.table.append(rows(number * 10, 10))
    return other


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def metadata_file(table: SampleTable) -> Path:
    return Path(table.table.metadata_location.removeprefix("file://"))


@pytest.fixture
async def broken(sample: SampleTable) -> Path:  # noqa: F811
    """The metadata file of a table, which is gone."""
    file = metadata_file(await asyncio.to_thread(add, sample, "shop", "broken"))
    file.rename(file.with_suffix(".away"))
    return file


async def listed(http: httpx2.AsyncClient, query: str = "") -> list[dict[str, Any]]:  # noqa: F811
    answer = await http.get(f"/tables{query}")
    assert answer.status_code == 200, answer.text
    rows_of_page: list[dict[str, Any]] = answer.json()["data"]
    return rows_of_page


async def test_a_table_that_cannot_be_read_has_no_score_and_says_why(
    http: httpx2.AsyncClient,  # noqa: F811
    broken: Path,
) -> None:
    refreshed = (await http.post("/tables/refresh")).json()["data"]
    assert refreshed == {"seen": 1, "failed": 1, "forgotten": 0, "unavailable": []}
    first, second = await listed(http)
    assert (first["table"], first["score"], first["enabled"], first["facts"]) == (
        "broken",
        None,
        None,
        {},
    )
    assert broken.name in first["error"]
    assert (second["table"], second["score"], second["enabled"], second["error"]) == (
        "orders",
        100,
        True,
        None,
    )


async def test_filters_tell_tables_that_cannot_be_read_from_healthy_ones(
    http: httpx2.AsyncClient,  # noqa: F811
    broken: Path,
) -> None:
    await http.post("/tables/refresh")
    assert [table["table"] for table in await listed(http, "?health=healthy")] == ["orders"]
    assert [table["table"] for table in await listed(http, "?health=unreadable")] == ["broken"]
    for query in ("?health=warning", "?health=critical", "?enabled=false"):
        assert await listed(http, query) == []
    assert [table["table"] for table in await listed(http, "?enabled=true")] == ["orders"]
    assert (await http.get("/tables?health=nonsense")).status_code == 422


async def test_a_table_that_is_repaired_has_a_score_again(
    http: httpx2.AsyncClient,  # noqa: F811
    broken: Path,
) -> None:
    await http.post("/tables/refresh")
    broken.with_suffix(".away").rename(broken)
    assert (await http.post("/tables/refresh")).json()["data"]["failed"] == 0
    assert {(table["table"], table["score"], table["error"]) for table in await listed(http)} == {
        ("broken", 100, None),
        ("orders", 100, None),
    }


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format-version": 9}', b"\xff\xfe", b"[1, 2"])
async def test_asking_for_it_says_what_is_wrong_and_takes_no_lock(
    http: httpx2.AsyncClient,  # noqa: F811
    broken: Path,
    content: bytes,
) -> None:
    broken.write_bytes(content)
    for path in ("status", "health", "recommendation"):
        answer = await http.get(f"{BROKEN}/{path}")
        assert code_of(answer) == (422, "TABLE_UNREADABLE"), path
        assert "shop.broken" in answer.json()["error"]["message"]
    for path in ("plan", "maintenance"):
        answer = await http.post(f"{BROKEN}/{path}", json={"actions": ["expire_snapshots"]})
        assert code_of(answer) == (422, "TABLE_UNREADABLE"), path
    assert (await http.get("/api/jobs")).json()["meta"]["total"] == 0


async def test_a_manifest_that_is_gone_is_told_by_its_name(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    def lose() -> str:
        snapshot = sample.table.metadata.current_snapshot()
        assert snapshot is not None
        manifest = Path(
            snapshot.manifests(sample.table.io)[0].manifest_path.removeprefix("file://")
        )
        manifest.unlink()
        return manifest.name

    name = await asyncio.to_thread(lose)
    await http.post("/tables/refresh")
    [table] = await listed(http)
    assert (table["score"], name in table["error"]) == (None, True)
    answer = await http.get("/tables/shop/orders/health?tier=storage")
    assert code_of(answer) == (422, "TABLE_UNREADABLE")
    assert (await http.get("/tables/shop/orders/health?tier=metadata")).status_code == 200


async def test_the_planner_leaves_a_table_alone_that_cannot_be_read(
    http: httpx2.AsyncClient,  # noqa: F811
    maintenance: Maintenance,  # noqa: F811
    broken: Path,
) -> None:
    policy = {"name": "all", "pattern": "*", "every_seconds": 300, "actions": ["expire_snapshots"]}
    await http.put("/api/maintenance/policies", json={"policies": [policy]})
    done = await maintenance.planner.run_once()
    assert (done.assessed, done.submitted, done.skipped) == (2, 1, 1)
    [run] = (await http.get("/api/maintenance/runs")).json()["data"]
    assert run["skipped"] == {"not readable": 1}


async def test_namespaces_in_namespaces_are_in_the_list_and_have_addresses(
    http: httpx2.AsyncClient,  # noqa: F811
    sample: SampleTable,  # noqa: F811
) -> None:
    await asyncio.to_thread(add, sample, "deep", "er", "orders")
    await asyncio.to_thread(add, sample, "deep", "er", "still", "orders")
    assert (await http.post("/tables/refresh")).json()["data"]["seen"] == 3
    assert {table["db"] for table in await listed(http)} == {"shop", "deep.er", "deep.er.still"}
    assert [table["table"] for table in await listed(http, "?db=deep.er")] == ["orders"]
    path = "/tables/deep.er.still/orders"
    assert (await http.get(f"{path}/status")).json()["data"]["facts"]["data_files"] == 2
    assert (await http.get(f"{path}/health")).json()["data"]["score"] == 100
    assert (await http.get(f"{path}/recommendation")).json()["data"]["skipped"] == "no policy"
    actions = ["expire_snapshots", "remove_orphan_files"]
    planned = (await http.post(f"{path}/plan", json={"actions": actions})).json()["data"]
    assert [outcome["status"] for outcome in planned["outcomes"]] == ["nothing_to_do"] * 2
    taken = await http.post(f"{path}/maintenance", json={"actions": ["expire_snapshots"]})
    assert (taken.status_code, taken.json()["data"]["lock"]["key"]) == (
        202,
        "table:lake.deep.er.still.orders",
    )
    [entry] = (await http.get(f"{path}/history")).json()["data"]
    assert entry["job_id"] == taken.json()["data"]["id"]
    assert (await http.get("/tables/deep.er/nothing/status")).status_code == 404
    await asyncio.to_thread(sample.catalog.drop_table, ("deep", "er", "orders"))
    assert (await http.post("/tables/refresh")).json()["data"]["forgotten"] == 1


async def test_tables_of_all_catalogs_are_known_to_the_worker_of_a_job(
    http: httpx2.AsyncClient,  # noqa: F811
    tables: Services,  # noqa: F811
    sample: SampleTable,  # noqa: F811
    database: str,
) -> None:
    """Those of the shared database by their pointers, and those of other catalogs as they were seen
    last.
    """
    from tests.api.control_plane import SERVICE

    other = await asyncio.to_thread(add, sample, "deep", "er", "orders")
    connection = await asyncpg.connect(database)
    await connection.execute(
        """INSERT INTO penstock.maintained_table
        (catalog, db, table_name, enabled, score, facts, health) VALUES
        ('far', 'a', 'b', true, 100, '{"location": "s3://x/y"}', '{}'),
        ('lake', 'gone', 'c', true, 100, '{"location": "s3://x/z"}', '{}')"""
    )
    await connection.close()
    order = {"actions": ["expire_snapshots"]}
    job = (await http.post("/tables/shop/orders/maintenance", json=order)).json()["data"]
    [claimed] = await tables.store.claim("here", ["maintenance"], 1)
    answer = await http.post(
        f"/api/internal/maintenance/{job['id']}/neighbours",
        json={"attempt_id": str(claimed.fence.attempt_id)},
        headers={"Authorization": f"Bearer {SERVICE}", "X-Component": "worker"},
    )
    assert answer.json()["data"]["tables"] == [
        {
            "catalog": "lake",
            "db": "deep.er",
            "table": "orders",
            "metadata_location": other.table.metadata_location,
            "location": None,
        },
        {
            "catalog": "far",
            "db": "a",
            "table": "b",
            "metadata_location": None,
            "location": "s3://x/y",
        },
    ]


async def test_a_catalog_that_does_not_answer_does_not_keep_the_others_from_being_seen(
    tables: Services,  # noqa: F811
    sample: SampleTable,  # noqa: F811
    tmp_path: Path,
    unused_tcp_port: int,
) -> None:
    catalogs = {
        "away": {"type": "rest", "uri": f"http://127.0.0.1:{unused_tcp_port}"},
        "lake": {"warehouse": (tmp_path / "warehouse").as_uri()},
    }
    settings = Settings(home=tmp_path, catalogs=catalogs)
    metrics = LoopMetrics(CollectorRegistry())
    async with keeping(settings, tables.store._db, tables.store, metrics) as configured:
        assert configured is not None
        refreshed = await configured.service.refresh()
    assert (refreshed.seen, refreshed.failed, refreshed.unavailable) == (1, 0, ("away",))


async def test_rows_from_before_lose_the_score_that_they_never_had(database: str) -> None:
    """The migration, on a database as the version before left it."""
    [first, second] = find(["penstock.maintenance.migrations"])
    connection = await asyncpg.connect(database)
    await connection.execute("DROP TABLE penstock.maintained_table")
    begin, end = first.text.index("CREATE TABLE"), first.text.index(");") + 2
    await connection.execute(first.text[begin:end])
    forget = "DELETE FROM penstock.schema_migration WHERE room = 'maintenance' AND version = 2"
    await connection.execute(forget)
    columns = "catalog, db, table_name, enabled, score, facts, health, error"
    insert = f"INSERT INTO penstock.maintained_table ({columns})"
    await connection.execute(
        f"""{insert} VALUES ('c', 'd', 'bad', false, 100, '{{}}', '{{}}', 'gone'),
        ('c', 'd', 'good', true, 70, '{{}}', '{{}}', NULL)"""
    )
    assert await migrate(database, [first, second]) == ["maintenance 0002 unreadable_tables"]
    migrated = await connection.fetch(
        "SELECT table_name, enabled, score FROM penstock.maintained_table ORDER BY table_name"
    )
    await connection.close()
    assert [tuple(row) for row in migrated] == [("bad", None, None), ("good", True, 70)]
