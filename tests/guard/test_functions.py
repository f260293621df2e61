"""The allowlists of functions, compared with the engines' own catalogs."""

from __future__ import annotations

import asyncpg
import duckdb
import pytest

from penstock.guard.allowed_functions import DUCKDB, FUNCTIONS, POSTGRES, TABLE_FUNCTIONS
from penstock.guard.errors import SqlRefused
from penstock.guard.sql import check

RANDOM = {
    "clock_timestamp",
    "gen_random_uuid",
    "random",
    "random_normal",
    "uuid",
    "uuidv4",
    "uuidv7",
}
# Words of the grammar that look like calls and are in no catalog.
GRAMMAR = {
    "duckdb": {
        "columns",
        "ifnull",
        "initcap",
        "percentile_cont",
        "percentile_disc",
        "try",
        "try_cast",
    },
    "postgres": {"normalize"},
}

REACHING = tuple(
    """aead. ai. current_s current_u dblink duckdb_ external_ has_ http inet_client inet_server
    keys. lo_ load_ ml. parquet_ pg_ pragma query read_ set_config sleep sys_ txid""".split()  # noqa: SIM905
)


def passes(sql: str, dialect: str) -> bool:
    try:
        return bool(check(sql, dialect))
    except SqlRefused:
        return False


def called(names: list[str], dialect: str) -> set[str]:
    return {name for name in names if passes(f"SELECT {name}(a) FROM t", dialect)}


def named(table: dict[str, str]) -> set[str]:
    return {name for text in table.values() for name in text.split()}


def test_of_duckdbs_functions_only_listed_ones_without_effects_pass() -> None:
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT function_name, bool_or(coalesce(stability = 'VOLATILE' OR has_side_effects,"
            " false)), "
            "bool_or(function_type IN ('table', 'table_macro', 'pragma')) FROM duckdb_functions()"
            " GROUP BY ALL"
        ).fetchall()
    names = sorted(name for name, _, _ in rows if name.isidentifier())
    passed = called(names, "duckdb")
    assert passed <= FUNCTIONS["duckdb"]
    assert len(passed) > 400
    assert {name for name, volatile, _ in rows if volatile and name in passed} <= RANDOM
    in_from = {name for name in names if passes(f"SELECT * FROM {name}('a')", "duckdb")}
    assert in_from <= TABLE_FUNCTIONS["duckdb"]
    assert in_from <= {name for name, _, is_table in rows if is_table} | {
        "generate_subscripts",
        "regexp_split_to_table",
    }
    assert named(DUCKDB) - set(names) - GRAMMAR["duckdb"] == set()


async def test_of_postgres_functions_only_listed_ones_without_effects_pass(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch(
            "SELECT proname, bool_or(provolatile = 'v') AS volatile, "
            "bool_or(proretset OR prorettype = 'record'::regtype) AS rows FROM pg_proc "
            "WHERE pronamespace = 'pg_catalog'::regnamespace GROUP BY proname"
        )
    finally:
        await connection.close()
    names = sorted(row["proname"] for row in rows)
    passed = called(names, "postgres")
    # Two names of types, which the grammar reads as a cast and a character by its number.
    assert passed - {"char", "interval"} <= FUNCTIONS["postgres"]
    assert len(passed) > 250
    assert {
        row["proname"] for row in rows if row["volatile"] and row["proname"] in passed
    } <= RANDOM
    in_from = {name for name in names if passes(f"SELECT * FROM {name}('a')", "postgres")}
    assert in_from <= TABLE_FUNCTIONS["postgres"]
    assert in_from <= {row["proname"] for row in rows if row["rows"]}
    assert named(POSTGRES) - set(names) - GRAMMAR["postgres"] == set()


@pytest.mark.parametrize("dialect", sorted(FUNCTIONS))
def test_names_are_plain_lower_case_words_listed_once(dialect: str) -> None:
    assert all(
        name == name.lower() and name.replace(".", "_").isidentifier()
        for name in FUNCTIONS[dialect]
    )


@pytest.mark.parametrize("dialect", sorted(FUNCTIONS))
def test_families_that_reach_outside_are_on_no_list(dialect: str) -> None:
    listed = FUNCTIONS[dialect] | TABLE_FUNCTIONS[dialect]
    assert [name for name in listed if name.startswith(REACHING)] == []
