"""Each hostile statement is refused, and for the expected reason."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.guard.allowed_nodes import check_nodes
from penstock.guard.errors import (
    DuplicateColumn,
    FunctionRefused,
    SqlRefused,
    SqlUnreadable,
    StatementRefused,
    TableRefused,
)
from penstock.guard.grammar import GRAMMARS
from penstock.guard.sql import check
from penstock.kit.errors import InvalidInput
from tests.guard.cases import Case, cases, statements

HOSTILE = cases("hostile.sql")
REASONS = {
    "attribute": FunctionRefused,
    "column": DuplicateColumn,
    "function": FunctionRefused,
    "part": SqlRefused,
    "statement": StatementRefused,
    "table": TableRefused,
    "unreadable": SqlUnreadable,
}


def test_the_corpus_is_as_large_as_promised() -> None:
    corpus = statements("hostile.sql")
    assert len({sql for _, _, sql in corpus}) >= 300
    assert sum(reason == "unreadable" for _, reason, _ in corpus) <= 0.05 * len(corpus)
    assert {case.dialect for case in HOSTILE} == set(GRAMMARS)


@pytest.mark.parametrize("case", HOSTILE, ids=str)
def test_a_hostile_statement_is_refused_for_what_it_is(case: Case) -> None:
    with pytest.raises(SqlRefused) as refusal:
        check(case.sql, case.dialect)
    assert type(refusal.value) is REASONS[case.expected], refusal.value


def test_a_refusal_names_the_piece_and_its_place() -> None:
    with pytest.raises(FunctionRefused) as refusal:
        check("SELECT id,\n  pg_read_file('/etc/passwd')\nFROM customers", "postgres")
    error = refusal.value
    assert isinstance(error, InvalidInput)
    assert error.message == "Function pg_read_file is not on the list of allowed functions."
    assert error.hint
    assert error.details == {"function": "pg_read_file", "line": 2, "column": 3}


def test_a_refused_table_names_its_place() -> None:
    with pytest.raises(TableRefused) as refusal:
        check("SELECT 1\nFROM customers, pg_shadow", "postgres")
    assert refusal.value.message == "pg_shadow is a system table."
    assert refusal.value.details == {"line": 2, "column": 17}


def test_a_syntax_error_names_its_place() -> None:
    with pytest.raises(SqlUnreadable) as refusal:
        check("SELECT a b c FROM t", "postgres")
    assert "'c'" in refusal.value.message
    assert refusal.value.details["line"] == 1


def test_a_duplicate_column_is_named() -> None:
    with pytest.raises(DuplicateColumn, match="two columns named id") as refusal:
        check(
            "SELECT c.id, o.id FROM customers c JOIN orders o ON o.customer_id = c.id", "postgres"
        )
    assert refusal.value.details["name"] == "id"


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("SELECT 1 |> LIMIT a", "bigquery"),
        ("SELECT a -> '$[?(@.x == ''a'')]' FROM t", "duckdb"),
    ],
)
def test_what_the_parser_or_the_writer_stumbles_over_is_unreadable(sql: str, dialect: str) -> None:
    with pytest.raises(SqlUnreadable, match="The SQL cannot be"):
        check(sql, dialect)


def test_a_word_that_would_be_written_as_it_is_must_be_a_word() -> None:
    check_nodes([exp.Var(this="DAY"), exp.Var(this="day to second")])
    with pytest.raises(SqlRefused, match="not allowed in a query"):
        check_nodes([exp.Var(this="DAY); DROP TABLE x")])
