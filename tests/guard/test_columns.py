"""The output columns of a query, as far as its text tells them."""

from __future__ import annotations

import pytest

from penstock.guard.columns import PlainSelect
from penstock.guard.errors import DuplicateColumn
from penstock.guard.sql import check
from penstock.guard.tables import TableName


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id, c.name, upper(name) AS u FROM c", ("id", "name", "u")),
        ("SELECT Id, Name AS FullName FROM c", ("id", "fullname")),
        ('SELECT "Id", name AS "Full Name" FROM c', ("Id", "Full Name")),
        ("SELECT * FROM c", None),
        ("SELECT c.* FROM c", None),
        ("SELECT id, count(*) FROM c GROUP BY id", None),
        ("SELECT a, b FROM t UNION SELECT c, d FROM u", ("a", "b")),
        ("(SELECT a FROM t)", ("a",)),
        ("((SELECT a FROM t) EXCEPT SELECT b FROM u) ORDER BY 1", ("a",)),
        ("WITH x AS (SELECT 1 AS y) SELECT y AS z FROM x", ("z",)),
        ("VALUES (1, 2)", None),
    ],
)
def test_output_columns_are_known_when_they_are_written(
    sql: str, expected: tuple[str, ...] | None
) -> None:
    assert check(sql, "postgres").columns == expected


def test_columns_keep_their_case_where_the_source_keeps_it() -> None:
    assert check("SELECT Id, Name AS FullName FROM c", "duckdb").columns == ("Id", "FullName")


def test_columns_matched_by_name_or_packed_in_a_struct_are_not_known() -> None:
    assert check("SELECT a FROM t UNION BY NAME SELECT b FROM u", "duckdb").columns is None
    assert check("SELECT AS STRUCT 1 AS a", "bigquery").columns is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, a FROM t",
        "SELECT a, b AS a FROM t",
        "SELECT t.a, u.a FROM t, u",
        "SELECT a, A FROM t",
        "SELECT a, *, a FROM t",
        "(SELECT 1 AS a, 2 AS a)",
        "SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 4",
    ],
)
@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "mysql", "postgres", "trino"])
def test_two_columns_of_one_name_are_refused(sql: str, dialect: str) -> None:
    with pytest.raises(DuplicateColumn):
        check(sql, dialect)


def test_inner_queries_may_repeat_a_name() -> None:
    assert check("SELECT 1 AS x WHERE EXISTS (SELECT a, a FROM t)", "postgres").columns == ("x",)


def test_postgres_knows_quoted_columns_apart() -> None:
    assert check('SELECT a, "A" FROM t', "postgres").columns == ("a", "A")


def plain(sql: str, dialect: str = "postgres") -> PlainSelect | None:
    return check(sql, dialect).plain


def test_one_table_with_some_columns_and_a_condition_is_plain() -> None:
    assert plain(
        "SELECT id, Name AS n FROM shop.customers AS c WHERE c.active AND id > 5"
    ) == PlainSelect(
        table=TableName(schema="shop", name="customers"),
        columns=("id", "name"),
        where='"c"."active" AND "id" > 5',
    )
    assert plain("SELECT * FROM customers") == PlainSelect(
        table=TableName(name="customers"), columns=None, where=None
    )
    assert plain("TABLE customers") == plain("SELECT * FROM customers")
    assert plain("FROM customers", "duckdb") == plain("SELECT * FROM customers", "duckdb")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id + 1 AS x FROM t",
        "SELECT count(*) AS n FROM t",
        "SELECT DISTINCT id FROM t",
        "SELECT id FROM t ORDER BY id",
        "SELECT id FROM t LIMIT 5",
        "SELECT id FROM t OFFSET 5",
        "SELECT id FROM t GROUP BY id",
        "SELECT id FROM t JOIN u ON 1 = 1",
        "SELECT id FROM t, u",
        "SELECT id FROM (SELECT id FROM t) AS u",
        "SELECT id FROM t UNION SELECT id FROM u",
        "(SELECT id FROM t)",
        "WITH x AS (SELECT 1) SELECT id FROM t",
        "SELECT id FROM t TABLESAMPLE BERNOULLI (10)",
        "SELECT id FROM generate_series(1, 5) AS g(id)",
        "SELECT id FROM ONLY t",
        "SELECT 1 AS x",
        "SELECT id, * FROM t",
        "SELECT t.* FROM t",
        "VALUES (1)",
    ],
)
def test_anything_more_is_not_plain(sql: str) -> None:
    assert plain(sql) is None


def test_a_star_without_some_columns_is_not_plain() -> None:
    assert plain("SELECT * EXCLUDE (id) FROM t", "duckdb") is None
    assert plain("SELECT id FROM t QUALIFY row_number() OVER () = 1", "duckdb") is None


def test_a_table_from_a_with_is_not_plain() -> None:
    assert plain("SELECT id FROM (WITH t AS (SELECT 1 AS id) SELECT id FROM t) AS u") is None
