"""Filters on text: every source selects the same records, whatever its collation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import asyncpg
import duckdb
import pytest

from penstock.kit.errors import InvalidInput
from penstock.reconcile.matching.column import Kind
from penstock.reconcile.recipes.filters import Filter
from penstock.reconcile.staging.query import condition_sql
from tests.sources import mariadb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS = [
    *(
        "a",
        "A",
        "b",
        "B",
        "ä",
        "Z",
        "z",
        "",
        " ",
        "a ",
        "abc",
        "ABC",
        "50%",
        "50x",
        "50\\",
        "50\\%",
    ),
    *("a_b", "axb", "a\\b", "ß", "ss", "\U0001f600", "10", "9", "-", "ab\nc"),
]
FILTERS: list[tuple[str, Any]] = [
    *[
        (op, value)
        for op in ("gt", "gte", "lt", "lte", "eq", "neq")
        for value in ("B", "a", "ß", "a ")
    ],
    ("between", ["A", "a"]),
    ("between", ["a", "ä"]),
    ("in", ["abc", "ss", "z"]),
    *[
        ("like", value)
        for value in (r"50\%", "50%", r"a\_b", "a_b", r"a\\b", r"%\\", "A%", "%", "", "ab_c", "%ß")
    ],
]


def lets_through(op: str, value: Any, text: str) -> bool:
    """By the bytes of UTF-8; in like a backslash takes the meaning of % and _ away."""
    own = text.encode()
    match op:
        case "between":
            return value[0].encode() <= own <= value[1].encode()
        case "in":
            return text in value
        case "like":
            pieces = re.findall(r"\\(.)|(%)|(_)|(.)", value, re.DOTALL)
            pattern = "".join(
                ".*" if many else "." if one else re.escape(a or b) for a, many, one, b in pieces
            )
            return re.fullmatch(pattern, text, re.DOTALL) is not None
    other = value.encode()
    return {
        "gt": own > other,
        "gte": own >= other,
        "lt": own < other,
        "lte": own <= other,
        "eq": own == other,
        "neq": own != other,
    }[op]


def conditions(dialect: str) -> Iterator[tuple[str, set[int], str]]:
    for op, value in FILTERS:
        meant = {n for n, text in enumerate(TEXTS) if lets_through(op, value, text)}
        condition = Filter(column="s", op=op, value=value)
        yield f"{op} {value!r}", meant, condition_sql(condition, Kind.TEXT, dialect)


def test_duckdb_filters_texts_by_their_characters() -> None:
    db = duckdb.connect()
    db.execute("CREATE TABLE t (id INTEGER, s VARCHAR)")
    db.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(TEXTS)))
    for what, meant, sql in conditions("duckdb"):
        rows = db.execute(f"SELECT id FROM t WHERE {sql}").fetchall()
        assert {number for (number,) in rows} == meant, what
    db.close()


async def test_postgresql_filters_texts_by_their_characters(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("CREATE TABLE t (id int, s text)")
    await connection.executemany("INSERT INTO t VALUES ($1, $2)", list(enumerate(TEXTS)))
    for what, meant, sql in conditions("postgres"):
        rows = await connection.fetch(f"SELECT id FROM t WHERE {sql}")
        assert {row["id"] for row in rows} == meant, what
    await connection.close()


@pytest.mark.parametrize(("op", "value"), [("gt", "B"), ("lte", "B"), ("between", ["a", "b"])])
def test_postgresql_is_told_to_order_by_characters(op: Any, value: Any) -> None:
    """The server of the tests has no other collation; those of others do."""
    sql = condition_sql(Filter(column="s", op=op, value=value), Kind.TEXT, "postgres")
    assert sql.startswith('CAST("s" AS TEXT) COLLATE "C" ')


async def test_postgresql_orders_other_types_that_are_read_as_text(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("CREATE TABLE u (s uuid)")
    await connection.execute(
        "INSERT INTO u SELECT repeat(n::text, 32)::uuid FROM generate_series(1, 9) AS n",
    )
    condition = Filter(column="s", op="gt", value="44444444-4444-4444-4444-444444444444")
    rows = await connection.fetch(
        f"SELECT s FROM u WHERE {condition_sql(condition, Kind.TEXT, 'postgres')}",
    )
    assert len(rows) == 5
    await connection.close()


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1"])
def test_mysql_filters_texts_by_their_characters(
    short_dir: Path,
    unused_tcp_port_factory: Any,
    charset: str,
) -> None:
    texts = [(n, text) for n, text in enumerate(TEXTS) if charset == "utf8mb4" or text.isascii()]
    folder = short_dir / f"filters-{charset}"
    with mariadb.running(folder, unused_tcp_port_factory()) as server, server.admin() as admin:
        cursor = admin.cursor()
        cursor.execute("CREATE DATABASE filters")
        cursor.execute("USE filters")
        cursor.execute(f"CREATE TABLE t (id int, s varchar(50)) CHARACTER SET {charset}")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", texts)
        there = {n for n, _ in texts}
        for what, meant, sql in conditions("mysql"):
            cursor.execute(f"SELECT id FROM t WHERE {sql}")
            assert {row[0] for row in cursor.fetchall()} == meant & there, what


@pytest.mark.parametrize("value", ["a\\b", "a\\", "\\\\\\"])
def test_a_backslash_before_anything_else_is_refused_in_like(value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        condition_sql(Filter(column="s", op="like", value=value), Kind.TEXT, "duckdb")
    assert "before %, _ or another backslash" in (caught.value.hint or "")
