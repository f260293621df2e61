from __future__ import annotations

import pytest

from penstock.sources.single_table import one_table


@pytest.mark.parametrize(
    ("sql", "cut"),
    [
        ("SELECT a FROM t", "SELECT a FROM t\nWHERE P"),
        ("SELECT a FROM t;\n-- the end\n", "SELECT a FROM t\nWHERE P"),
        (
            "select now(), a from t where a = 1 or b = 2",
            "select now(), a from t where P AND ( a = 1 or b = 2\n)",
        ),
        (
            "SELECT a FROM t WHERE a = 'WHERE' -- why\n",
            "SELECT a FROM t WHERE P AND ( a = 'WHERE'\n)",
        ),
        (
            'SELECT größe FROM "Ü" WHERE größe > 1',
            'SELECT größe FROM "Ü" WHERE P AND ( größe > 1\n)',
        ),
    ],
)
def test_a_condition_is_added_and_the_rest_stays_as_it_was_written(sql: str, cut: str) -> None:
    select = one_table(sql, "postgres")
    assert select is not None
    assert select.where("P") == cut


@pytest.mark.parametrize(
    ("sql", "table", "alias", "read"),
    [
        ("SELECT * FROM t", "t", "t", "SELECT * FROM part AS t"),
        ('SELECT q.a FROM s."T" AS q', 's."T"', "q", "SELECT q.a FROM part AS q"),
        (
            "SELECT q.a FROM s.t q WHERE q.a > 1",
            "s.t",
            "q",
            "SELECT q.a FROM part AS q WHERE q.a > 1",
        ),
    ],
)
def test_the_table_is_found_and_can_be_replaced(
    sql: str, table: str, alias: str, read: str
) -> None:
    select = one_table(sql, "postgres")
    assert select is not None
    assert (select.table, select.alias) == (table, alias)
    other = select.reading("part")
    assert other.text == read
    assert other.where("P").startswith(read.split(" WHERE")[0])
    assert "P AND ( q.a > 1" in other.where("P") or "WHERE" not in sql


def test_functions_that_may_be_aggregates_are_named() -> None:
    select = one_table("SELECT lower(a), my_own(a), s.other(b) FROM t", "postgres")
    assert select is not None
    assert select.functions == ("my_own", "other")


@pytest.mark.parametrize(
    "sql",
    [
        "SELEC 1",
        "SELECT 1",
        "SELECT a FROM t; SELECT b FROM t",
        "SELECT count(*) FROM t",
        "SELECT array_agg(a) FROM t",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM t",
        "SELECT row_number() OVER () FROM t",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t HAVING true",
        "SELECT a FROM t ORDER BY a",
        "SELECT a FROM t LIMIT 3",
        "SELECT a FROM t OFFSET 3",
        "SELECT a FROM t FOR UPDATE",
        "SELECT a FROM t, u",
        "SELECT a FROM t JOIN u USING (a)",
        "SELECT a FROM (SELECT a FROM t) q",
        "SELECT a FROM t WHERE a IN (SELECT 1)",
        "SELECT a FROM t TABLESAMPLE SYSTEM (10)",
        "SELECT a FROM ONLY t",
        "SELECT x FROM t AS q (x)",
        "SELECT i FROM generate_series(1, 3) i",
        "SELECT unnest(a) FROM t",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
        "SELECT a INTO u FROM t",
        "TABLE t",
        "VALUES (1)",
        "DELETE FROM t",
    ],
)
def test_a_query_that_is_not_row_by_row_is_not_cut(sql: str) -> None:
    assert one_table(sql, "postgres") is None
