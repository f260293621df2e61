from __future__ import annotations

import asyncio
import datetime as dt
import sys
import threading
from asyncio.subprocess import PIPE
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.kit.errors import PenstockError
from penstock.sources.contract import Table
from penstock.sources.errors import SourceError, SourceQueryError, SourceUnavailable
from penstock.sources.registry import open_source
from tests.sources.conformance import Conformance, collect, collect_batches

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.sources.contract import Source


class DuckDBSubject:
    kind = "duckdb"
    endless = "SELECT sum(a.range * b.range) AS n FROM range(10000000) a, range(10000000) b"

    def __init__(self, folder: Path) -> None:
        self.directory = folder
        self.config: dict[str, object] = {"directory": str(folder)}
        self.secrets: dict[str, str] = {}

    async def load(self, name: str, table: pa.Table) -> None:
        pq.write_table(table, self.directory / f"{name}.parquet")

    async def many(self, rows: int) -> str:
        return f"SELECT i, repeat('x', 180) || i AS s, i / 2 AS d FROM range({rows}) t(i)"

    async def running(self) -> int:
        """An embedded engine works while the thread that asked it waits."""
        return sum(thread.name.startswith("source-duckdb") for thread in threading.enumerate())

    def quote(self, name: str) -> str:
        return f'"{name}"'


class TestConformance(Conformance):
    @pytest.fixture
    async def subject(self, tmp_path: Path) -> DuckDBSubject:
        return DuckDBSubject(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    return files


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return make_shop(tmp_path / "shop.duckdb")


def make_shop(path: Path) -> Path:
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL DEFAULT 'nobody')"
        )
        database.execute(
            "CREATE TABLE pet (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES person (id))"
        )
        database.execute("CREATE VIEW elder AS SELECT * FROM person WHERE id < 10")
        database.execute("INSERT INTO person VALUES (1, 'Ada'), (20, 'Bob')")
    return path


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def source_of(**config: object) -> Source:
    return open_source("duckdb", config, {})


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("sum(1::BIGINT)", pa.decimal128(38, 0), Decimal(1)),
        ("7::UBIGINT", pa.uint64(), 7),
        ("'b'::ENUM('a', 'b')", pa.string(), "b"),
        (
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID",
            pa.string(),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("INTERVAL 1 MONTH + INTERVAL 2 DAY", pa.string(), "1 month 2 days"),
        ("'12:30:00+02'::TIMETZ", pa.string(), "12:30:00+02"),
        ("TIME '12:30:00.000001'", pa.time64("us"), dt.time(12, 30, 0, 1)),
        (
            "TIMESTAMPTZ '2024-01-01 00:00:00+02'",
            pa.timestamp("us", "UTC"),
            dt.datetime(2023, 12, 31, 22, tzinfo=dt.UTC),
        ),
        ("'101'::BIT", pa.string(), "101"),
        ("'{\"a\": 1}'::JSON", pa.string(), '{"a": 1}'),
        ("NULL", pa.string(), None),
        ("[1, NULL]", pa.list_(pa.field("l", pa.int32())), [1, None]),
        ("[INTERVAL 1 DAY]", pa.string(), "[1 day]"),
        ("{'x': 1}", pa.struct([("x", pa.int32())]), {"x": 1}),
    ],
)
async def test_duckdb_types_leave_it_exactly(
    expression: str, kind: pa.DataType, value: object
) -> None:
    async with source_of() as source:
        table = await collect(source, f"SELECT {expression} AS v")
    assert table.schema.field("v").type == kind
    assert table["v"].to_pylist() == [value]


@pytest.mark.parametrize(
    "expression",
    [
        "'infinity'::TIMESTAMP",
        "'-infinity'::TIMESTAMPTZ",
        "'infinity'::DATE",
        "'24:00:00'::TIME",
        "['infinity'::DATE]",
        "340282366920938463463374607431768211455::UHUGEINT",
        "170141183460469231731687303715884105727::HUGEINT",
    ],
)
async def test_a_value_that_arrow_cannot_mean_is_an_error_and_not_another_value(
    expression: str,
) -> None:
    async with source_of() as source:
        with pytest.raises(SourceQueryError):
            await collect_batches(source, f"SELECT {expression} AS v")


async def test_the_files_of_the_directory_are_tables(folder: Path) -> None:
    make_shop(folder / "shop.duckdb")
    pq.write_table(pa.table({"id": [1]}), folder / "one.parquet")
    (folder / "two.csv").write_text("id;name\n2;b\n")
    (folder / "broken.parquet").write_text("not a Parquet file")
    async with source_of(directory=str(folder)) as source:
        joined = await collect(
            source,
            "SELECT o.id AS a, t.id AS b, p.name FROM one o, two t, shop.person p WHERE p.id = 1",
        )
        names = {table.name for table in await source.catalog.tables()}
    assert joined.to_pylist() == [{"a": 1, "b": 2, "name": "Ada"}]
    assert {"one", "two", "person"} <= names
    assert "broken" not in names


async def test_a_link_out_of_the_directory_is_not_followed(folder: Path, warehouse: Path) -> None:
    (folder / "linked.duckdb").symlink_to(warehouse)
    async with source_of(directory=str(folder)) as source:
        assert await source.catalog.tables() == []
        with pytest.raises(SourceQueryError):
            await collect_batches(source, "SELECT * FROM linked.person")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('{folder}/../secret.csv')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM read_csv('https://example.com/x.csv')",
        "SELECT getenv('HOME')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "WITH x AS (COPY (SELECT 1) TO '{folder}/out.csv') SELECT * FROM x",
        "SELECT * FROM (WITH x AS (COPY (SELECT 1) TO '{folder}/out.csv') SELECT * FROM x)",
        "SELECT 1) AS q; COPY (SELECT 1) TO '{folder}/out.csv'; SELECT * FROM (SELECT 1",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}'",
        "ATTACH '{folder}/out.duckdb' AS fresh",
        "WITH x AS (INSERT INTO person VALUES (3, 'Eve') RETURNING *) SELECT * FROM x",
        "INSTALL httpfs",
        "LOAD '/tmp/evil.so'",
        "SET enable_external_access = true",
        "SET search_path = 'memory'",
        "PRAGMA threads = 9",
        "CREATE SECRET s (TYPE s3)",
        "SELECT * FROM smuggled",
    ],
)
async def test_a_hostile_query_reaches_nothing(folder: Path, warehouse: Path, sql: str) -> None:
    (folder.parent / "secret.csv").write_text("a\nsecret\n")
    smuggled = pa.table({"a": ["a Python variable"]})
    async with source_of(directory=str(folder), database=str(warehouse)) as source:
        with pytest.raises(PenstockError):
            await collect_batches(source, sql.format(folder=folder))
        with suppress(PenstockError):
            await source.schema(sql.format(folder=folder))
        assert await collect_batches(source, "SELECT * FROM person") == 2
    assert files_in(folder) == []
    assert smuggled.num_rows == 1


async def test_the_catalog_knows_tables_views_columns_and_keys(warehouse: Path) -> None:
    async with source_of(database=str(warehouse)) as source:
        tables = await source.catalog.tables()
        person = Table(catalog="shop", schema="main", name="person")
        assert tables == [
            Table(catalog="shop", schema="main", name="elder", kind="view"),
            person,
            Table(catalog="shop", schema="main", name="pet"),
        ]
        columns = await source.catalog.columns(person)
        assert [(c.name, c.data_type, c.nullable, c.position) for c in columns] == [
            ("id", "INTEGER", False, 1),
            ("name", "VARCHAR", False, 2),
        ]
        assert columns[1].default == "'nobody'"
        keys = await source.catalog.keys("shop", "main")
        assert [(k.table, k.columns, k.references, k.referenced_columns) for k in keys] == [
            ("person", ("id",), None, ()),
            ("pet", ("id",), None, ()),
            ("pet", ("owner",), "person", ("id",)),
        ]


async def test_two_sources_read_one_file_at_once(warehouse: Path) -> None:
    async with (
        source_of(database=str(warehouse)) as one,
        source_of(database=str(warehouse)) as other,
    ):
        assert await collect(one, "SELECT * FROM person") == await collect(
            other, "SELECT * FROM shop.person"
        )


async def test_a_file_that_is_being_written_elsewhere_is_unavailable(warehouse: Path) -> None:
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", hold, str(warehouse), stdin=PIPE, stdout=PIPE
    )
    assert writer.stdout is not None
    await writer.stdout.readline()
    with pytest.raises(SourceUnavailable):
        await source_of(database=str(warehouse)).__aenter__()
    await writer.communicate(b"\n")


@pytest.mark.parametrize(
    "config", [{"database": "/nowhere/at.duckdb"}, {"directory": "/nowhere/at"}]
)
async def test_what_is_not_there_is_said_at_opening(config: dict[str, object]) -> None:
    with pytest.raises(SourceError, match=r"/nowhere/at"):
        await source_of(**config).__aenter__()


async def test_a_query_too_big_for_its_memory_says_so() -> None:
    async with source_of(memory_limit="20MB") as source:
        with pytest.raises(SourceError, match="memory"):
            await collect_batches(
                source,
                "SELECT length(string_agg(repeat('x', 100) || i, ',')) AS n"
                " FROM range(5000000) t(i)",
            )
