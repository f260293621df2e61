"""The schema browser: cached catalogs, schemas, tables and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from prometheus_client import CollectorRegistry

from penstock.kit.db import Db
from penstock.kit.loop import LoopMetrics
from penstock.sources.schema_cache import Refreshed, SchemaCache, SchemaRefresh
from tests.api.answers import error

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from penstock.api.services import Services

SCHEMA = "/api/schema"


def warehouse(folder: Path, *statements: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)
    return {"database": str(folder / "shop.duckdb")}


async def add(services: Services, name: str, config: dict[str, str]) -> int:
    assert services.sources is not None
    source = await services.sources.records.add(
        name=name, kind="duckdb", owner="ann", config=config, secrets={}
    )
    return source.data_source_id


@pytest.fixture
async def filled(services: Services, tmp_path: Path) -> int:
    config = warehouse(
        tmp_path,
        "CREATE TABLE orders (id BIGINT NOT NULL, amount DECIMAL(12, 2) DEFAULT 0)",
        "CREATE TABLE old_orders (id INT, a_b INT, axb INT)",
        "CREATE SCHEMA archive",
        "CREATE VIEW archive.Orders_2020 AS SELECT 1 AS order_id",
    )
    source = await add(services, "shop", config)
    assert await services.loops[0].run_once() == Refreshed(sources=1, tables=3)
    return source


async def listed(caller: httpx2.AsyncClient, path: str, **params: Any) -> list[dict[str, Any]]:
    answer = await caller.get(f"{SCHEMA}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


async def test_catalogs_are_walked_down_to_their_columns(
    operator: httpx2.AsyncClient, filled: int
) -> None:
    [catalog] = await listed(operator, "catalogs")
    assert (catalog["catalog_name"], catalog["schema_count"]) == ("shop", 2)
    assert catalog["cached_at"].endswith("Z")
    schemas = await listed(operator, "catalogs/shop/schemas")
    assert [(s["schema_name"], s["table_count"]) for s in schemas] == [("archive", 1), ("main", 2)]
    tables = await listed(operator, "catalogs/shop/schemas/main/tables", sort_order="desc")
    assert [(t["table_name"], t["table_type"], t["column_count"]) for t in tables] == [
        ("orders", "table", 2),
        ("old_orders", "table", 3),
    ]
    columns = await listed(operator, "catalogs/shop/schemas/main/tables/orders/columns")
    assert [
        (c["column_name"], c["data_type"], c["is_nullable"], c["column_default"]) for c in columns
    ] == [
        ("id", "BIGINT", False, None),
        ("amount", "DECIMAL(12,2)", True, "0"),
    ]
    page = (
        await operator.get(f"{SCHEMA}/catalogs/shop/schemas/main/tables", params={"limit": 1})
    ).json()
    assert (len(page["data"]), page["meta"]["total"]) == (1, 2)


async def test_what_is_not_in_the_cache_is_said_to_be_so(
    operator: httpx2.AsyncClient, filled: int
) -> None:
    for path in (
        "catalogs/nothing/schemas",
        "catalogs/shop/schemas/nothing/tables",
        "catalogs/shop/schemas/main/tables/nothing/columns",
    ):
        missing = error(await operator.get(f"{SCHEMA}/{path}"), 404, "RESOURCE_NOT_FOUND")
        assert missing["message"].endswith("not found in cache.")
    for path in ("catalogs/%00/schemas", f"catalogs/{'x' * 501}/schemas"):
        error(await operator.get(f"{SCHEMA}/{path}"), 422, "VALIDATION_FAILED")


async def test_a_search_finds_prefixes_first_in_any_case_and_takes_signs_for_themselves(
    operator: httpx2.AsyncClient, filled: int
) -> None:
    assert [t["table_name"] for t in await listed(operator, "search/tables", q="ORD")] == [
        "Orders_2020",
        "orders",
        "old_orders",
    ]
    assert [c["column_name"] for c in await listed(operator, "search/columns", q="A_B")] == ["a_b"]
    assert [t["table_name"] for t in await listed(operator, "search/tables", q="ord", limit=1)] == [
        "Orders_2020"
    ]
    for nothing in ("%", "\\", "'"):
        assert await listed(operator, "search/tables", q=nothing) == []
    for wrong in (
        {},
        {"q": ""},
        {"q": "x" * 201},
        {"q": "\0"},
        {"q": "x", "limit": 0},
        {"q": "x", "limit": 1001},
    ):
        error(
            await operator.get(f"{SCHEMA}/search/columns", params=wrong), 422, "VALIDATION_FAILED"
        )


async def test_two_sources_that_have_the_same_table_show_it_once(
    operator: httpx2.AsyncClient, services: Services, filled: int, tmp_path: Path
) -> None:
    other = warehouse(
        tmp_path / "other", "CREATE TABLE orders (id VARCHAR, note VARCHAR, amount INT)"
    )
    await add(services, "other", other)
    assert await services.loops[0].run_once() == Refreshed(sources=2, tables=4)
    columns = await listed(operator, "catalogs/shop/schemas/main/tables/orders/columns")
    assert [c["data_type"] for c in columns] == ["BIGINT", "DECIMAL(12,2)"]
    assert [t["table_name"] for t in await listed(operator, "search/tables", q="orders")].count(
        "orders"
    ) == 1
    assert len(await listed(operator, "search/columns", q="amount")) == 1


async def test_a_source_that_does_not_answer_keeps_what_it_had_and_stops_nobody(
    operator: httpx2.AsyncClient, services: Services, filled: int, tmp_path: Path
) -> None:
    (tmp_path / "shop.duckdb").unlink()
    await add(services, "new", warehouse(tmp_path / "new", "CREATE TABLE fresh (id INT)"))
    assert await services.loops[0].run_once() == Refreshed(sources=1, failed=1, tables=1)
    assert len(await listed(operator, "catalogs/shop/schemas/main/tables")) == 3
    (tmp_path / "shop.duckdb").write_bytes(b"")
    assert (await services.loops[0].run_once()).total == 2


async def test_a_refresh_takes_away_what_is_gone_and_so_does_dropping_the_source(
    operator: httpx2.AsyncClient, services: Services, filled: int, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("DROP TABLE orders")
    await services.loops[0].run_once()
    assert [
        t["table_name"] for t in await listed(operator, "catalogs/shop/schemas/main/tables")
    ] == ["old_orders"]
    assert (await operator.delete(f"/api/data-sources/{filled}")).status_code == 200
    assert await listed(operator, "catalogs") == []
    stats = (await operator.get(f"{SCHEMA}/stats")).json()["data"]
    assert (stats["total_catalogs"], stats["total_columns"], stats["last_refresh"]) == (0, 0, None)


async def test_a_refresh_is_triggered_and_the_cache_counts_itself(
    operator: httpx2.AsyncClient, services: Services, database: str, tmp_path: Path
) -> None:
    await add(services, "shop", warehouse(tmp_path, "CREATE TABLE orders (id BIGINT)"))
    loop = services.loops[0]
    answer = await operator.post(f"{SCHEMA}/admin/refresh")
    assert (answer.status_code, answer.json()) == (200, {"data": {"status": "refresh triggered"}})
    assert loop._trigger.is_set()
    assert await loop.pass_() == "success"
    stats = (await operator.get(f"{SCHEMA}/stats")).json()["data"]
    assert [stats[f"total_{what}"] for what in ("catalogs", "schemas", "tables", "columns")] == [
        1,
        1,
        1,
        1,
    ]
    assert stats["index_size_bytes"] > 0
    assert stats["last_refresh"].endswith("Z")


async def test_one_process_refreshes_at_a_time(services: Services, database: str) -> None:
    assert services.sources is not None
    async with Db(database, size=2) as db:
        records, cache = services.sources.records, SchemaCache(db, services.sources.records)
        other = SchemaRefresh(
            db, records, cache, every=3600, metrics=LoopMetrics(CollectorRegistry())
        )
        async with other._turn() as mine:
            assert mine
            assert await services.loops[0].pass_() == "skipped"
        assert await services.loops[0].pass_() == "success"
