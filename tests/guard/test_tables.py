"""The tables that a query reads; none can be hidden."""

from __future__ import annotations

import pytest

from penstock.guard.errors import TableRefused
from penstock.guard.sql import check
from penstock.guard.tables import TableName, TablePolicy

CUSTOMERS = TableName(name="customers")


def names(sql: str, dialect: str = "postgres") -> list[str]:
    return [str(table) for table in check(sql, dialect).tables]


def test_tables_are_told_once_each_with_their_catalog_and_schema() -> None:
    checked = check(
        "SELECT * FROM a.b.c JOIN b.c ON 1 = 1 JOIN c ON 1 = 1 JOIN c AS d ON 1 = 1", "trino"
    )
    assert checked.tables == (
        TableName(catalog="a", schema="b", name="c"),
        TableName(schema="b", name="c"),
        TableName(name="c"),
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            (
                "SELECT (SELECT 1 FROM a) AS x WHERE EXISTS (SELECT 1 FROM b) ORDER BY (SELECT 1"
                " FROM"
                " c)"
            ),
            ["a", "b", "c"],
        ),
        ("WITH x AS (SELECT 1 FROM a) SELECT * FROM x", ["a"]),
        ("WITH x AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y", []),
        ("WITH x AS (SELECT * FROM x) SELECT * FROM x", ["x"]),
        ("WITH y AS (SELECT * FROM x), x AS (SELECT 1) SELECT * FROM y, x", ["x"]),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) AS a, x", ["x"]),
        ("WITH x AS (SELECT 1) SELECT * FROM (SELECT * FROM (SELECT * FROM x) AS a) AS b", []),
        ("WITH x AS (SELECT 1) SELECT * FROM s.x", ["s.x"]),
        ("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM x) SELECT * FROM x", []),
        ("WITH RECURSIVE x AS (SELECT * FROM x) SELECT * FROM x", ["x"]),
        ("WITH RECURSIVE x AS (SELECT 1 FROM x UNION ALL SELECT 1) SELECT * FROM x", ["x"]),
        ("WITH RECURSIVE y AS (SELECT * FROM x), x AS (SELECT 1) SELECT * FROM y", ["x"]),
        ("(WITH x AS (SELECT 1) SELECT * FROM x) UNION SELECT * FROM x", ["x"]),
        ("SELECT * FROM a UNION (SELECT * FROM b EXCEPT SELECT * FROM c)", ["a", "b", "c"]),
    ],
)
def test_a_name_is_a_table_unless_a_with_in_force_defines_it(sql: str, expected: list[str]) -> None:
    assert sorted(names(sql)) == expected


def test_postgres_folds_names_as_it_does_itself() -> None:
    assert names('SELECT * FROM Customers, "Customers"') == ["customers", "Customers"]
    assert names("WITH Recent AS (SELECT 1) SELECT * FROM RECENT") == []
    assert names('WITH "Recent" AS (SELECT 1) SELECT * FROM recent') == ["recent"]


@pytest.mark.parametrize("dialect", ["duckdb", "trino", "bigquery"])
def test_elsewhere_a_with_is_found_in_any_case(dialect: str) -> None:
    assert names("WITH Recent AS (SELECT 1 AS x) SELECT * FROM RECENT", dialect) == []


def test_only_tables_of_the_catalogue_may_be_read() -> None:
    policy = TablePolicy(allowed=frozenset({CUSTOMERS}))
    assert check("SELECT id FROM CUSTOMERS", "postgres", tables=policy).sql
    assert check(
        "WITH orders AS (SELECT 1) SELECT * FROM orders, customers", "postgres", tables=policy
    ).sql
    with pytest.raises(
        TableRefused, match=r"Table orders is not in the source's catalog\."
    ) as refusal:
        check("SELECT id\nFROM orders", "postgres", tables=policy)
    assert refusal.value.details == {"line": 2, "column": 6}
    with pytest.raises(TableRefused):
        check('SELECT id FROM "Customers"', "postgres", tables=policy)


def test_short_names_are_completed_before_they_are_looked_up() -> None:
    full = TableName(catalog="hive", schema="sales", name="orders")
    policy = TablePolicy(allowed=frozenset({full}), default_catalog="hive", default_schema="sales")
    for name in ("orders", "sales.orders", "hive.sales.orders", "HIVE.Sales.ORDERS"):
        assert check(f"SELECT id FROM {name}", "trino", tables=policy).sql
    for name in ("other.orders", "iceberg.sales.orders", "customers"):
        with pytest.raises(TableRefused):
            check(f"SELECT id FROM {name}", "trino", tables=policy)


def test_a_policy_folds_the_catalogues_names_as_the_dialect_does() -> None:
    orders = [TableName(schema="Sales", name="Orders")]
    for dialect in ("duckdb", "trino"):
        assert check(
            "SELECT id FROM sales.ORDERS", dialect, tables=TablePolicy.of(dialect, orders)
        ).sql
    for dialect in ("bigquery", "mysql", "postgres"):
        with pytest.raises(TableRefused):
            check("SELECT id FROM sales.orders", dialect, tables=TablePolicy.of(dialect, orders))


def test_system_tables_may_be_allowed() -> None:
    policy = TablePolicy(system=True)
    assert check("SELECT * FROM information_schema.tables", "postgres", tables=policy).tables
    assert check("SELECT * FROM pg_class", "postgres", tables=policy).tables
    with pytest.raises(TableRefused):
        check("SELECT * FROM '/etc/passwd'", "duckdb", tables=policy)


@pytest.mark.parametrize(
    "name", ["orders", "Orders_2024", "größe", "a b", "a-b", "_x", "x$y", "2024_orders", "注文"]
)
def test_quoted_table_names_may_have_what_names_have(name: str) -> None:
    assert names(f'SELECT * FROM "{name}"', "duckdb") == [name]


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "a.b",
        "a:b",
        "a*",
        "a?",
        "a[1]",
        "a@b",
        "a;b",
        "a'b",
        " a",
        "a ",
        "-a",
        "a,b",
        "(a)",
        "a|b",
        "%a",
        "~a",
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "trino"])
def test_quoted_table_names_have_nothing_else(dialect: str, name: str) -> None:
    with pytest.raises(TableRefused):
        check(f'SELECT * FROM "{name}"', dialect)
