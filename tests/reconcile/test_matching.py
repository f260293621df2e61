"""Single behaviors of the matcher, on every engine."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.guard.errors import SqlRefused
from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import BadValue, TooManyCandidates
from penstock.reconcile.matching.matcher import MatchLimits
from tests.reconcile.match_run import links, recipe

SAME_REF = {"left": "ref", "op": "eq", "right": "ref"}


def table(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    return pa.table({"id": list(range(count)), **columns})


def one_rule(*conditions: dict[str, Any], pattern: str = "1:1") -> dict[str, Any]:
    return recipe(rules=[{"name": "rule", "pattern": pattern, "conditions": list(conditions)}])


@pytest.mark.parametrize(
    "kind", [pa.decimal128(10, 2), pa.decimal128(38, 10), pa.float64(), pa.string()]
)
def test_an_amount_exactly_at_the_tolerance_matches_and_a_cent_more_does_not(
    engine: str, kind: pa.DataType
) -> None:
    """0.02 is no float: 1.10 - 1.08 is more than it in binary."""
    left = ["1.10", "1.10", "99999.99", "8.03"]
    right = ["1.08", "1.13", "100000.01", "8.01"]
    if pa.types.is_string(kind):
        sides = [pa.array(left), pa.array(right)]
    elif pa.types.is_floating(kind):
        sides = [pa.array(map(float, left)), pa.array(map(float, right))]
    else:
        sides = [pa.array(map(Decimal, values), kind) for values in (left, right)]
    document = one_rule(
        SAME_REF, {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"}
    )
    refs = ["a", "b", "c", "d"]
    result = links(
        document, table(ref=refs, amount=sides[0]), table(ref=refs, amount=sides[1]), engine=engine
    )
    assert {pair[0] for pair in result["rule"]} == {0, 2, 3}


def test_two_percent_of_the_left_amount_is_exact(engine: str) -> None:
    document = one_rule(
        SAME_REF, {"left": "amount", "op": "tolerance", "right": "amount", "percent": 2}
    )
    amounts = [
        pa.array(map(Decimal, v), pa.decimal128(12, 2))
        for v in (["50.00", "50.00"], ["51.00", "51.01"])
    ]
    refs = ["a", "b"]
    result = links(
        document,
        table(ref=refs, amount=amounts[0]),
        table(ref=refs, amount=amounts[1]),
        engine=engine,
    )
    assert result["rule"] == {(0, 0, False)}


def test_a_tie_is_broken_by_the_keys_and_flagged(engine: str) -> None:
    both = table(ref=["a", "a"])
    assert links(one_rule(SAME_REF), both, both, engine=engine)["rule"] == {
        (0, 0, True),
        (1, 1, True),
    }


def test_nobody_is_matched_twice_however_many_copies_there_are(engine: str) -> None:
    pairs = links(one_rule(SAME_REF), table(ref=["a"] * 3), table(ref=["a"] * 5), engine=engine)[
        "rule"
    ]
    assert {pair[:2] for pair in pairs} == {(0, 0), (1, 1), (2, 2)}


def test_a_later_rule_only_sees_what_is_left(engine: str) -> None:
    rules = [
        {
            "name": "exact",
            "conditions": [SAME_REF, {"left": "amount", "op": "eq", "right": "amount"}],
        },
        {"name": "loose", "conditions": [SAME_REF]},
    ]
    result = links(
        recipe(rules=rules),
        table(ref=["a", "a"], amount=[1, 2]),
        table(ref=["a", "a"], amount=[2, 9]),
        engine=engine,
    )
    assert result == {"exact": {(1, 0, False)}, "loose": {(0, 1, False)}}


def test_nulls_match_nothing_not_even_each_other(engine: str) -> None:
    side = table(ref=pa.array([None, None], pa.string()))
    assert links(one_rule(SAME_REF), side, side, engine=engine)["rule"] == set()


def test_a_side_without_rows_gives_no_links(engine: str) -> None:
    empty = table(ref=pa.array([], pa.string()))
    assert links(one_rule(SAME_REF), empty, table(ref=["a"]), engine=engine)["rule"] == set()


def test_dates_moments_and_iso_text_meet_in_days(engine: str) -> None:
    window = {"left": "day", "op": "date_window", "right": "day", "days": 1}
    left = table(ref=["a", "b"], day=[date(2024, 2, 29), date(2024, 2, 28)])
    moments = pa.array([datetime(2024, 3, 1, 23, 59, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    assert {
        p[0]
        for p in links(
            one_rule(SAME_REF, window), left, table(ref=["a", "b"], day=moments), engine=engine
        )["rule"]
    } == {0}
    text = table(ref=["a", "b"], day=["2024-03-01", "2024-03-01 08:00:00"])
    assert {p[0] for p in links(one_rule(SAME_REF, window), left, text, engine=engine)["rule"]} == {
        0
    }


def test_columns_of_one_name_on_both_sides_do_not_meet(engine: str) -> None:
    document = one_rule({"left": "ref", "op": "eq", "right": "other"})
    left, right = table(ref=["a", "b"], other=["x", "y"]), table(ref=["x", "y"], other=["b", "z"])
    assert links(document, left, right, engine=engine)["rule"] == {(1, 0, False)}


def test_names_with_quotes_spaces_and_signs_are_columns_too(engine: str) -> None:
    odd = 'a "b"; -- \' é'
    document = one_rule({"left": odd, "op": "eq", "right": odd})
    side = pa.table({"id": [1], odd: ["x"]})
    assert links(document, side, side, engine=engine)["rule"] == {(1, 1, False)}


@pytest.mark.parametrize(
    ("column", "op"), [("12,50", "tolerance"), ("1.2345678", "tolerance"), ("soon", "date_window")]
)
def test_text_that_is_no_number_or_date_is_named(engine: str, column: str, op: str) -> None:
    extra = {"absolute": 0} if op == "tolerance" else {"days": 0}
    good = "1.00" if op == "tolerance" else "2024-01-01"
    document = one_rule(SAME_REF, {"left": "v", "op": op, "right": "v", **extra})
    with pytest.raises(BadValue, match="Column v of the right side has 1 values") as caught:
        links(
            document,
            table(ref=["a"], v=[good]),
            table(ref=["a", "b"], v=[column, good]),
            engine=engine,
        )
    assert column in caught.value.message


def test_a_recipe_that_multiplies_rows_is_stopped_at_the_limit(engine: str) -> None:
    side = table(ref=["a"] * 10)
    result = links(
        one_rule(SAME_REF), side, side, engine=engine, limits=MatchLimits(per_row=5, least=0)
    )
    assert len(result["rule"]) == 10
    with pytest.raises(TooManyCandidates, match="multiplies rows") as caught:
        links(
            one_rule(SAME_REF), side, side, engine=engine, limits=MatchLimits(per_row=4, least=99)
        )
    assert "limits.candidates_per_row" in (caught.value.hint or "")
    assert "PENSTOCK_RECONCILE_CANDIDATES_PER_ROW" in (caught.value.hint or "")
    assert "4 for each record" in caught.value.message


def test_a_recipe_sets_the_limit_for_itself(engine: str) -> None:
    side = table(ref=["a"] * 10)
    setting = MatchLimits(per_row=4, least=0)
    higher = one_rule(SAME_REF) | {"limits": {"candidates_per_row": 5}}
    assert len(links(higher, side, side, engine=engine, limits=setting)["rule"]) == 10
    lower = one_rule(SAME_REF) | {"limits": {"candidates_per_row": 1}}
    with pytest.raises(TooManyCandidates, match="1 for each record"):
        links(lower, side, side, engine=engine, limits=MatchLimits(per_row=5, least=0))


def test_a_rule_without_a_key_is_refused_when_it_is_too_much(engine: str) -> None:
    document = one_rule({"left": "memo", "op": "contains", "right": "ref"})
    left, right = table(memo=["paid INV-1 today", "x"]), table(ref=["INV-1", ""])
    assert links(document, left, right, engine=engine)["rule"] == {(0, 0, False)}
    with pytest.raises(TooManyCandidates, match="no eq or normalized"):
        links(document, left, right, engine=engine, limits=MatchLimits(crossed=3))


def test_free_sql_matches_with_our_functions(engine: str) -> None:
    sql = """SELECT l.id AS left_id, r.id AS right_id
        FROM left_src l JOIN right_src r ON l.ref = r.ref
        AND tolerance_match(l.amount, r.amount, 0.02) AND pct_match(l.amount, r.amount, 50)
        AND date_match(l.day, r.day, 2) AND similarity(l.name, r.name) >= 0.75
        -- the rest is breaks"""
    left = table(
        ref=["a", "b"], amount=[1.10, 5.0], day=[date(2024, 1, 1)] * 2, name=["Acme", "Acme"]
    )
    right = table(
        ref=["a", "b"], amount=[1.08, 5.03], day=[date(2024, 1, 3)] * 2, name=["acne", "acme"]
    )
    assert links(recipe(match_sql=sql), left, right, engine=engine)["match_sql"] == {(0, 0, False)}


def test_free_sql_that_repeats_a_record_is_flagged(engine: str) -> None:
    sql = (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l, right_src r WHERE l.ref = r.ref"
    )
    result = links(
        recipe(match_sql=sql), table(ref=["a", "b"]), table(ref=["a", "a", "b"]), engine=engine
    )
    assert result["match_sql"] == {(0, 0, True), (0, 1, True), (1, 2, False)}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "DROP TABLE left_src",
        "COPY left_src TO '/tmp/x'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM other_table",
        "SELECT tolerance_match(getenv('HOME'), 1, 1) FROM left_src",
        "ATTACH 'x' AS y",
    ],
)
def test_free_sql_that_is_more_than_one_select_of_the_two_is_refused(sql: str) -> None:
    with pytest.raises(SqlRefused):
        links(recipe(match_sql=sql), table(ref=["a"]), table(ref=["a"]))


def test_free_sql_must_return_both_keys() -> None:
    with pytest.raises(InvalidInput, match="does not return the left key id"):
        links(recipe(match_sql="SELECT l.ref FROM left_src l"), table(ref=["a"]), table(ref=["a"]))
