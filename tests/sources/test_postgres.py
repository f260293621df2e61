from __future__ import annotations

import asyncio
import datetime as dt
import json
import random
from contextlib import aclosing, asynccontextmanager
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pyarrow as pa
import pytest

from penstock.sources.contract import Limits, Plan, Table
from penstock.sources.errors import SnapshotLost, SourceQueryError, SourceRefused
from penstock.sources.registry import open_source
from tests.sources.conformance import (
    NetworkConformance,
    chunk,
    collect,
    collect_batches,
    collect_chunks,
    freed,
    opened,
    told,
    until,
)
from tests.sources.proxy import Proxy, proxied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.kit.postgres import Cluster
    from penstock.sources.contract import Source

READER = "source_reader"
PASSWORD = "sw0rdf'ish \\ and spaces"

_TYPES = {
    pa.int32(): "int4",
    pa.int64(): "int8",
    pa.float64(): "float8",
    pa.string(): "text",
    pa.bool_(): "bool",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", tz="UTC"): "timestamptz",
    pa.binary(): "bytea",
}


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return _TYPES[kind]


class PostgresSubject:
    kind = "postgres"
    endless = "SELECT 1 AS n FROM (SELECT pg_sleep(600)) AS q"

    def __init__(self, admin: asyncpg.Connection[asyncpg.Record], dsn: str, proxy: Proxy) -> None:
        self.admin = admin
        self.proxy = proxy
        self.dsn = dsn
        where = parse_qs(urlsplit(dsn).query)
        self.config: dict[str, object] = {
            "database": urlsplit(dsn).path.strip("/"),
            "host": where["host"][0],
            "port": int(where["port"][0]),
            "user": READER,
        }
        self.secrets = {"password": PASSWORD}

    async def load(self, name: str, table: pa.Table) -> None:
        columns = ", ".join(f"{quote(f.name)} {sql_type(f.type)}" for f in table.schema)
        await self.admin.execute(f"CREATE TABLE {quote(name)} ({columns})")
        rows = [tuple(row.values()) for row in table.to_pylist()]
        await self.admin.copy_records_to_table(name, records=rows, columns=table.column_names)
        await self.admin.execute(f"GRANT SELECT ON {quote(name)} TO {READER}")

    async def many(self, rows: int) -> str:
        return (
            f"SELECT i, repeat('x', 180) || i AS s, i / 2 AS d FROM generate_series(1, {rows}) AS i"
        )

    async def running(self) -> int:
        count: int = await self.admin.fetchval(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = $1",
            READER,
        )
        return count

    def quote(self, name: str) -> str:
        return quote(name)

    async def through_proxy(self) -> dict[str, object]:
        return {"host": "127.0.0.1", "port": self.proxy.port, "sslmode": "disable"}


@pytest.fixture(scope="module")
async def warehouse(pg: Cluster) -> str:
    """A database of this module, and a role that must show its password."""
    async with connected(pg.dsn("postgres")) as admin:
        secret = PASSWORD.replace("'", "''")
        await admin.execute("SET password_encryption = 'scram-sha-256'")
        await admin.execute(f"CREATE ROLE {READER} LOGIN PASSWORD '{secret}'")
        await admin.execute("CREATE DATABASE warehouse")
    return pg.dsn("warehouse")


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "public"})
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def subject(warehouse: str) -> AsyncIterator[PostgresSubject]:
    """A fresh schema: much cheaper than a fresh database, and these tests are many."""
    where = parse_qs(urlsplit(warehouse).query)
    socket = f"{where['host'][0]}/.s.PGSQL.{where['port'][0]}"
    async with (
        connected(warehouse) as admin,
        proxied(lambda: asyncio.open_unix_connection(socket)) as proxy,
    ):
        await admin.execute(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
            f" GRANT USAGE ON SCHEMA public TO {READER}"
        )
        yield PostgresSubject(admin, warehouse, proxy)


class TestConformance(NetworkConformance):
    @pytest.fixture
    async def subject(self, subject: PostgresSubject) -> PostgresSubject:
        return subject


@pytest.fixture
async def source(subject: PostgresSubject) -> AsyncIterator[Source]:
    async with opened(subject) as source:
        yield source


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("7::int2", pa.int16(), 7),
        ("1.5::float4", pa.float32(), 1.5),
        ("'NaN'::float8", pa.float64(), "nan"),
        ("'ab'::char(4)", pa.string(), "ab  "),
        ("4294967295::oid", pa.int64(), 4294967295),
        ("'12.34'::money", pa.decimal128(38, 9), Decimal("12.340000000")),
        ("sum(1.25::numeric(5, 2))", pa.decimal128(38, 9), Decimal("1.250000000")),
        ("12345::numeric(5)", pa.decimal128(5, 0), Decimal(12345)),
        ("12000::numeric(2, -3)", pa.decimal128(5, 0), Decimal(12000)),
        ("0.00012::numeric(2, 5)", pa.decimal128(5, 5), Decimal("0.00012")),
        ("'-0.5'::numeric(18, 18)", pa.decimal128(18, 18), Decimal("-0.500000000000000000")),
        ("1::numeric(50, 3)", pa.decimal256(50, 3), Decimal("1.000")),
        ("1.234::price", pa.decimal128(10, 3), Decimal("1.234")),
        ("'x'::label", pa.string(), "x"),
        ("'sad'::mood", pa.string(), "sad"),
        ("ARRAY['sad', NULL]::mood[]", pa.list_(pa.string()), ["sad", None]),
        ("ARRAY[1, NULL]::int4[]", pa.list_(pa.int32()), [1, None]),
        ("'{}'::text[]", pa.list_(pa.string()), []),
        (
            "ARRAY[1.5, NULL]::numeric(9, 1)[]",
            pa.list_(pa.decimal128(38, 9)),
            [Decimal("1.500000000"), None],
        ),
        ("NULL::numeric[]", pa.list_(pa.decimal128(38, 9)), None),
        (
            "ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid]",
            pa.list_(pa.string()),
            ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
        ),
        (
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
            pa.string(),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("'{\"a\":  1}'::json", pa.string(), '{"a":  1}'),
        ("'{\"a\":  1}'::jsonb", pa.string(), '{"a": 1}'),
        ("ARRAY['{}'::jsonb]", pa.list_(pa.string()), ["{}"]),
        ("'10.0.0.1/8'::inet", pa.string(), "10.0.0.1/8"),
        ("'1 mon 2 days 03:00'::interval", pa.string(), "P1M2DT3H"),
        ("'3000000:00:00'::interval", pa.string(), "PT3000000H"),
        ("'12:34:56.789'::time", pa.time64("us"), dt.time(12, 34, 56, 789000)),
        ("'12:00+02'::timetz", pa.string(), "12:00:00+02"),
        (
            "'2024-01-01 00:00+02'::timestamptz",
            pa.timestamp("us", "UTC"),
            dt.datetime(2023, 12, 31, 22, tzinfo=dt.UTC),
        ),
        ("'[2024-01-01 00:00+00,)'::tstzrange", pa.string(), '["2024-01-01 00:00:00+00",)'),
        ("'[1,3)'::int4range", pa.string(), "[1,3)"),
        ("B'101'", pa.string(), "101"),
        ("ROW(1, 'a')", pa.string(), "(1,a)"),
        ("'\\x00ff'::bytea", pa.binary(), b"\x00\xff"),
        ("NULL", pa.string(), None),
        ("NULL::numeric(12, 2)", pa.decimal128(12, 2), None),
    ],
)
async def test_postgres_types_leave_it_exactly(
    subject: PostgresSubject, source: Source, expression: str, kind: pa.DataType, value: object
) -> None:
    await make_types(subject)
    table = await collect(source, f"SELECT {expression} AS v")
    assert table.schema.field("v").type == kind
    assert [str(v) if v != v else v for v in table["v"].to_pylist()] == [value]


async def make_types(subject: PostgresSubject) -> None:
    await subject.admin.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN price AS numeric(10, 3);"
        " CREATE DOMAIN label AS text"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "'infinity'::timestamptz",
        "'-infinity'::timestamp",
        "'294270-01-01'::timestamp",
        "'infinity'::date",
        "'-infinity'::date",
        "'24:00'::time",
        "ARRAY['infinity'::date]",
        "'NaN'::numeric(10, 2)",
        "'NaN'::numeric(30, 2)",
        "'NaN'::numeric",
        "'Infinity'::numeric",
        "1::numeric / 3",
        "1e30::numeric",
        "ARRAY[1::numeric / 3]",
        "'{{1,2},{3,4}}'::int4[]",
        "'{{a},{b}}'::text[]",
        "'{{0.0.0.0}}'::inet[]",
        "1::numeric(100, 2)",
    ],
)
async def test_a_value_that_arrow_cannot_mean_is_an_error_that_names_its_column(
    source: Source, expression: str
) -> None:
    with pytest.raises(SourceQueryError, match="the_column"):
        await collect_batches(source, f"SELECT {expression} AS the_column")


async def test_numerics_of_every_precision_come_back_digit_for_digit(
    subject: PostgresSubject, source: Source
) -> None:
    dice = random.Random(20)
    shapes = [(p, dice.randint(0, p)) for p in (*range(1, 40), 60, 76)]
    names = ["id", *(f"n{p}" for p, _ in shapes)]
    rows = [[i, *(random_decimal(dice, p, s) for p, s in shapes)] for i in range(200)]
    columns = ", ".join(f"n{p} numeric({p}, {s})" for p, s in shapes)
    await subject.admin.execute(
        f"CREATE TABLE numerics (id int4, {columns}); GRANT SELECT ON numerics TO {READER}"
    )
    await subject.admin.copy_records_to_table("numerics", records=rows, columns=names)
    table = await collect(source, "SELECT * FROM numerics ORDER BY id")
    assert [list(row.values()) for row in table.to_pylist()] == rows
    assert [(f.type.precision, f.type.scale) for f in table.schema if f.name != "id"] == shapes


def random_decimal(dice: random.Random, precision: int, scale: int) -> Decimal | None:
    if dice.random() < 0.1:
        return None
    digits = dice.choice([0, 1, 10**precision - 1, dice.randrange(10**precision)])
    return Decimal((dice.randint(0, 1), tuple(map(int, str(digits))), -scale))


async def make_accounts(subject: PostgresSubject, rows: int = 20_000) -> None:
    await subject.admin.execute(
        "CREATE TABLE account (id int8 PRIMARY KEY, filler text, balance numeric(12, 2));"
        f"INSERT INTO account SELECT i, repeat('x', 100), 100 FROM generate_series(1, {rows}) AS i;"
        f"ANALYZE account; GRANT SELECT ON account TO {READER}"
    )


def small(chunks: int) -> Limits:
    return Limits(chunk_bytes=50_000, max_chunks=chunks)


async def test_chunks_of_a_table_are_page_ranges_that_together_read_each_page_once(
    subject: PostgresSubject, source: Source
) -> None:
    await make_accounts(subject)
    plan = await source.plan(
        "SELECT id, balance FROM account AS a WHERE a.id > 10 OR balance = 1", small(6)
    )
    assert plan.hold is not None
    await plan.hold.close()
    assert [part.extra["way"] for part in plan.chunks] == ["pages"] * 6
    assert sum(part.estimated_rows or 0 for part in plan.chunks) == pytest.approx(20_000, abs=6)
    pages = await subject.admin.fetchval("SELECT pg_relation_size('account') / 8192")
    read = [await buffers(subject, part.sql) for part in plan.chunks]
    assert sum(read) == pages


async def buffers(subject: PostgresSubject, sql: str) -> int:
    """How many pages a query touches, and that it gets at them by their numbers."""
    [[text]] = await subject.admin.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
    top = json.loads(text)[0]["Plan"]
    assert top["Node Type"] == "Tid Range Scan"
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


async def test_chunks_under_writers_that_move_money_sum_exactly(
    subject: PostgresSubject, source: Source
) -> None:
    await make_accounts(subject)
    database = subject.dsn
    stop = asyncio.Event()
    writers = [asyncio.create_task(move_money(database, seed, stop)) for seed in range(2)]
    try:
        await until(lambda: moved(subject))
        plan = await source.plan("SELECT id, balance FROM account", small(8))
        assert len(plan.chunks) == 8
        table = await collect_chunks(source, plan)
    finally:
        stop.set()
        transfers = sum(await asyncio.gather(*writers))
    assert transfers > 0
    assert sorted(table["id"].to_pylist()) == list(range(1, 20_001))
    assert sum(table["balance"].to_pylist()) == Decimal(20_000 * 100)
    assert len(set(table["balance"].to_pylist())) > 1


async def move_money(dsn: str, seed: int, stop: asyncio.Event) -> int:
    dice, transfers = random.Random(seed), 0
    async with connected(dsn) as connection:
        while not stop.is_set():
            one, other = sorted(dice.sample(range(1, 20_001), 2))
            await connection.execute(
                f"UPDATE account SET balance = balance + CASE id WHEN {one} THEN -1 ELSE 1 END"
                f" WHERE id IN ({one}, {other})"
            )
            transfers += 1
    return transfers


async def moved(subject: PostgresSubject) -> bool:
    return bool(
        await subject.admin.fetchval("SELECT count(*) > 50 FROM account WHERE balance <> 100")
    )


async def test_a_hold_that_is_gone_is_not_alive_and_its_chunks_say_that_the_moment_is_lost(
    subject: PostgresSubject, source: Source
) -> None:
    await make_accounts(subject)
    plan = await source.plan("SELECT id FROM account", small(3))
    assert plan.hold is not None
    assert await plan.hold.alive()
    assert await collect_batches_of(source, plan) > 0
    await subject.admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'penstock plan'"
    )
    assert not await plan.hold.alive()
    with pytest.raises(SnapshotLost):
        await collect_batches_of(source, plan)
    await plan.hold.close()
    await freed(subject)


async def collect_batches_of(source: Source, plan: Plan) -> int:
    async with aclosing(source.stream(plan.chunks[0])) as batches:
        return sum([batch.num_rows async for batch in batches])


async def make_partitions(subject: PostgresSubject, *, grant_leaves: bool) -> None:
    """Three partitions, one of them with its columns in another order and one empty."""
    await subject.admin.execute(
        "CREATE TABLE event (id int8, name text, PRIMARY KEY (id)) PARTITION BY RANGE (id);"
        "CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (0) TO (5000);"
        "CREATE TABLE event_2 (name text, id int8 NOT NULL);"
        "ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES FROM (5000) TO (20000);"
        "CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (20000) TO (30000);"
        "INSERT INTO event (id, name)"
        " SELECT i, repeat('x', 100) || i FROM generate_series(0, 19999) AS i;"
        f"ANALYZE event; GRANT SELECT ON event TO {READER}"
    )
    if grant_leaves:
        await subject.admin.execute(f"GRANT SELECT ON event_1, event_2, event_3 TO {READER}")


@pytest.mark.parametrize(("grant_leaves", "way"), [(True, "partitions"), (False, "ranges")])
async def test_a_partitioned_table_is_cut_by_its_partitions_pages_or_else_by_its_key(
    subject: PostgresSubject, source: Source, grant_leaves: bool, way: str
) -> None:
    await make_partitions(subject, grant_leaves=grant_leaves)
    plan = await source.plan("SELECT * FROM event WHERE name <> 'none'", small(7))
    assert {part.extra["way"] for part in plan.chunks} == {way}
    assert 4 <= len(plan.chunks) <= 7
    table = await collect_chunks(source, plan)
    assert table.column_names == ["id", "name"]
    assert sorted(table["id"].to_pylist()) == list(range(20_000))
    assert table["name"].to_pylist() == ["x" * 100 + str(i) for i in table["id"].to_pylist()]


@pytest.mark.parametrize("analyzed", [True, False])
async def test_a_view_is_cut_at_quantiles_of_an_indexed_column_it_shows(
    subject: PostgresSubject, source: Source, analyzed: bool
) -> None:
    await make_accounts(subject)
    await subject.admin.execute(
        "CREATE VIEW rich AS SELECT a.id, b.filler"
        " FROM account a JOIN account b USING (id) WHERE a.balance > 1;"
        f"GRANT SELECT ON rich TO {READER}"
    )
    if not analyzed:
        await subject.admin.execute("DELETE FROM pg_statistic WHERE starelid = 'account'::regclass")
    plan = await source.plan("SELECT * FROM rich", small(5))
    assert [part.extra["way"] for part in plan.chunks] == ["ranges"] * 5
    sizes = [await collect_batches_at(source, plan, number) for number in range(5)]
    assert sum(sizes) == 20_000
    assert min(sizes) > 1000
    assert plan.hold is not None
    await plan.hold.close()


async def collect_batches_at(source: Source, plan: Plan, number: int) -> int:
    return sum([batch.num_rows async for batch in source.stream(plan.chunks[number])])


@pytest.mark.parametrize(
    "body", ["SELECT * FROM account LIMIT 9000", "SELECT DISTINCT ON (filler) * FROM account"]
)
async def test_a_view_that_chooses_among_its_rows_is_not_cut(
    subject: PostgresSubject, source: Source, body: str
) -> None:
    await make_accounts(subject)
    await subject.admin.execute(f"CREATE VIEW chosen AS {body}; GRANT SELECT ON chosen TO {READER}")
    plan = await source.plan("SELECT * FROM chosen", Limits(chunk_bytes=100))
    assert [part.extra["way"] for part in plan.chunks] == ["whole"]


async def test_a_table_with_children_is_cut_with_them(
    subject: PostgresSubject, source: Source
) -> None:
    await make_accounts(subject)
    await subject.admin.execute(
        "CREATE TABLE young () INHERITS (account);"
        "INSERT INTO young SELECT i, repeat('y', 100), 1 FROM generate_series(20001, 50000) AS i"
    )
    plan = await source.plan("SELECT id FROM account", small(4))
    assert [part.extra["way"] for part in plan.chunks] == ["pages"] * 4
    assert sorted((await collect_chunks(source, plan))["id"].to_pylist()) == list(range(1, 50_001))


async def test_nulls_in_the_key_of_a_view_are_read_once(
    subject: PostgresSubject, source: Source
) -> None:
    await make_accounts(subject)
    await subject.admin.execute(
        "CREATE TABLE other (id int8, filler text);"
        "INSERT INTO other SELECT NULL, repeat('y', 100) FROM generate_series(1, 500);"
        "CREATE VIEW loose AS"
        " SELECT id, filler FROM account UNION ALL SELECT id, filler FROM other;"
        f"GRANT SELECT ON loose TO {READER}"
    )
    table = await collect_chunks(source, await source.plan("SELECT id FROM loose", small(4)))
    assert table["id"].null_count == 500
    assert table.num_rows == 20_500


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM account",
        "SELECT own_sum(balance) AS n FROM account",
        "SELECT id FROM account ORDER BY id",
        "SELECT id FROM account LIMIT 5",
        "SELECT a.id FROM account AS a JOIN account AS b USING (id)",
        "SELECT id FROM account TABLESAMPLE SYSTEM (50)",
    ],
)
async def test_what_cannot_be_cut_is_one_chunk_without_a_snapshot(
    subject: PostgresSubject, source: Source, sql: str
) -> None:
    await make_accounts(subject)
    await subject.admin.execute(
        "CREATE AGGREGATE own_sum (numeric) (sfunc = numeric_add, stype = numeric, initcond = '0')"
    )
    plan = await source.plan(sql, small(8))
    assert [(part.sql, part.snapshot, part.extra["way"]) for part in plan.chunks] == [
        (sql, None, "whole")
    ]
    assert plan.hold is None
    await freed(subject)


async def test_planning_counts_no_rows(subject: PostgresSubject, source: Source) -> None:
    await make_accounts(subject)
    before = await subject.admin.fetchval(
        "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'account'"
    )
    plan = await source.plan("SELECT id FROM account", small(8))
    assert plan.hold is not None
    await plan.hold.close()
    await subject.admin.execute("SELECT pg_stat_force_next_flush()")
    assert before == await subject.admin.fetchval(
        "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'account'"
    )


async def test_the_server_sees_the_job_and_its_attempt(
    subject: PostgresSubject, source: Source
) -> None:
    task = asyncio.create_task(
        anext(source.stream(chunk(subject.endless), trace="job 7 attempt 2 */ DROP TABLE x"))
    )
    query = (
        "SELECT application_name, query FROM pg_stat_activity"
        " WHERE query LIKE 'COPY%pg_sleep(600)%' AND usename = $1"
    )

    async def seen() -> bool:
        return bool(await subject.admin.fetch(query, READER))

    await until(seen)
    [(name, text)] = await subject.admin.fetch(query, READER)
    assert name.startswith("penstock job 7 attempt 2")
    assert "/* penstock job 7 attempt 2  DROP TABLE x */" in text
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("changes", [{"database": "no_such_database"}, {"user": "no_such_role"}])
async def test_an_unknown_database_or_role_is_refused(
    subject: PostgresSubject, changes: dict[str, object]
) -> None:
    with pytest.raises(SourceRefused) as refused:
        await open_source("postgres", {**subject.config, **changes}, subject.secrets).test()
    assert PASSWORD not in told(refused.value)


async def test_a_table_that_may_not_be_read_is_refused(
    subject: PostgresSubject, source: Source
) -> None:
    await subject.admin.execute("CREATE TABLE private (id int8)")
    with pytest.raises(SourceRefused, match="private"):
        await collect_batches(source, "SELECT * FROM private")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH gone AS (DELETE FROM account RETURNING id) SELECT id FROM gone",
        "DELETE FROM account RETURNING id",
        "SELECT id FROM account) AS q; DELETE FROM account; SELECT * FROM (SELECT id FROM account",
        "SELECT nextval('counter') AS n",
        "COPY account TO '/tmp/stolen'",
    ],
)
async def test_a_query_that_writes_is_refused(
    subject: PostgresSubject, source: Source, sql: str
) -> None:
    await make_accounts(subject, rows=10)
    await subject.admin.execute(
        f"CREATE SEQUENCE counter; GRANT ALL ON account, counter TO {READER}"
    )
    with pytest.raises(SourceQueryError):
        await collect_batches(source, sql)
    assert await subject.admin.fetchval("SELECT count(*) FROM account") == 10


async def test_an_error_in_the_middle_of_a_stream_keeps_its_meaning(source: Source) -> None:
    with pytest.raises(SourceQueryError, match="division by zero") as error:
        await collect_batches(
            source, "SELECT 1 / (400000 - i) AS n FROM generate_series(1, 1000000) AS i"
        )
    assert error.value.details["sqlstate"] == "22012"


async def test_the_catalog_knows_tables_views_columns_and_keys(
    subject: PostgresSubject, source: Source
) -> None:
    await subject.admin.execute(
        "CREATE TABLE person (id int8 PRIMARY KEY, name varchar(20) NOT NULL DEFAULT 'nobody');"
        "CREATE TABLE pet (id int4 PRIMARY KEY, owner int8 REFERENCES person, tags text[]);"
        "CREATE VIEW elder AS SELECT * FROM person; CREATE TABLE secret (id int8);"
        f"GRANT SELECT ON person, pet, elder TO {READER}"
    )
    database = str(subject.config["database"])
    person = Table(catalog=database, schema="public", name="person")
    assert await source.catalog.tables() == [
        Table(catalog=database, schema="public", name="elder", kind="view"),
        person,
        Table(catalog=database, schema="public", name="pet"),
    ]
    columns = await source.catalog.columns(person)
    assert [(c.name, c.data_type, c.nullable, c.position, c.default) for c in columns] == [
        ("id", "bigint", False, 1, None),
        ("name", "character varying(20)", False, 2, "'nobody'::character varying"),
    ]
    keys = await source.catalog.keys(database, "public")
    assert [
        (k.table, k.columns, k.references, k.referenced_columns)
        for k in keys
        if k.table != "secret"
    ] == [
        ("person", ("id",), None, ()),
        ("pet", ("id",), None, ()),
        ("pet", ("owner",), "person", ("id",)),
    ]
