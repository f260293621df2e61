"""Hostile statements in disguise: none passes, and nothing but a refusal comes out.

`PENSTOCK_FUZZ=100000` runs that many examples of each property instead of the few seconds' worth of
every commit.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.guard.errors import SqlRefused
from penstock.guard.grammar import GRAMMARS
from penstock.guard.sql import Checked, check
from penstock.guard.tables import TableName, TablePolicy
from tests.guard import mutations
from tests.guard.cases import Case, cases

EXAMPLES = int(os.environ.get("PENSTOCK_FUZZ", "700"))
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
chance = st.integers(0, 2**32).map(Random)


def is_tight(case: Case) -> bool:
    """Whether a space inside makes it something else: a difference of two columns, or a comment."""
    return any(text in case.sql for text in ("my-project.sales.orders", "3--1", "1--sleep"))


SHOP = TablePolicy(
    allowed=frozenset(TableName(name=name) for name in ("customers", "orders", "edges"))
)
SEEDS = [
    case
    for case in cases("hostile.sql")
    if case.expected not in ("unreadable", "column") and not is_tight(case)
]
QUERIES = [
    case
    for case in SEEDS
    if case.sql.startswith(("SELECT", "WITH", "FROM", "TABLE")) and ";" not in case.sql
]
BENIGN = [case for case in cases("benign.sql") if not is_tight(case)]

# A word that is hostile by itself (CURRENT_USER, FOR UPDATE) would be another word, and harmless,
# in other letters.
NAMED = [
    case
    for case in QUERIES
    if case.expected == "table" or (case.expected == "function" and "(" in case.sql)
]

DISGUISES = [mutations.change_case, mutations.fill_gaps, mutations.stack]


def verdict(sql: str, dialect: str) -> Checked | None:
    """None for a refusal; any other exception is a failure of the guard."""
    try:
        return check(sql, dialect, tables=SHOP)
    except SqlRefused:
        return None


@fuzz
@given(
    case=st.sampled_from(SEEDS),
    disguises=st.lists(st.sampled_from(DISGUISES), min_size=1, max_size=3),
    rng=chance,
)
def test_no_disguise_lets_a_hostile_statement_pass(
    case: Case, disguises: list[mutations.Mutation], rng: Random
) -> None:
    sql = case.sql
    for disguise in disguises:
        sql = disguise(sql, case.dialect, rng)
    assert verdict(sql, case.dialect) is None, sql


@fuzz
@given(
    case=st.sampled_from(QUERIES),
    layers=st.integers(1, 4),
    disguise=st.sampled_from(DISGUISES),
    rng=chance,
)
def test_no_nesting_lets_a_hostile_query_pass(
    case: Case, layers: int, disguise: mutations.Mutation, rng: Random
) -> None:
    sql = disguise(_wrapped(case, layers, rng), case.dialect, rng)
    assert verdict(sql, case.dialect) is None, sql


@fuzz
@given(case=st.sampled_from(NAMED), layers=st.integers(0, 2), rng=chance)
def test_no_other_letters_or_quotes_let_a_hostile_name_pass(
    case: Case, layers: int, rng: Random
) -> None:
    disguise = rng.choice([mutations.look_alike, mutations.quote])
    sql = disguise(_wrapped(case, layers, rng), case.dialect, rng)
    assert verdict(sql, case.dialect) is None, sql


def _wrapped(case: Case, layers: int, rng: Random) -> str:
    sql = case.sql
    for _ in range(layers):
        sql = mutations.wrap(sql, case.dialect, rng)
    return sql


@fuzz
@given(case=st.sampled_from(BENIGN), rng=chance)
def test_comments_and_spaces_change_nothing_in_what_is_written(case: Case, rng: Random) -> None:
    sql = mutations.spread(case.sql, case.dialect, rng)
    assert check(sql, case.dialect).sql == check(case.sql, case.dialect).sql


WORDS = r"""
    SELECT FROM WHERE WITH AS ( ) ( ) , . ; * + - / || :: -> ->> [ ] { } : := = < > IN IS NOT NULL
    AND OR CASE WHEN THEN ELSE END UNION ALL JOIN ON USING LATERAL UNNEST VALUES TABLE GROUP BY
    ORDER LIMIT OVER FILTER INTERVAL CAST INTO FOR UPDATE @ @@ ? $1 $$ $x$ ' '' ' " ` a b customers
    orders abs evil pg_shadow 1 2.5 'x' "y" `z` E'\' U&'x' r'\' /* */ -- # /*! DATE TIMESTAMP
    EXTRACT TRIM JSON_TABLE PIVOT QUALIFY RECURSIVE lambda |> STRUCT ARRAY MAP
"""


@fuzz
@given(
    dialect=st.sampled_from(sorted(GRAMMARS)),
    words=st.lists(st.sampled_from(WORDS.split()), max_size=25),
)
def test_any_heap_of_words_is_refused_or_written_stably(dialect: str, words: list[str]) -> None:
    checked = verdict(" ".join(["SELECT", *words]), dialect)
    if checked is not None:
        assert verdict(checked.sql, dialect) == checked


@fuzz
@given(dialect=st.sampled_from(sorted(GRAMMARS)), text=st.text(max_size=60))
def test_any_text_at_all_is_refused_or_passes_without_an_accident(dialect: str, text: str) -> None:
    verdict(text, dialect)
    verdict(f"SELECT {text}", dialect)


@pytest.mark.parametrize("wrapper", mutations.WRAPPERS)
def test_the_wrappers_themselves_are_harmless(wrapper: str) -> None:
    check(wrapper.format("SELECT 1 AS x"), "duckdb")
