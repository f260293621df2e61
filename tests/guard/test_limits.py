"""Every limit is exact, and deep nesting of any kind ends in a clear error."""

from __future__ import annotations

import time

import pytest

from penstock.guard.errors import SqlRefused, SqlTooLarge, SqlUnreadable
from penstock.guard.size_limits import SqlLimits
from penstock.guard.sql import check

LIMITS = SqlLimits()


def test_sql_may_be_as_long_as_the_limit_and_not_one_character_more() -> None:
    sql = "SELECT 1 -- ".ljust(LIMITS.length, "x")
    assert check(sql, "postgres").sql == "SELECT 1"
    with pytest.raises(SqlTooLarge, match=r"has 100001 characters; at most 100000"):
        check(sql + "x", "postgres")


def test_sql_may_have_as_many_words_as_the_limit_and_not_one_more() -> None:
    sql = "SELECT 1" + " + 1" * ((LIMITS.tokens - 2) // 2)
    assert check(sql, "postgres").sql == sql
    with pytest.raises(SqlTooLarge, match=r"has 10001 tokens; at most 10000"):
        check(sql.replace("SELECT 1", "SELECT - 1", 1), "postgres")


@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "mysql", "postgres", "trino"])
@pytest.mark.parametrize(
    ("opening", "inside", "closing"),
    [
        ("(", "1", ")"),
        ("(SELECT ", "1", ")"),
        ("abs(", "1", ")"),
        ("CASE WHEN 1 = 1 THEN ", "1", " END"),
        ("CASE WHEN 1 = 1 THEN 0 ELSE ", "1", " END"),
        ("a[", "1", "]"),
        ("1 + (2 * ", "3", ")"),
        ("CAST(", "1", " AS DECIMAL)"),
        ("coalesce(NULL, ", "1", ")"),
        ("(1 = 1 AND ", "1 = 1", ")"),
    ],
)
def test_brackets_may_nest_as_deep_as_the_limit_and_not_one_deeper(
    dialect: str, opening: str, inside: str, closing: str
) -> None:
    def nested(depth: int) -> str:
        return f"SELECT {opening * depth}{inside}{closing * depth} FROM t"

    levels = 2 if opening.count("(") == 2 else 1
    assert check(nested(LIMITS.depth // levels), dialect).sql
    with pytest.raises(SqlTooLarge, match="nested too deeply; at most 32 levels"):
        check(nested(LIMITS.depth // levels + 1), dialect)


def test_the_depth_limit_leaves_room_for_a_deep_stack_of_callers() -> None:
    def called_from(frames: int) -> str:
        return (
            called_from(frames - 1)
            if frames
            else check(f"SELECT {'(' * 32}1{')' * 32}", "postgres").sql
        )

    assert called_from(200)


@pytest.mark.parametrize(
    "nested",
    [
        "ARRAY[{}]",
        "[{}]",
        "{{'a': {}}}",
        "row({})",
        "STRUCT({})",
        "timestamp({})",
        "decimal({})",
        "binary({})",
        "MAP {{'a': {}}}",
    ],
)
@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "mysql", "postgres", "trino"])
def test_nesting_that_a_parser_reads_again_and_again_is_answered_at_once(
    dialect: str, nested: str
) -> None:
    sql = "1"
    for _ in range(31):
        sql = nested.format(sql)
    before = time.process_time()
    _answered(f"SELECT {sql}", dialect)
    assert time.process_time() - before < 5


def test_effort_may_be_as_large_as_the_limit_and_not_one_more() -> None:
    sql = "SELECT ARRAY[ARRAY[1]]"
    effort = 1 + 1 + 3 + 3 + 9 + 9 + 3 + 1
    assert check(sql, "postgres", limits=SqlLimits(effort=effort)).sql
    with pytest.raises(SqlTooLarge, match="fewer of arrays and structs"):
        check(sql, "postgres", limits=SqlLimits(effort=effort - 1))


def test_subscripts_may_follow_each_other_as_often_as_the_limit_and_not_once_more() -> None:
    assert check("SELECT a" + "[1]" * LIMITS.depth, "duckdb").sql
    with pytest.raises(SqlTooLarge, match="nested"):
        check("SELECT a" + "[1]" * (LIMITS.depth + 1), "duckdb")


def test_tables_may_be_named_as_often_as_the_limit_and_not_once_more() -> None:
    sql = "SELECT 1 AS x FROM t" + " JOIN t ON 1 = 1" * (LIMITS.tables - 1)
    assert check(sql, "postgres").tables
    with pytest.raises(SqlTooLarge, match="refers to tables 101 times; at most 100"):
        check(sql + " JOIN t ON 1 = 1", "postgres")


def test_a_caller_may_set_limits_of_its_own() -> None:
    with pytest.raises(SqlTooLarge):
        check("SELECT 12", "postgres", limits=SqlLimits(length=8))


@pytest.mark.parametrize(
    ("repeated", "end"),
    [
        ("NOT ", "a"),
        ("- ", "1"),
        ("~ ", "1"),
        ("+ ", "1"),
        ("INTERVAL ", "'1' DAY"),
        ("x -> ", "1"),
        ("DISTINCT ", "1"),
        ("EXISTS ", "1"),
        ("DATE ", "'2024-01-01'"),
    ],
)
@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "mysql", "postgres", "trino"])
def test_prefixes_without_brackets_end_in_a_sentence_too(
    dialect: str, repeated: str, end: str
) -> None:
    _answered(f"SELECT {repeated * 2000}{end}", dialect)


SUFFIXES = (
    "::int|.b|->'b'| AT TIME ZONE 'UTC'| BETWEEN 1 AND 2| COLLATE x| IS NULL| = b| JOIN t|"
    " UNION ALL SELECT 1"
)


@pytest.mark.parametrize("repeated", SUFFIXES.split("|"))
@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "mysql", "postgres", "trino"])
def test_suffixes_without_brackets_end_in_a_sentence_too(dialect: str, repeated: str) -> None:
    _answered(f"SELECT a FROM t WHERE a{repeated * 500}", dialect)


@pytest.mark.parametrize("kind", ["ARRAY<", "STRUCT<a "])
def test_nested_types_end_in_a_sentence_too(kind: str) -> None:
    _answered(f"SELECT CAST(a AS {kind * 1000}INT64{'>' * 1000}) FROM t", "bigquery")


@pytest.mark.parametrize("character", ["\x00", "\x01", "\x08", "\x1a", "\x1b", "\ud800"])
def test_control_characters_are_refused_wherever_they_are(character: str) -> None:
    with pytest.raises(SqlUnreadable, match=r"control character \(U\+[0-9A-F]{4}\) at position 9"):
        check(f"SELECT '{character}'", "postgres")


@pytest.mark.parametrize("sql", ["", " ", "\n", ";", ";;", "-- x", "/* x */", "()", "((("])
def test_nothing_is_not_a_query(sql: str) -> None:
    with pytest.raises(SqlRefused):
        check(sql, "postgres")


def _answered(sql: str, dialect: str) -> None:
    try:
        check(sql, dialect)
    except SqlRefused as error:
        assert error.message.endswith(".")  # noqa: PT017
