"""Every fault at once, with what to do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.reconcile import validation
from penstock.reconcile.column import columns
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.recipe import MAX_RULES, Recipe
from tests.reconcile.stand import recipe

LEFT = columns(
    pa.schema(
        [
            ("id", pa.int64()),
            ("amount", pa.decimal128(9, 2)),
            ("day", pa.date32()),
            ("ref", pa.string()),
            ("currency", pa.string()),
        ]
    )
)
KEY = {"left": "ref", "op": "eq", "right": "ref"}


def faults(**parts: Any) -> list[validation.Fault]:
    found = validation.form(recipe(**parts))
    return found if isinstance(found, list) else validation.against(found, LEFT, LEFT)


def rule(*conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "r", "conditions": list(conditions), **more}


def test_a_good_recipe_has_none() -> None:
    assert faults(rules=[rule(KEY)]) == []


def test_all_faults_come_at_once_each_with_a_suggestion() -> None:
    found = faults(
        rules=[
            rule({"left": "amout", "op": "tolerance", "right": "day", "absolute": 1}, pattern="1:N"),
            rule({"left": "day", "op": "eq", "right": "amount"}),
        ],
        output={"columns": {"left": ["nothing"]}},
    )
    said = {fault.path: fault for fault in found if fault.severity == "error"}
    assert said["rules.0.conditions.0.left"].suggestion == "Did you mean amount?"
    assert "checks one sum" in said["rules.0"].message
    assert "never equal" in said["rules.1.conditions.0"].message
    assert "another rule" in said["rules.1.name"].message.lower()
    assert "output.columns.left" in said
    assert all(fault.suggestion for fault in found)


def test_a_missing_key_column_is_a_fault() -> None:
    side = {"upload": "0" * 32, "primary_key": "invoice_id"}
    [fault] = faults(rules=[rule(KEY)], sources={"left": side, "right": {**side, "primary_key": "id"}})
    assert (fault.path, fault.message) == ("sources.left.primary_key", "There is no column 'invoice_id'.")


def test_amounts_without_their_currency_are_warned_of() -> None:
    amounts = {"left": "amount", "op": "tolerance", "right": "amount", "absolute": 0}
    [fault] = faults(rules=[rule(KEY, amounts)])
    assert fault.severity == "warning"
    assert '"left": "currency"' in fault.suggestion


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ({}, "recipe"),
        ({"rules": [rule(KEY)], "match_sql": "SELECT 1"}, "recipe"),
        ({"rules": [rule({**KEY, "op": "equals"})]}, "rules.0.conditions.0.op"),
        ({"rules": [rule({**KEY, "op": "tolerance"})]}, "rules.0.conditions.0.tolerance"),
        (
            {"rules": [rule({**KEY, "op": "tolerance", "absolute": "0.0000001"})]},
            "rules.0.conditions.0.tolerance.absolute",
        ),
        ({"rules": [rule({**KEY, "op": "tolerance", "absolute": -1})]}, "rules.0.conditions.0.tolerance.absolute"),
        ({"rules": [rule({**KEY, "op": "date_window"})]}, "rules.0.conditions.0.date_window"),
        ({"rules": [rule({**KEY, "op": "normalized", "steps": [{"regex": "("}]})]}, "rules.0.conditions.0.normalized"),
        ({"rules": [rule(KEY)], "rulez": []}, "rulez"),
        ({"rules": [rule(KEY)], "sources": {}}, "sources.left"),
        ({"rules": [rule({**KEY, "op": "contains"}, pattern="M:N")]}, "rules.0"),
    ],
)
def test_a_wrong_form_is_named_by_its_path(parts: dict[str, Any], path: str) -> None:
    assert any(fault.path.startswith(path) for fault in faults(**parts))


@pytest.mark.parametrize(
    "condition",
    [
        {"column": "id", "op": "between", "value": 1},
        {"column": "id", "op": "in", "value": []},
        {"column": "id", "op": "eq"},
        {"column": "id", "op": "eq", "value": [1]},
        {"column": "id", "op": "is_null", "value": "yes"},
        {"column": "id", "op": "like", "value": 5},
        {"column": "id", "op": "resembles", "value": 5},
    ],
)
def test_a_wrong_filter_is_an_error_never_ignored(condition: dict[str, Any]) -> None:
    side = {"upload": "0" * 32, "primary_key": "id", "filters": [condition]}
    with pytest.raises(RecipeInvalid):
        validation.read(recipe(rules=[rule(KEY)], sources={"left": side, "right": side}))


def test_a_filter_of_an_unknown_parameter_is_a_fault() -> None:
    side = {"upload": "0" * 32, "primary_key": "id"}
    filtered = {**side, "filters": [{"column": "id", "op": "gt", "value": {"parameter": "since"}}]}
    [fault] = faults(rules=[rule(KEY)], sources={"left": filtered, "right": side}, parameters={})
    assert "no parameter since" in fault.message


def test_the_limit_of_rules_is_held_at_it_and_past_it() -> None:
    def many(count: int) -> list[dict[str, Any]]:
        return [{**rule(KEY), "name": str(n)} for n in range(count)]

    assert faults(rules=many(MAX_RULES)) == []
    assert faults(rules=many(MAX_RULES + 1))


def test_a_digest_is_of_the_meaning_not_of_the_words() -> None:
    short = validation.read(recipe(rules=[rule(KEY)]))
    long = validation.read(recipe(rules=[rule(KEY, pattern="1:1")], description="the same"))
    other = validation.read(recipe(rules=[rule({**KEY, "op": "gt"})]))
    assert short.digest == long.digest != other.digest
    assert Recipe.model_validate(short.document()) == short
