from __future__ import annotations

import asyncio
import datetime as dt
import random
import re
import struct
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.sources.contract import Limits, Table
from penstock.sources.errors import SourceError, SourceQueryError, SourceRefused, SourceUnavailable
from penstock.sources.registry import open_source
from tests.sources import mariadb
from tests.sources.conformance import (
    NetworkConformance,
    chunk,
    collect,
    collect_batches,
    opened,
    told,
    until,
)
from tests.sources.proxy import Proxy, proxied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from penstock.sources.contract import Source

READER = "source_reader"
PASSWORD = "sw0rdf'ish \\ and spaces"
DATABASE = "warehouse"

_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "longtext",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "datetime(6)",
    pa.timestamp("us", tz="UTC"): "timestamp(6) null",
    pa.binary(): "longblob",
}


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return _TYPES[kind]


class MySQLSubject:
    kind = "mysql"
    endless = "SELECT sleep(600) AS n FROM dual"

    def __init__(self, server: mariadb.Server, proxy: Proxy) -> None:
        self.proxy = proxy
        self._admin = server.admin(DATABASE)
        self.config: dict[str, object] = {
            "database": DATABASE,
            "host": "127.0.0.1",
            "port": server.port,
            "user": READER,
        }
        self.secrets = {"password": PASSWORD}

    def execute(
        self, sql: str, rows: list[tuple[object, ...]] | None = None
    ) -> tuple[tuple[object, ...], ...]:
        with self._admin.cursor() as cursor:
            if rows is None:
                cursor.execute(sql)
                return tuple(cursor.fetchall())
            cursor.executemany(sql, rows)
            return ()

    def close(self) -> None:
        self._admin.close()

    async def load(self, name: str, table: pa.Table) -> None:
        columns = ", ".join(f"{quote(f.name)} {sql_type(f.type)}" for f in table.schema)
        self.execute(f"CREATE TABLE {quote(name)} ({columns}) ROW_FORMAT = DYNAMIC")
        places = ", ".join(["%s"] * len(table.schema))
        self.execute(
            f"INSERT INTO {quote(name)} VALUES ({places})",
            [tuple(row.values()) for row in table.to_pylist()],
        )

    async def many(self, rows: int) -> str:
        return (
            "SELECT seq AS i, concat(repeat('x', 180), seq) AS s, seq / 2 AS d"
            f" FROM seq_1_to_{rows}"
        )

    async def running(self) -> int:
        [(count,)] = self.execute(
            f"SELECT count(*) FROM information_schema.processlist WHERE user = '{READER}'"
        )
        assert isinstance(count, int)
        return count

    def quote(self, name: str) -> str:
        return quote(name)

    async def through_proxy(self) -> dict[str, object]:
        return {"port": self.proxy.port}


@pytest.fixture(scope="module")
def server(short_dir: Path, unused_tcp_port_factory: object) -> Iterator[mariadb.Server]:
    assert callable(unused_tcp_port_factory)
    with mariadb.running(short_dir / "mariadb", unused_tcp_port_factory()) as server:
        with server.admin() as admin, admin.cursor() as cursor:
            secret = re.sub(r"(['\\])", r"\\\1", PASSWORD)
            cursor.execute(f"CREATE USER {READER}@'%' IDENTIFIED BY '{secret}'")
            cursor.execute(f"GRANT SELECT, CREATE, DROP, DELETE ON {DATABASE}.* TO {READER}@'%'")
            cursor.execute(f"GRANT FILE ON *.* TO {READER}@'%'")
        yield server


@pytest.fixture
async def subject(server: mariadb.Server) -> AsyncIterator[MySQLSubject]:
    with server.admin() as admin, admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    async with proxied(lambda: asyncio.open_connection("127.0.0.1", server.port)) as proxy:
        subject = MySQLSubject(server, proxy)
        yield subject
        subject.close()


class TestConformance(NetworkConformance):
    @pytest.fixture
    async def subject(self, subject: MySQLSubject) -> MySQLSubject:
        return subject


@pytest.fixture
async def source(subject: MySQLSubject) -> AsyncIterator[Source]:
    async with opened(subject) as source:
        yield source


@pytest.mark.parametrize(
    ("column", "literal", "kind", "value"),
    [
        ("tinyint", "-128", pa.int8(), -128),
        ("tinyint(1)", "1", pa.bool_(), True),
        ("tinyint unsigned", "255", pa.uint8(), 255),
        ("smallint unsigned", "65535", pa.uint16(), 65535),
        ("mediumint", "-8388608", pa.int32(), -8388608),
        ("int unsigned", "4294967295", pa.uint32(), 4294967295),
        ("bigint unsigned", "18446744073709551615", pa.uint64(), 18446744073709551615),
        ("int(8) zerofill", "42", pa.uint32(), 42),
        (
            "decimal(18, 0)",
            "-999999999999999999",
            pa.decimal128(18, 0),
            Decimal(-999999999999999999),
        ),
        ("decimal(5, 1) unsigned", "9999.9", pa.decimal128(5, 1), Decimal("9999.9")),
        (
            "decimal(65, 30)",
            "1.000000000000000000000000000001",
            pa.decimal256(65, 30),
            Decimal("1.000000000000000000000000000001"),
        ),
        ("float", "16777217", pa.float32(), 16777216.0),
        ("float", "0.1", pa.float32(), struct.unpack("f", struct.pack("f", 0.1))[0]),
        ("double", "0.1", pa.float64(), 0.1),
        ("bit(1)", "b'1'", pa.bool_(), True),
        ("bit(13)", "b'1000000000001'", pa.uint64(), 4097),
        ("bit(64)", "0xFFFFFFFFFFFFFFFF", pa.uint64(), 2**64 - 1),
        ("char(4)", "'ab'", pa.string(), "ab"),
        ("varchar(20) character set latin1", "'Zoë'", pa.string(), "Zoë"),
        ("varchar(9) character set utf16", "'\U0001f980'", pa.string(), "\U0001f980"),
        ("text", "''", pa.string(), ""),
        ("text", "'a\\nb,\"c\"\\r'", pa.string(), 'a\nb,"c"\r'),
        ("json", "'{\"a\": [1, null]}'", pa.string(), '{"a": [1, null]}'),
        ("enum('sad', 'ok')", "'ok'", pa.string(), "ok"),
        ("set('x', 'y')", "'x,y'", pa.string(), "x,y"),
        ("binary(4)", "x'00ff'", pa.binary(), b"\x00\xff\x00\x00"),
        ("varbinary(4)", "''", pa.binary(), b""),
        ("date", "'9999-12-31'", pa.date32(), dt.date(9999, 12, 31)),
        ("time(6)", "'23:59:59.999999'", pa.time64("us"), dt.time(23, 59, 59, 999999)),
        ("datetime", "'1000-01-01 00:00:00'", pa.timestamp("us"), dt.datetime(1000, 1, 1)),  # noqa: DTZ001
        (
            "timestamp(3) null",
            "'2024-03-31 01:30:00.125'",
            pa.timestamp("us", "UTC"),
            dt.datetime(2024, 3, 31, 1, 30, 0, 125000, dt.UTC),
        ),
        ("year", "2024", pa.int16(), 2024),
        ("point", "point(1, 2)", pa.binary(), bytes(4) + struct.pack("<BIdd", 1, 1, 1.0, 2.0)),
    ],
)
async def test_mysql_types_leave_it_exactly(
    subject: MySQLSubject,
    source: Source,
    column: str,
    literal: str,
    kind: pa.DataType,
    value: object,
) -> None:
    subject.execute(f"CREATE TABLE t (v {column})")
    subject.execute(f"INSERT INTO t VALUES (NULL), ({literal}), (NULL)")
    table = await collect(source, "SELECT * FROM t")
    assert table.schema.field("v").type == kind
    assert table["v"].to_pylist() == [None, value, None]


async def test_expressions_have_the_types_that_the_server_gives_them(source: Source) -> None:
    table = await collect(
        source,
        "SELECT NULL AS n, 1 AS i, 1.50 AS d, count(*) AS c, sum(1) AS s, 'x' AS t FROM dual",
    )
    assert table.schema.types == [
        pa.string(),
        pa.int32(),
        pa.decimal128(3, 2),
        pa.int64(),
        table.schema.field("s").type,
        pa.string(),
    ]
    assert table.to_pylist() == [
        {"n": None, "i": 1, "d": Decimal("1.50"), "c": 1, "s": Decimal(1), "t": "x"}
    ]


@pytest.mark.parametrize(
    ("column", "literal"),
    [
        ("date", "'0000-00-00'"),
        ("date", "'2024-00-00'"),
        ("datetime", "'0000-00-00 00:00:00'"),
        ("timestamp null", "'0000-00-00 00:00:00'"),
        ("time", "'838:59:59'"),
        ("time", "'-01:00:00'"),
        ("tinyint(1)", "2"),
    ],
)
async def test_a_value_that_arrow_cannot_mean_is_an_error_that_names_its_column(
    subject: MySQLSubject, source: Source, column: str, literal: str
) -> None:
    subject.execute("SET sql_mode = ''")
    subject.execute(f"CREATE TABLE t (id int, the_column {column})")
    subject.execute(f"INSERT INTO t VALUES (1, {literal})")
    with pytest.raises(SourceQueryError, match="the_column"):
        await collect_batches(source, "SELECT * FROM t")


async def test_a_tinyint_of_one_digit_can_be_a_number(subject: MySQLSubject) -> None:
    subject.execute("CREATE TABLE t (v tinyint(1))")
    subject.execute("INSERT INTO t VALUES (-7), (1)")
    async with opened(subject, tinyint1_is_bool=False) as source:
        assert (await collect(source, "SELECT v FROM t"))["v"].to_pylist() == [-7, 1]


async def test_doubles_and_decimals_come_back_digit_for_digit(
    subject: MySQLSubject, source: Source
) -> None:
    dice = random.Random(7)
    doubles = [struct.unpack("d", struct.pack("Q", dice.getrandbits(64)))[0] for _ in range(2000)]
    rows = [
        (i, number, Decimal(dice.randrange(-(10**30), 10**30)).scaleb(-10))
        for i, number in enumerate(doubles)
        if abs(number) < 1e308
    ]
    subject.execute("CREATE TABLE t (id int, f double, d decimal(30, 10))")
    subject.execute("INSERT INTO t VALUES (%s, %s, %s)", [tuple(row) for row in rows])
    table = (await collect(source, "SELECT * FROM t")).sort_by("id")
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


async def test_rows_of_a_single_null_are_not_lost(subject: MySQLSubject, source: Source) -> None:
    subject.execute("CREATE TABLE t (v text)")
    subject.execute("INSERT INTO t VALUES (NULL), (''), (NULL)")
    assert (await collect(source, "SELECT v FROM t"))["v"].to_pylist() == [None, "", None]


async def test_a_row_that_the_server_cannot_send_is_an_error_and_not_a_null(
    subject: MySQLSubject, source: Source
) -> None:
    with pytest.raises(SourceError, match="max_allowed_packet"):
        await collect_batches(
            source, "SELECT repeat('x', 9000000) AS a, repeat('y', 9000000) AS b FROM dual"
        )


async def test_a_plan_is_one_chunk_that_sees_one_moment(
    subject: MySQLSubject, source: Source
) -> None:
    subject.execute("CREATE TABLE t (id int)")
    plan = await source.plan("SELECT id FROM t", Limits(chunk_bytes=1))
    assert [(part.number, part.sql, part.snapshot) for part in plan.chunks] == [
        (0, "SELECT id FROM t", None)
    ]
    assert plan.hold is None


async def test_the_server_sees_the_job_and_its_attempt(
    subject: MySQLSubject, source: Source
) -> None:
    task = asyncio.create_task(
        anext(source.stream(chunk(subject.endless), trace="job 7 attempt 2 */ DROP"))
    )
    query = (
        "SELECT info FROM information_schema.processlist"
        f" WHERE user = '{READER}' AND command = 'Query'"
    )

    async def seen() -> bool:
        return any("sleep(600)" in str(text) for (text,) in subject.execute(query))

    await until(seen)
    [(text,)] = subject.execute(query)
    assert "/* penstock job 7 attempt 2  DROP */" in str(text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_query_that_is_killed_at_the_server_is_unavailable(
    subject: MySQLSubject, source: Source
) -> None:
    task = asyncio.create_task(
        collect_batches(source, "SELECT seq AS n, sleep(0.01) AS s FROM seq_1_to_100000")
    )
    find = (
        "SELECT id FROM information_schema.processlist"
        f" WHERE user = '{READER}' AND info LIKE '%sleep(0.01)%'"
    )

    ids: list[int] = []

    async def seen() -> bool:
        """Its preparation is listed too, for a moment: what was seen once is what is killed."""
        ids[:] = [number for (number,) in subject.execute(f"{find} AND state = 'User sleep'")]
        return bool(ids)

    await until(seen)
    subject.execute(f"KILL {ids[0]}")
    with pytest.raises(SourceUnavailable):
        await task


@pytest.mark.parametrize("changes", [{"database": "no_such_database"}, {"user": "no_such_user"}])
async def test_an_unknown_database_or_user_is_refused(
    subject: MySQLSubject, changes: dict[str, object]
) -> None:
    with pytest.raises(SourceRefused) as refused:
        await open_source("mysql", {**subject.config, **changes}, subject.secrets).test()
    assert PASSWORD not in told(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a INTO OUTFILE '/tmp/stolen'",
        "SELECT 1 AS a) AS q INTO OUTFILE '/tmp/stolen' -- ",
        "SELECT 1 AS a) AS q INTO OUTFILE '/tmp/stolen' /*",
        "SELECT id FROM t) AS q; DELETE FROM t; SELECT * FROM (SELECT 1",
        "SHOW TABLES",
        "DELETE FROM t RETURNING id",
        "SELECT id FROM t FOR UPDATE",
    ],
)
async def test_a_query_that_is_more_than_reading_is_refused(
    subject: MySQLSubject, source: Source, sql: str
) -> None:
    subject.execute("CREATE TABLE t (id int)")
    subject.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(SourceQueryError):
        await collect_batches(source, sql)
    assert subject.execute("SELECT count(*) FROM t") == ((1,),)


async def test_the_catalog_knows_tables_views_columns_and_keys(
    subject: MySQLSubject, source: Source
) -> None:
    subject.execute(
        "CREATE TABLE person (id bigint PRIMARY KEY, name varchar(20) NOT NULL DEFAULT 'nobody')"
    )
    subject.execute(
        "CREATE TABLE pet (id int, owner bigint, PRIMARY KEY (id, owner),"
        " FOREIGN KEY (owner) REFERENCES person (id))"
    )
    subject.execute("CREATE VIEW elder AS SELECT * FROM person")
    person = Table(catalog="def", schema=DATABASE, name="person")
    assert await source.catalog.tables() == [
        Table(catalog="def", schema=DATABASE, name="elder", kind="view"),
        person,
        Table(catalog="def", schema=DATABASE, name="pet"),
    ]
    columns = await source.catalog.columns(person)
    assert [(c.name, c.data_type, c.nullable, c.position) for c in columns] == [
        ("id", "bigint(20)", False, 1),
        ("name", "varchar(20)", False, 2),
    ]
    keys = await source.catalog.keys("def", DATABASE)
    assert [(k.table, k.columns, k.references, k.referenced_columns) for k in keys] == [
        ("person", ("id",), None, ()),
        ("pet", ("id", "owner"), None, ()),
        ("pet", ("owner",), "person", ("id",)),
    ]
