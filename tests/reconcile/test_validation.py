"""Validation reports every fault at once, each with a suggestion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.matching.column import columns
from penstock.reconcile.recipes import validation
from penstock.reconcile.recipes.draft import readable, whole
from penstock.reconcile.recipes.model import MAX_RULES, Recipe
from tests.reconcile.match_run import recipe

if TYPE_CHECKING:
    from penstock.reconcile.recipes.fault import Fault

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


def faults(**parts: Any) -> list[Fault]:
    document = recipe(**parts)
    parsed = validation.form(document)
    schemas: dict[Any, Any] = {"left": LEFT, "right": LEFT}
    if isinstance(parsed, Recipe):
        return validation.against(whole(parsed), schemas)
    return [*parsed, *validation.against(readable(document), schemas)]


def rule(*conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "r", "conditions": list(conditions), **more}


def test_a_good_recipe_has_none() -> None:
    assert faults(rules=[rule(KEY)]) == []


def test_all_faults_come_at_once_each_with_a_suggestion() -> None:
    all_faults = faults(
        rules=[
            rule(
                {"left": "amout", "op": "tolerance", "right": "day", "absolute": 1}, pattern="1:N"
            ),
            rule({"left": "day", "op": "eq", "right": "amount"}),
        ],
        output={"columns": {"left": ["nothing"]}},
    )
    by_path = {fault.path: fault for fault in all_faults if fault.severity == "error"}
    assert by_path["rules.0.conditions.0.left"].suggestion == "Did you mean amount?"
    assert "checks one sum" in by_path["rules.0"].message
    assert "never equal" in by_path["rules.1.conditions.0"].message
    assert "another rule" in by_path["rules.1.name"].message.lower()
    assert "output.columns.left" in by_path
    assert all(fault.suggestion for fault in all_faults)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.null(), "worth is a column without a type, for it has no values"),
        (pa.bool_(), "worth is a bool"),
        (pa.list_(pa.int64()), "worth is a list<item: int64>"),
        (pa.string(), None),
        (pa.timestamp("us"), "worth is a moment"),
    ],
)
def test_a_column_of_a_wrong_type_is_described(kind: pa.DataType, words: str | None) -> None:
    right = columns(pa.schema([("id", pa.int64()), ("ref", pa.string()), ("worth", kind)]))
    amounts = {"left": "amount", "op": "tolerance", "right": "worth", "absolute": 1}
    document = validation.read(recipe(rules=[rule(KEY, amounts)]))
    reported = validation.against(whole(document), {"left": LEFT, "right": right})
    messages = [fault.message for fault in reported if fault.severity == "error"]
    assert messages == ([] if words is None else [f"tolerance takes numbers, but {words}."])


def test_a_missing_key_column_is_a_fault() -> None:
    side = {"upload": "0" * 32, "primary_key": "invoice_id"}
    [fault] = faults(
        rules=[rule(KEY)], sources={"left": side, "right": {**side, "primary_key": "id"}}
    )
    assert (fault.path, fault.message) == (
        "sources.left.primary_key",
        "There is no column 'invoice_id'.",
    )


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
        ({"rules": [rule({**KEY, "op": "tolerance"})]}, "rules.0.conditions.0"),
        (
            {"rules": [rule({**KEY, "op": "tolerance", "absolute": "0.0000001"})]},
            "rules.0.conditions.0.absolute",
        ),
        (
            {"rules": [rule({**KEY, "op": "tolerance", "absolute": -1})]},
            "rules.0.conditions.0.absolute",
        ),
        ({"rules": [rule({**KEY, "op": "date_window"})]}, "rules.0.conditions.0"),
        (
            {"rules": [rule({**KEY, "op": "normalized", "steps": [{"regex": "("}]})]},
            "rules.0.conditions.0.steps.0",
        ),
        (
            {"rules": [rule({**KEY, "op": "normalized", "steps": ["lower"]})]},
            "rules.0.conditions.0.steps.0",
        ),
        ({"rules": [rule({**KEY, "extra": 1})]}, "rules.0.conditions.0.extra"),
        ({"rules": [rule(KEY)], "output": {"columns": {"middle": []}}}, "output.columns.middle"),
        (
            {"rules": [rule(KEY)], "parameters": {"since": {"type": "date", "default": "soon"}}},
            "parameters.since",
        ),
        ({"rules": [rule(KEY)], "parameters": {"1": {"type": "date"}}}, "parameters.1"),
        ({"rules": [rule(KEY)], "engine": "duckdc"}, "engine"),
        ({"rules": [rule(KEY)], "rulez": []}, "rulez"),
        ({"rules": [rule(KEY)], "sources": {}}, "sources.left"),
        ({"rules": [rule({**KEY, "op": "contains"}, pattern="M:N")]}, "rules.0"),
    ],
)
def test_a_wrong_form_is_named_by_its_path(parts: dict[str, Any], path: str) -> None:
    errors = [fault for fault in faults(**parts) if fault.severity == "error"]
    assert any(fault.path.startswith(path) for fault in errors), errors
    assert all(fault.suggestion and fault.message.endswith((".", "!", "?")) for fault in errors), (
        errors
    )


def test_a_wrong_form_here_hides_no_fault_elsewhere() -> None:
    side = {
        "upload": "0" * 32,
        "primary_key": "nobody",
        "filters": [{"column": "day", "op": "gtt", "value": 1}],
    }
    right = {
        "upload": "0" * 32,
        "primary_key": "id",
        "filters": [{"column": "dya", "op": "gt", "value": "2024-01-31"}],
    }
    all_faults = faults(
        sources={"left": side, "right": right},
        rules=[
            rule(
                {"left": "reff", "op": "eq", "right": "ref"},
                {"left": "amount", "op": "tolerance", "right": "amount"},
            ),
            rule({"left": "ref", "op": "eq", "right": "nothing"}),
        ],
        compare=[{"left": "amount"}, {"left": "amout", "right": "amount"}],
        rulez=[],
    )
    by_path = {fault.path: fault.suggestion for fault in all_faults}
    assert by_path.keys() >= {
        "sources.left.filters.0.op",
        "sources.left.primary_key",
        "sources.right.filters.0.column",
        "rules.0.conditions.0.left",
        "rules.0.conditions.1",
        "rules.1.conditions.0.right",
        "compare.0.right",
        "compare.1.left",
        "rulez",
    }
    assert by_path["sources.right.filters.0.column"] == "Did you mean day?"
    assert by_path["rulez"] == "Did you mean rules?"
    assert '"absolute"' in by_path["rules.0.conditions.1"]


def test_what_is_no_recipe_at_all_is_one_fault() -> None:
    documents: list[object] = [[], "recipe", None, 5]
    for document in documents:
        reported = validation.form(document)
        assert isinstance(reported, list)
        assert [fault.path for fault in reported] == ["recipe"]
        assert validation.against(readable(document), {"left": LEFT, "right": LEFT}) == []


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("equals", "eq"),
        ("tolerence", "tolerance"),
        ("datewindow", "date_window"),
        ("sum", "sum_within"),
    ],
)
def test_an_op_that_is_not_there_is_answered_with_one_that_is(wrong: str, near: str) -> None:
    [fault] = [f for f in faults(rules=[rule({**KEY, "op": wrong})]) if f.severity == "error"]
    assert near in fault.suggestion


def test_a_step_that_is_not_there_is_one_fault_with_the_steps_that_are() -> None:
    [fault] = faults(rules=[rule({**KEY, "op": "normalized", "steps": ["trim", "lower"]})])
    assert (fault.path, "'punctuation'" in fault.suggestion) == (
        "rules.0.conditions.0.steps.1",
        True,
    )
    [fault] = faults(
        rules=[rule({**KEY, "op": "normalized", "steps": [{"regex": "a", "with": "b"}]})]
    )
    assert fault.path == "rules.0.conditions.0.steps.0.with"


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
        {"column": "id", "op": "gt", "value": {"param": "since"}},
        {"column": "id", "op": "gt", "value": {"parameter": 5}},
        {"column": "id", "op": "in", "value": [1, None]},
        {"column": "id", "op": "between", "value": [1, [2]]},
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


@pytest.mark.parametrize(
    ("column", "op", "value"),
    [
        ("id", "gt", "many"),
        ("id", "eq", True),
        ("id", "like", "1%"),
        ("day", "lt", "2024-02-30"),
        ("day", "eq", 20240131),
        ("amount", "between", ["1", "two"]),
        ("amount", "gt", float("nan")),
        ("ref", "eq", False),
        ("id", "in", [1, "x"]),
        ("day", "gt", {"parameter": "last"}),
    ],
)
def test_a_filter_that_does_not_fit_its_column_is_a_fault(column: str, op: str, value: Any) -> None:
    side = {
        "upload": "0" * 32,
        "primary_key": "id",
        "filters": [{"column": column, "op": op, "value": value}],
    }
    other = {"upload": "0" * 32, "primary_key": "id"}
    [fault] = faults(
        rules=[rule(KEY)],
        sources={"left": side, "right": other},
        parameters={"last": {"type": "number"}},
    )[:1]
    assert fault.path == "sources.left.filters.0.value"
    assert f"The filter {op} on {column} compares" in fault.message


def test_a_parameter_that_no_filter_uses_is_warned_of() -> None:
    [fault] = faults(rules=[rule(KEY)], parameters={"last": {"type": "number"}})
    assert (fault.path, fault.severity) == ("parameters.last", "warning")


@pytest.mark.parametrize(
    ("regex", "replace", "good"),
    [
        (r"^INV-(\d+)$", r"\1", True),
        (r"\\", "", True),
        (r"^INV-\d+$", r"\1", False),
        (r"(a)", "$1", False),
        (r"(a)", r"\0", False),
        (r"(?=x)", "", False),
        (r"x(?<!y)", "", False),
        (r"(a)\1", "", False),
        (r"[[:alpha:]]", "", False),
    ],
)
def test_a_regex_is_what_every_engine_understands_alike(
    regex: str, replace: str, *, good: bool
) -> None:
    step = {"regex": regex, "replace": replace}
    assert (faults(rules=[rule({**KEY, "op": "normalized", "steps": [step]})]) == []) is good


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


@pytest.mark.parametrize(
    ("names", "path"), [(("r", "r"), "rules.1.name"), (("manual", "r"), "rules.0.name")]
)
def test_rules_that_evidence_could_not_tell_apart_are_refused_before_any_source_is_read(
    names: tuple[str, str], path: str
) -> None:
    rules = [rule(KEY, name=name) for name in names]
    faults_of_form = validation.form(recipe(rules=rules))
    assert isinstance(faults_of_form, list)
    assert [fault.path for fault in faults_of_form] == [path]
    with pytest.raises(RecipeInvalid, match=path):
        validation.read(recipe(rules=rules))
    wrong_elsewhere = validation.form(recipe(rules=rules, engine=7))
    assert isinstance(wrong_elsewhere, list)
    assert {fault.path for fault in wrong_elsewhere} == {"engine", path}


@pytest.mark.parametrize(
    ("parts", "refused"),
    [
        ({"rules": [rule(KEY)]}, True),
        (
            {"match_sql": "SELECT l.id AS left_id, r.id AS right_id FROM left_src l, right_src r"},
            True,
        ),
        (
            {"rules": [rule(KEY)], "output": {"amount": {"left": "amount", "right": "amount"}}},
            False,
        ),
        (
            {
                "rules": [
                    rule(
                        KEY, {"left": "amount", "op": "tolerance", "right": "amount", "absolute": 1}
                    )
                ]
            },
            False,
        ),
    ],
)
def test_a_threshold_of_amounts_needs_amounts(parts: dict[str, Any], refused: bool) -> None:
    limited = validation.form(recipe(thresholds={"max_unmatched_amount": 0}, **parts))
    assert isinstance(validation.form(recipe(thresholds={"max_unmatched_pct": 0}, **parts)), Recipe)
    if refused:
        assert isinstance(limited, list)
        assert [fault.path for fault in limited] == ["thresholds.max_unmatched_amount"]
    else:
        assert isinstance(limited, Recipe)
