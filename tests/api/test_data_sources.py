"""Data sources over HTTP: permissions, visible fields and secrets."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import parse_qs, urlsplit

import asyncpg
import duckdb
import httpx2
import pytest
import structlog

from penstock.api.services import Sources
from penstock.api.sources.data_source_schemas import SourceType
from penstock.guard.network_reach import Reach
from penstock.kit import logging
from penstock.kit.vault import Vault
from penstock.sources.registry import DRIVERS
from tests.api.answers import enqueue, error
from tests.api.control_plane import ADMIN, ANALYST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from penstock.api.services import Services

MARK = "canary-hunter2"
PRIVATE = {"database": "shop", "user": "ann", "host": "127.0.0.1", "port": 1, "connect_seconds": 1}
SOURCES = "/api/data-sources"


@pytest.fixture
async def analyst(anyone: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    async with _caller(anyone, ANALYST) as client:
        yield client


@pytest.fixture
async def admin(anyone: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    async with _caller(anyone, ADMIN) as client:
        yield client


def _caller(anyone: httpx2.AsyncClient, token: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(
        base_url=anyone.base_url, headers=headers, timeout=30, trust_env=False
    )


@pytest.fixture
def shop(tmp_path: Path) -> dict[str, Any]:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE orders (id BIGINT NOT NULL, amount DECIMAL(12, 2) DEFAULT 0)"
        )
        connection.execute("CREATE SCHEMA old")
        connection.execute("CREATE TABLE old.orders (id INT)")
        connection.execute("CREATE VIEW old.customers AS SELECT 1 AS id")
    return {"name": "shop", "type": "duckdb", "config": {"database": str(tmp_path / "shop.duckdb")}}


def private(name: str = "mine") -> dict[str, Any]:
    return {"name": name, "type": "postgres", "config": PRIVATE, "credentials": {"password": MARK}}


async def add(caller: httpx2.AsyncClient, body: dict[str, Any]) -> int:
    answer = await caller.post(SOURCES, json=body)
    assert answer.status_code == 201, answer.text
    source: int = answer.json()["data"]["id"]
    return source


async def test_a_source_is_added_shown_changed_and_dropped(
    operator: httpx2.AsyncClient, shop: dict[str, Any]
) -> None:
    source = (await operator.post(SOURCES, json=shop)).json()["data"]
    assert (source["name"], source["type"], source["owner_username"]) == (
        "shop",
        "duckdb",
        "operator",
    )
    assert (source["config"], source["has_credentials"], source["is_default"]) == (
        shop["config"],
        False,
        False,
    )
    assert source["created_at"].endswith("Z")
    one = f"{SOURCES}/{source['id']}"
    assert (await operator.get(one)).json()["data"] == source
    changed = (
        await operator.put(one, json={"name": "market", "config": shop["config"] | {"threads": 1}})
    ).json()
    assert (changed["data"]["name"], changed["data"]["config"]["threads"]) == ("market", 1)
    assert (await operator.put(f"{one}/default")).json()["data"]["is_default"] is True
    assert (await operator.delete(one)).json()["data"] == {"id": source["id"]}
    error(await operator.get(one), 404, "RESOURCE_NOT_FOUND")
    error(await operator.delete(one), 404, "RESOURCE_NOT_FOUND")
    audit = (
        await operator.get("/api/audit", params={"subject": f"data_source:{source['id']}"})
    ).json()["data"]
    assert [(e["action"], e["actor"]) for e in audit] == [
        (f"data_source.{action}", "operator") for action in ("drop", "default", "update", "add")
    ]


async def test_sources_are_listed_by_page_and_by_type(
    operator: httpx2.AsyncClient, shop: dict[str, Any]
) -> None:
    await add(operator, shop)
    for number in range(3):
        await add(operator, private(f"p{number}"))
    page = (await operator.get(SOURCES, params={"type": "postgres", "limit": 2})).json()
    assert ([s["name"] for s in page["data"]], page["meta"]["total"]) == (["p2", "p1"], 3)
    turned = (await operator.get(SOURCES, params={"sort_order": "asc", "sort_by": "id"})).json()
    assert [s["name"] for s in turned["data"]] == ["shop", "p0", "p1", "p2"]
    for wrong in ({"type": "oracle"}, {"sort_by": "password"}, {"limit": 0}, {"colour": "blue"}):
        error(await operator.get(SOURCES, params=wrong), 422, "VALIDATION_FAILED")
    error(await operator.post(SOURCES, json=shop), 409, "CONFLICT")


def test_the_types_are_those_that_there_are_drivers_for() -> None:
    assert set(get_args(SourceType)) == set(DRIVERS)


WRONG_FIELDS = [
    ({"config": PRIVATE | {"port": "no"}}, "config.port"),
    ({"config": PRIVATE | {"password": MARK}}, "config.password"),
    ({"config": {"user": "ann"}}, "config.database"),
    ({"credentials": {"passwort": MARK}}, "credentials.passwort"),
    ({"config": PRIVATE | {"host": "169.254.169.254"}}, "config.host"),
    ({"config": PRIVATE | {"host": "0x7f.1"}}, "config.host"),
]
WRONG_BODIES: list[dict[str, Any]] = [
    {},
    {"name": "a b", "type": "duckdb"},
    {"name": "x", "type": "oracle"},
    {"name": "x", "type": "duckdb", "config": [MARK]},
    {"name": "x", "type": "duckdb", "credentials": {"password": 1}},
    {"name": "x", "type": "duckdb", "credentials": {"password": ""}},
    {"name": "x", "type": "duckdb", "credentials": {"Pass word": MARK}},
    {"name": "x", "type": "duckdb", "credentials": {f"s{n}": MARK for n in range(21)}},
    {"name": "x", "type": "duckdb", "config": {"threads": 10**30}},
    {"name": "x", "type": "duckdb", "config": {f"s{n}": n for n in range(101)}},
    {"name": "x", "type": "duckdb", "owner": "bob"},
    {"name": "x", "type": "files", "config": {"url": "file://["}},
    {"name": "x", "type": "files", "config": {"url": ["file:///"]}},
    {
        "name": "x",
        "type": "files",
        "config": {"url": "s3://no such bucket\n/x", "endpoint": "::::"},
    },
    {"name": "x", "type": "postgres", "config": PRIVATE | {"host": {"a": 1}}},
    {"name": "x", "type": "trino", "config": {"url": "https://[", "user": "ann"}},
    {
        "name": "x",
        "type": "trino",
        "config": {"url": "https://8.8.8.8", "user": "ann", "session": {"a": "\0"}},
    },
]


async def test_a_wrong_configuration_is_named_by_its_field(operator: httpx2.AsyncClient) -> None:
    for changes, field in WRONG_FIELDS:
        answer = await operator.post(SOURCES, json=private() | changes)
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["details"]["field"] == field
        assert MARK not in answer.text


async def test_no_body_breaks_anything(operator: httpx2.AsyncClient) -> None:
    for body in WRONG_BODIES:
        answer = await operator.post(SOURCES, json=body)
        assert answer.status_code == 422, (body, answer.text)
        assert MARK not in answer.text
    assert (await operator.get(SOURCES)).json()["meta"]["total"] == 0


ALLOWED = {200, 409, 422, 503}


async def test_what_is_ones_own_and_what_is_others(
    operator: httpx2.AsyncClient,
    analyst: httpx2.AsyncClient,
    admin: httpx2.AsyncClient,
    shop: dict[str, Any],
) -> None:
    """Every operation, by its owner, by a stranger, by admin and by ops."""
    callers = {"analyst": analyst, "admin": admin, "ops": operator}
    of_analyst, of_ops = await add(analyst, private("of-analyst")), await add(operator, shop)
    operations = (
        ("GET", "", None),
        ("PUT", "", {"name": "renamed"}),
        ("POST", "/test", None),
        ("GET", "/browse", None),
        ("GET", "/schema?table=orders", None),
        ("PUT", "/default", None),
        ("DELETE", "", None),
    )
    for name, caller in callers.items():
        for source, owner in ((of_analyst, "analyst"), (of_ops, "ops")):
            for method, path, body in operations[:-2]:
                answer = await caller.request(method, f"{SOURCES}/{source}{path}", json=body)
                allowed = name in (owner, "admin", "ops") or (method, path) == ("GET", "")
                assert (answer.status_code in ALLOWED) == allowed, (
                    name,
                    owner,
                    method,
                    path,
                    answer.text,
                )
                assert allowed or error(answer, 403, "PERMISSION_DENIED")
            await operator.put(f"{SOURCES}/{of_analyst}", json={"name": "of-analyst"})
    for method, path, _ in operations[-2:]:
        error(await analyst.request(method, f"{SOURCES}/{of_ops}{path}"), 403, "PERMISSION_DENIED")
    error(await analyst.put(f"{SOURCES}/{of_analyst}/default"), 403, "PERMISSION_DENIED")
    assert (await admin.put(f"{SOURCES}/{of_ops}/default")).status_code == 200
    assert (await analyst.delete(f"{SOURCES}/{of_analyst}")).status_code == 200
    error(await analyst.put(f"{SOURCES}/999999", json={"name": "x"}), 404, "RESOURCE_NOT_FOUND")


async def test_strangers_see_that_a_source_is_there_and_not_what_it_is_made_of(
    operator: httpx2.AsyncClient, analyst: httpx2.AsyncClient, shop: dict[str, Any]
) -> None:
    source = await add(operator, shop)
    seen = (await analyst.get(f"{SOURCES}/{source}")).json()["data"]
    assert (seen["name"], seen["config"]) == ("shop", None)
    assert [s["config"] for s in (await analyst.get(SOURCES)).json()["data"]] == [None]
    await operator.put(f"{SOURCES}/{source}/default")
    assert (await analyst.get(f"{SOURCES}/{source}")).json()["data"]["config"] == shop["config"]
    assert (await analyst.get(f"{SOURCES}/{source}/browse")).status_code == 200
    error(await analyst.post(f"{SOURCES}/{source}/test"), 403, "PERMISSION_DENIED")


async def test_what_the_server_itself_may_read_is_for_admins(
    operator: httpx2.AsyncClient,
    analyst: httpx2.AsyncClient,
    admin: httpx2.AsyncClient,
    shop: dict[str, Any],
) -> None:
    socket = private() | {"config": PRIVATE | {"host": "/run/postgresql"}}
    folder = {"name": "files", "type": "files", "config": {"url": "file:///tmp"}}
    bucket = {"name": "bucket", "type": "files", "config": {"url": "S3://somebody/else"}}
    query = {"name": "query", "type": "bigquery", "config": {"project": "somebody"}}
    for body in (shop, socket, folder, bucket, query):
        error(await analyst.post(SOURCES, json=body), 403, "PERMISSION_DENIED")
    half = bucket | {"credentials": {"session_token": MARK}}
    error(await analyst.post(SOURCES, json=half), 403, "PERMISSION_DENIED")
    for body in (shop, socket, folder, bucket):
        await add(admin, body)
    whole = {"credentials": {"access_key_id": MARK, "secret_access_key": MARK}}
    mine = await add(analyst, bucket | {"name": "my-bucket"} | whole)
    error(
        await analyst.put(f"{SOURCES}/{mine}", json={"credentials": {}}), 403, "PERMISSION_DENIED"
    )
    other = {"config": {"url": "gs://somebody/else"}}
    error(await analyst.put(f"{SOURCES}/{mine}", json=other), 403, "PERMISSION_DENIED")
    assert (await analyst.put(f"{SOURCES}/{mine}", json={"name": "still-mine"})).status_code == 200
    own = await add(analyst, private("own"))
    moved = {"config": socket["config"], "credentials": {"password": MARK}}
    error(await analyst.put(f"{SOURCES}/{own}", json=moved), 403, "PERMISSION_DENIED")


async def test_a_test_really_connects_and_is_remembered(
    operator: httpx2.AsyncClient, shop: dict[str, Any]
) -> None:
    good, bad = await add(operator, shop), await add(operator, private())
    result = (await operator.post(f"{SOURCES}/{good}/test")).json()["data"]
    assert (result["ok"], result["message"].startswith("DuckDB")) == (True, True)
    shown = (await operator.get(f"{SOURCES}/{good}")).json()["data"]
    assert (shown["test_ok"], shown["test_message"], shown["tested_at"]) == (
        True,
        result["message"],
        result["tested_at"],
    )
    result = (await operator.post(f"{SOURCES}/{bad}/test")).json()["data"]
    assert result["ok"] is False
    assert result["message"]
    assert (await operator.get(f"{SOURCES}/{bad}")).json()["data"]["test_ok"] is False
    assert (await operator.put(f"{SOURCES}/{bad}", json={"name": "x"})).json()["data"][
        "test_ok"
    ] is None


async def test_a_source_is_browsed_as_it_is_now(
    operator: httpx2.AsyncClient, shop: dict[str, Any]
) -> None:
    one = f"{SOURCES}/{await add(operator, shop)}"
    page = (await operator.get(f"{one}/browse")).json()
    assert [(t["schema_name"], t["table_name"], t["table_type"]) for t in page["data"]] == [
        ("main", "orders", "table"),
        ("old", "customers", "view"),
        ("old", "orders", "table"),
    ]
    for prefix, total in (("ORD", 2), ("old.", 2), ("shop.main.o", 1), ("zzz", 0)):
        assert (await operator.get(f"{one}/browse", params={"prefix": prefix})).json()["meta"][
            "total"
        ] == total
    table = (await operator.get(f"{one}/schema", params={"table": "main.orders"})).json()["data"]
    assert table["columns"] == [
        {
            "column_name": "id",
            "data_type": "BIGINT",
            "is_nullable": False,
            "ordinal_position": 1,
            "column_default": None,
        },
        {
            "column_name": "amount",
            "data_type": "DECIMAL(12,2)",
            "is_nullable": True,
            "ordinal_position": 2,
            "column_default": "0",
        },
    ]
    several = error(
        await operator.get(f"{one}/schema", params={"table": "orders"}), 409, "CONFLICT"
    )
    assert several["details"]["tables"] == ["shop.main.orders", "shop.old.orders"]
    error(
        await operator.get(f"{one}/schema", params={"table": "nothing"}), 404, "RESOURCE_NOT_FOUND"
    )
    for wrong in ({}, {"table": ""}, {"table": "\0"}):
        error(await operator.get(f"{one}/schema", params=wrong), 422, "VALIDATION_FAILED")
    away = f"{SOURCES}/{await add(operator, private())}"
    assert (await operator.get(f"{away}/browse")).status_code == 503


async def test_a_source_that_live_jobs_read_is_not_dropped(
    operator: httpx2.AsyncClient, shop: dict[str, Any]
) -> None:
    source = await add(operator, shop)
    jobs = [await enqueue(operator, payload={"data_source_id": source, "n": n}) for n in range(2)]
    await enqueue(operator, payload={"data_source_id": source + 1})
    refused = error(await operator.delete(f"{SOURCES}/{source}"), 409, "DEPENDENCY_EXISTS")
    assert (refused["details"]["jobs"], refused["details"]["count"]) == (jobs, 2)
    for job in jobs:
        await operator.post(f"/api/jobs/{job}/cancel")
    assert (await operator.delete(f"{SOURCES}/{source}")).status_code == 200


async def test_without_a_key_no_credential_is_taken(
    operator: httpx2.AsyncClient,
    services: Services,
    shop: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert services.sources is not None
    source = await add(operator, private())
    monkeypatch.setattr(services.sources.records, "_vault", Vault([]))
    refused = error(await operator.post(SOURCES, json=private("other")), 503, "SECRET_KEY_MISSING")
    assert "PENSTOCK_SECRET_KEY" in refused["details"]["hint"]
    for method, path in (("POST", "/test"), ("GET", "/browse")):
        error(
            await operator.request(method, f"{SOURCES}/{source}{path}"), 503, "SECRET_KEY_MISSING"
        )
    await add(operator, shop)
    assert (await operator.get(SOURCES)).json()["meta"]["total"] == 2


async def test_private_places_are_refused_where_they_are_not_allowed(
    operator: httpx2.AsyncClient,
    services: Services,
    shop: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(services.sources, Sources)
    monkeypatch.setattr(services.sources.records, "_reach", Reach(private=False))
    for body in (private(), shop):
        refused = error(await operator.post(SOURCES, json=body), 422, "URL_REFUSED")
        assert "PENSTOCK_ALLOW_PRIVATE_SOURCES" in refused["details"]["hint"]


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged, at DEBUG."""
    before = structlog.get_config()
    stream = io.StringIO()
    logging.configure(level="DEBUG", form="json", stream=stream)
    yield stream
    structlog.configure(**before)


async def test_a_marked_secret_is_found_nowhere(
    operator: httpx2.AsyncClient,
    services: Services,
    database: str,
    written: io.StringIO,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every way in, every way to fail, then a look at answers, logs, metrics and each row of each
    table."""
    caplog.set_level("DEBUG")
    answers = []

    async def call(method: str, path: str, body: object = None) -> httpx2.Response:
        answers.append(await operator.request(method, path, json=body))
        return answers[-1]

    real = parse_qs(urlsplit(database).query)
    config = {
        "database": f"no_{MARK}",
        "user": MARK,
        "host": real["host"][0],
        "port": int(real["port"][0]),
    }
    for name, kind, of_kind, secrets in (
        ("pg", "postgres", PRIVATE, {"password": MARK}),
        ("pg2", "postgres", config, {"password": MARK}),
        (
            "trino",
            "trino",
            {"url": "http://127.0.0.1:1", "user": "ann", "retry_seconds": 0},
            {"token": MARK},
        ),
        ("wrong", "postgres", PRIVATE | {"password": MARK}, {"password": MARK}),
        ("wrong", "duckdb", {}, {"password": MARK}),
        ("wrong", "postgres", {"database": MARK}, {"password": MARK}),
    ):
        await call(
            "POST", SOURCES, {"name": name, "type": kind, "config": of_kind, "credentials": secrets}
        )
    await call("POST", SOURCES, private() | {"credentials": [MARK]})
    for source in (1, 2, 3):
        for method, path in (
            ("GET", ""),
            ("POST", "/test"),
            ("GET", "/browse"),
            ("GET", "/schema?table=x"),
        ):
            await call(method, f"{SOURCES}/{source}{path}")
        await call("PUT", f"{SOURCES}/{source}", {"credentials": {"password": MARK}})
    assert services.sources is not None
    await services.loops[0].pass_()

    async def broken(*_: object) -> None:
        raise OSError(f"could not connect: password={MARK} host=x")

    monkeypatch.setattr("penstock.sources.postgres.source.PostgresSource._within", broken)
    await call("POST", f"{SOURCES}/1/test")
    await call("GET", f"{SOURCES}/1/browse")
    await services.loops[0].pass_()
    await call("GET", SOURCES)
    await call("GET", "/metrics")
    assert {a.status_code for a in answers} >= {200, 201, 422, 500, 503}
    texts = [a.text for a in answers if f'"user":"{MARK}"' not in a.text.replace(" ", "")]
    assert len(texts) > 15
    for text in (*texts, written.getvalue(), caplog.text, repr(services), await _dump(database)):
        assert MARK not in text, text[:2000]
    assert "request_failed" in written.getvalue()


async def _dump(database: str) -> str:
    """Every row of every table, without the configuration that was marked on purpose."""
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("UPDATE penstock.data_source SET config = '{}'")
        names = await connection.fetch(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname = 'penstock'"
        )
        return "\n".join(
            [
                str(row[0])
                for [name] in names
                for row in await connection.fetch(f"SELECT t::text FROM {name} t")
            ]
        )
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("setting", "most", "more"),
    [("memory_limit", "1024MB", "999TB"), ("spill_limit", "10GB", "10001MB"), ("threads", 4, 5)],
)
async def test_a_source_asks_for_no_more_than_the_operator_allows(
    operator: httpx2.AsyncClient, shop: dict[str, Any], setting: str, most: object, more: object
) -> None:
    source = await add(operator, shop | {"config": shop["config"] | {setting: most}})
    body = {"config": shop["config"] | {setting: more}}
    for answer in (
        await operator.put(f"{SOURCES}/{source}", json=body),
        await operator.post(SOURCES, json=shop | {"name": "greedy"} | body),
    ):
        refused = error(answer, 422, "VALIDATION_FAILED")
        assert setting in refused["message"]
        assert "source_" in refused["details"]["hint"]
