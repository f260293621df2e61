"""Every limit of a recipe: the limit itself is accepted, one more is refused with a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.kit.errors import InvalidInput
from penstock.reconcile.recipes import filters, validation
from penstock.reconcile.recipes import model as recipes
from penstock.reconcile.recipes.model import Recipe
from penstock.reconcile.runs.items import key_text
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = {"left": "ref", "op": "eq", "right": "ref"}
SIDE = {"upload": "0" * 32, "primary_key": "id"}


def conditions(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"rules": [{"name": "r", "conditions": list(items), **more}]}


def left(**side: Any) -> dict[str, Any]:
    return {**conditions(KEY), "sources": {"left": {**SIDE, **side}, "right": SIDE}}


def scoped(value: Any, op: str = "eq") -> dict[str, Any]:
    return left(filters=[{"column": "id", "op": op, "value": value}])


LIMITS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "rules": (
        lambda n: {"rules": [{"name": str(i), "conditions": [KEY]} for i in range(n)]},
        recipes.MAX_RULES,
    ),
    "conditions": (lambda n: conditions(*[KEY] * n), recipes.MAX_CONDITIONS),
    "columns of a key": (lambda n: left(primary_key=[f"c{i}" for i in range(n)]), recipes.MAX_KEY),
    "filters": (
        lambda n: left(filters=[{"column": "c", "op": "is_null"}] * n),
        recipes.MAX_FILTERS,
    ),
    "values of in": (lambda n: scoped(list(range(n)), "in"), filters.MAX_IN),
    "length of a query": (lambda n: left(upload=None, source="s", query="x" * n), recipes.MAX_SQL),
    "length of match_sql": (lambda n: {"match_sql": "x" * n}, recipes.MAX_SQL),
    "length of a column": (lambda n: conditions({**KEY, "left": "x" * n}), 255),
    "length of a rule's name": (lambda n: {"rules": [{"name": "x" * n, "conditions": [KEY]}]}, 100),
    "length of a name": (lambda n: {**conditions(KEY), "name": "x" * n}, 200),
    "length of a description": (lambda n: {**conditions(KEY), "description": "x" * n}, 4000),
    "length of an id": (lambda n: {**conditions(KEY), "recipe_id": "x" * n}, 100),
    "length of a table": (lambda n: left(upload=None, source="s", table="x" * n), 500),
    "length of an alias": (lambda n: left(upload=None, source="x" * n, table="t"), 200),
    "parameters": (
        lambda n: {**conditions(KEY), "parameters": {f"p{i}": {"type": "text"} for i in range(n)}},
        recipes.MAX_PARAMETERS,
    ),
    "length of a parameter": (
        lambda n: {**conditions(KEY), "parameters": {"x" * n: {"type": "text"}}},
        63,
    ),
    "steps": (lambda n: conditions({**KEY, "op": "normalized", "steps": ["trim"] * n}), 10),
    "length of a regex": (
        lambda n: conditions({**KEY, "op": "normalized", "steps": [{"regex": "x" * n}]}),
        500,
    ),
    "length of a replacement": (
        lambda n: conditions(
            {**KEY, "op": "normalized", "steps": [{"regex": "x", "replace": "y" * n}]}
        ),
        200,
    ),
    "compared fields": (
        lambda n: {
            **conditions(KEY),
            "compare": [{"left": "a", "right": "b", "name": f"n{i}"} for i in range(n)],
        },
        50,
    ),
    "chosen columns": (
        lambda n: {**conditions(KEY), "output": {"columns": {"left": [f"c{i}" for i in range(n)]}}},
        recipes.MAX_COLUMNS,
    ),
    "decimals of a tolerance": (
        lambda n: conditions(KEY, {**KEY, "op": "tolerance", "absolute": "0." + "1" * n}),
        recipes.MAX_SCALE,
    ),
    "digits of a tolerance": (
        lambda n: conditions(KEY, {**KEY, "op": "tolerance", "absolute": "9" * n}),
        15,
    ),
    "percent": (lambda n: conditions(KEY, {**KEY, "op": "tolerance", "percent": n}), 900),
    "days": (lambda n: conditions(KEY, {**KEY, "op": "date_window", "days": n}), 36_500),
    "percent of unmatched": (
        lambda n: {**conditions(KEY), "thresholds": {"max_unmatched_pct": n}},
        100,
    ),
    "candidates for each record": (
        lambda n: {**conditions(KEY), "limits": {"candidates_per_row": n}},
        recipes.MAX_PER_ROW,
    ),
    "chunks": (lambda n: {**conditions(KEY), "staging": {"max_parallel_chunks": n}}, 100),
    "rows of a chunk": (
        lambda n: {**conditions(KEY), "staging": {"chunk_threshold_rows": n}},
        10**12,
    ),
}


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_is_held_at_it_and_past_it(what: str) -> None:
    document, most = LIMITS[what]
    assert isinstance(validation.form(recipe(**document(most))), Recipe), validation.form(
        recipe(**document(most))
    )
    faults = validation.form(recipe(**document(most + 1)))
    assert isinstance(faults, list)
    assert all(fault.suggestion for fault in faults)


@pytest.mark.parametrize(
    ("least", "below"),
    [
        (
            conditions({**KEY, "op": "similar", "min_score": "0.0001"}),
            conditions({**KEY, "op": "similar", "min_score": 0}),
        ),
        (
            conditions({**KEY, "op": "similar", "min_score": 1}),
            conditions({**KEY, "op": "similar", "min_score": "1.0001"}),
        ),
        (
            conditions({**KEY, "op": "date_window", "days": 0}),
            conditions({**KEY, "op": "date_window", "days": -1}),
        ),
        (
            {**conditions(KEY), "staging": {"max_parallel_chunks": 1}},
            {**conditions(KEY), "staging": {"max_parallel_chunks": 0}},
        ),
        (left(primary_key=["id"]), left(primary_key=[])),
        (scoped([1], "in"), scoped([], "in")),
        (scoped([1, 2], "between"), scoped([1, 2, 3], "between")),
    ],
)
def test_so_little_is_enough_and_less_is_not(least: dict[str, Any], below: dict[str, Any]) -> None:
    assert isinstance(validation.form(recipe(**least)), Recipe)
    assert isinstance(validation.form(recipe(**below)), list)


def test_a_key_is_kept_up_to_a_length() -> None:
    assert key_text(["x" * 1996])
    for wrong in (["x" * 1997], []):
        with pytest.raises(InvalidInput, match="primary key values"):
            key_text(wrong)
