"""Typical analysts' queries pass, keep their meaning, and return the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import duckdb
import pytest

from penstock.guard.grammar import GRAMMARS
from penstock.guard.sql import check
from tests.guard.cases import Case, cases, statements
from tests.guard.shop import DUCKDB_TABLES, POSTGRES_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

BENIGN = cases("benign.sql")


def _parse(sql: str, dialect: str) -> exp.Expr:
    grammar = GRAMMARS[dialect]
    (tree,) = grammar.parse(sql, grammar.tokenize(sql))
    assert tree is not None
    return tree


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len({sql for _, _, sql in statements("benign.sql")}) >= 200
    assert {case.dialect for case in BENIGN} == set(GRAMMARS)


@pytest.mark.parametrize("case", BENIGN, ids=str)
def test_a_benign_statement_passes_and_reads_the_same_when_checked_again(case: Case) -> None:
    checked = check(case.sql, case.dialect)
    again = check(checked.sql, case.dialect)
    assert again == checked
    assert _parse(again.sql, case.dialect) == _parse(checked.sql, case.dialect)


@pytest.fixture(scope="module")
def shop() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(DUCKDB_TABLES)
        yield connection


@pytest.mark.parametrize("case", cases("benign.sql", dialect="duckdb"), ids=str)
def test_duckdb_gives_the_same_rows_for_the_original_and_what_was_written(
    case: Case, shop: duckdb.DuckDBPyConnection
) -> None:
    original, written = (_run(shop, sql) for sql in (case.sql, check(case.sql, "duckdb").sql))
    if case.expected == "volatile":
        original, written = original[:1], written[:1]
    assert written == original


def _run(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    cursor = connection.execute(sql)
    header = str([column[0].lower() for column in cursor.description])
    return [header, *sorted(map(repr, cursor.fetchall()))]


async def test_postgres_gives_the_same_rows_for_the_originals_and_what_was_written(
    database: str,
) -> None:
    connection = await asyncpg.connect(database)
    try:
        await connection.execute(POSTGRES_TABLES)
        differing = []
        for case in cases("benign.sql", dialect="postgres"):
            original, written = [
                await _rows(connection, sql) for sql in (case.sql, check(case.sql, "postgres").sql)
            ]
            if case.expected == "volatile":
                original, written = original[:1], written[:1]
            if original != written:
                differing.append((case.sql, original, written))
        assert differing == []
    finally:
        await connection.close()


async def _rows(connection: asyncpg.Connection[asyncpg.Record], sql: str) -> list[str]:
    statement = await connection.prepare(sql)
    header = str([(column.name, column.type.name) for column in statement.get_attributes()])
    return [header, *sorted(repr(tuple(row)) for row in await statement.fetch())]
