"""String literals survive the rewrite, read back by an engine or by its documented rules."""

from __future__ import annotations

import re
from random import Random

import asyncpg
import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.guard.errors import SqlRefused
from penstock.guard.sql import check

texts = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], include_characters="\t\n\r'\"\\`$%;-/*"),
    max_size=30,
)
SIGNS = "''\"\"\\\\``$$;--/**/ab%_\n\téß漢☃\u200b"


def standard(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def read_escaped(literal: str, *, doubled: bool) -> str:
    """The string between quotes where a backslash escapes; `doubled` quotes stand for one."""
    assert (literal[0], literal[-1]) == ("'", "'")
    inside = literal[1:-1]
    bare = re.sub(r"\\." if not doubled else r"\\.|''", "", inside, flags=re.DOTALL)
    assert not set(bare) & set("'\\"), literal
    escapes = {
        "n": "\n",
        "t": "\t",
        "r": "\r",
        "b": "\b",
        "f": "\f",
        "v": "\v",
        "a": "\a",
        "0": "\0",
        "Z": "\x1a",
    }
    return re.sub(
        r"\\(.)|''",
        lambda match: escapes.get(match[1], match[1]) if match[1] else "'",
        inside,
        flags=re.DOTALL,
    )


def written(literal: str, dialect: str) -> str:
    sql = check(f"SELECT {literal} AS x", dialect).sql
    return sql.removeprefix("SELECT ").rpartition(" AS ")[0]


@settings(deadline=None)
@given(texts)
def test_trino_reads_back_what_was_meant(text: str) -> None:
    literal = written(standard(text), "trino")
    assert literal[0] + literal[-1] == "''"
    assert "'" not in literal[1:-1].replace("''", "")
    assert literal[1:-1].replace("''", "'") == text


@settings(deadline=None)
@given(texts)
def test_mysql_reads_back_what_was_meant(text: str) -> None:
    literal = written(escaped(text), "mysql")
    assert read_escaped(literal, doubled=True) == text
    # A server that does not escape by backslashes would see other characters, but the same end of
    # the string.
    assert "'" not in literal[1:-1].replace("''", "")


@settings(deadline=None)
@given(texts)
def test_bigquery_reads_back_what_was_meant(text: str) -> None:
    assert read_escaped(written(escaped(text), "bigquery"), doubled=False) == text


def test_duckdb_reads_back_what_was_meant() -> None:
    with duckdb.connect() as connection:
        for literal, text in _samples():
            sql = check(f"SELECT {literal} AS x", "duckdb").sql
            assert connection.execute(sql).fetchall() == [(text,)], sql


async def test_postgres_reads_back_what_was_meant(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        for literal, text in _samples():
            sql = check(f"SELECT {literal} AS x", "postgres").sql
            assert await connection.fetchval(sql) == text, sql
    finally:
        await connection.close()


def _samples() -> list[tuple[str, str]]:
    """Literals of each kind that DuckDB and PostgreSQL share, with the string they mean."""
    chance = Random(20240229)
    strings = ["".join(chance.choices(SIGNS, k=chance.randrange(12))) for _ in range(200)]
    tagged = [text for text in strings if "$x$" not in text and not text.endswith("$")]
    return [
        *((standard(text), text) for text in strings),
        *((f"E{escaped(text)}", text) for text in strings),
        *((f"$x${text}$x$", text) for text in tagged),
    ]


@settings(deadline=None)
@given(st.text(max_size=20))
def test_an_alias_comes_out_as_one_identifier_or_is_refused(name: str) -> None:
    try:
        checked = check('SELECT 1 AS "' + name.replace('"', '""') + '"', "postgres")
    except SqlRefused:
        return
    assert checked.sql == f'SELECT 1 AS "{name}"'
    assert checked.columns == (name,)


@pytest.mark.parametrize(
    "number", ["1", "1.5", ".5", "5.", "1e5", "1.5e-3", "12345678901234567890"]
)
@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "mysql", "postgres", "trino"])
def test_a_number_keeps_its_digits(number: str, dialect: str) -> None:
    assert float(written(number, dialect)) == float(number)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(SqlRefused, match="'1e' is not a number"):
        check("SELECT 1e AS x", "mysql")


def test_what_cannot_be_carried_over_exactly_is_refused_by_its_piece() -> None:
    with pytest.raises(SqlRefused, match=r"DECIMAL '1\.25' would lose its scale"):
        check("SELECT DECIMAL '1.25' AS x", "trino")
    with pytest.raises(SqlRefused, match="rewritten exactly at 10"):
        check("SELECT CAST(a AS NUMERIC(10, 2)) AS x FROM t", "bigquery")
    with pytest.raises(SqlRefused, match="rewritten exactly at FALSE"):
        check("SELECT id FROM t WHERE active IS NOT FALSE", "trino")
