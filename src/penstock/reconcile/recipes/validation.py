"""Validates recipes: all faults at once, each with a suggestion; first the document's form, then
against the real columns.

Called by the API before anything is saved or run, and by the match on the columns that it read.
No I/O.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pydantic import ValidationError

from penstock.engines.registry import ENGINES
from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.matching.amounts import FULL, WIDE, digits_of, scale_of
from penstock.reconcile.matching.carried import totalled
from penstock.reconcile.matching.column import Kind
from penstock.reconcile.matching.decided import MANUAL_RULE
from penstock.reconcile.matching.free_sql import check_names
from penstock.reconcile.recipes import document_errors as forms
from penstock.reconcile.recipes.draft import readable, whole
from penstock.reconcile.recipes.fault import Fault, nearest
from penstock.reconcile.recipes.model import (
    Compare,
    DateWindow,
    Normalized,
    Recipe,
    Similar,
    SumWithin,
    Tolerance,
)
from penstock.reconcile.staging.query import condition_sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.draft import Draft
    from penstock.reconcile.recipes.filters import Filter, Parameter
    from penstock.reconcile.recipes.model import Condition, Rule, SideName

    Columns = Mapping[str, Column]
    Known = Mapping[SideName, Columns]

_NUMBERS = frozenset({Kind.NUMBER, Kind.TEXT})
_DAYS = frozenset({Kind.DATE, Kind.MOMENT, Kind.TEXT})
_TEXT = frozenset({Kind.TEXT})
CURRENCIES = frozenset({"currency", "ccy", "currency_code"})
_STAND_INS = {"text": "text", "number": 1, "date": "2024-01-31", "boolean": True}
"""Values that stand for parameters without a default in the check of filters."""


def read(document: object) -> Recipe:
    """Parse a recipe; RecipeInvalid lists every fault of its form."""
    parsed = form(document)
    if isinstance(parsed, Recipe):
        return parsed
    raise invalid(parsed)


def form(document: object) -> Recipe | list[Fault]:
    """The recipe, or the faults of its document that do not depend on the columns of its
    sources."""
    try:
        recipe = Recipe.model_validate(document)
    except ValidationError as e:
        faults = forms.faults(e.errors(include_url=False, include_input=False))
        return [*faults, *_names(readable(document))]
    return [*_names(whole(recipe)), *_thresholds(recipe)] or recipe


def invalid(faults: Sequence[Fault]) -> RecipeInvalid:
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return RecipeInvalid(
        f"{first.path}: {first.message}{more}",
        hint=first.suggestion,
        faults=[asdict(fault) for fault in faults],
    )


def against(draft: Draft, schemas: Known) -> list[Fault]:
    """The faults of a recipe for sources with these columns; a side without columns is skipped."""
    return [
        *_engine(draft),
        *_sql_names(draft, schemas),
        *(fault for side in schemas for fault in _source(draft, side, schemas[side])),
        *(fault for path, rule in draft.rules for fault in _rule(path, rule, schemas)),
        *(
            fault
            for path, condition in draft.conditions
            for fault in _condition(path, condition, schemas)
        ),
        *_chosen(draft, schemas),
        *_parameters(draft),
        *_currencies(draft, schemas),
    ]


def check(recipe: Recipe, left: Columns, right: Columns) -> list[Fault]:
    """Raise for errors; returns the warnings."""
    faults = against(whole(recipe), {"left": left, "right": right})
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise invalid(errors)
    return faults


def _engine(draft: Draft) -> Iterator[Fault]:
    if draft.engine is not None and draft.engine not in ENGINES:
        yield Fault(
            path="engine",
            message=f"There is no engine {draft.engine!r}.",
            suggestion=nearest(draft.engine, ENGINES),
        )


def _sql_names(draft: Draft, schemas: Known) -> Iterator[Fault]:
    """Free SQL over columns whose names SQL cannot tell apart."""
    for side, columns in schemas.items() if draft.match_sql is not None else ():
        try:
            check_names(columns, side)
        except InvalidInput as e:
            suggestion = e.hint or "Rename one of them."
            yield Fault(path=f"sources.{side}", message=e.message, suggestion=suggestion)


def _source(draft: Draft, side: SideName, columns: Columns) -> Iterator[Fault]:
    side_draft, path = draft.sides.get(side), f"sources.{side}"
    for name in side_draft.primary_key if side_draft else ():
        yield from _unknown_column(f"{path}.primary_key", name, columns)
        yield from _text(f"{path}.primary_key", name, columns)
    if side_draft and side_draft.partition_key:
        yield from _unknown_column(f"{path}.partition_key", side_draft.partition_key, columns)
    for at, condition in draft.filters[side]:
        if condition.column in columns:
            yield from _filter(at, condition, columns[condition.column], draft.parameters)
        else:
            yield from _unknown_column(f"{at}.column", condition.column, columns)


def _filter(
    path: str, condition: Filter, column: Column, parameters: Mapping[str, Parameter]
) -> Iterator[Fault]:
    """Values that the column cannot have, checked as the source itself would."""
    if all(name in parameters for name in used(condition.value)):
        value = _stood_in(condition.value, parameters)
        try:
            condition_sql(condition.model_copy(update={"value": value}), column.kind, "duckdb")
        except InvalidInput as e:
            yield Fault(
                path=f"{path}.value", message=e.message, suggestion=e.hint or "Give another value."
            )


def _stood_in(value: object, parameters: Mapping[str, Parameter]) -> object:
    if isinstance(value, list):
        return [_stood_in(item, parameters) for item in value]
    if not isinstance(value, dict):
        return value
    declared = parameters[value["parameter"]]
    return _STAND_INS[declared.type] if declared.default is None else declared.default


def _rule(path: str, rule: Rule, schemas: Known) -> Iterator[Fault]:
    sums = [c for c in rule.conditions if isinstance(c, SumWithin)]
    if rule.pattern == "1:1" and sums:
        yield Fault(
            path=path,
            message="A 1:1 rule has nothing to sum.",
            suggestion="Use tolerance, or pattern 1:N.",
        )
    if rule.pattern != "1:1" and len(sums) != 1:
        yield Fault(
            path=path,
            message=(
                f"A {rule.pattern} rule checks one sum; "
                f"this one has {len(sums)} sum_within conditions."
            ),
            suggestion=(
                'Add {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}.'
            ),
        )
    for number, condition in enumerate(rule.conditions):
        yield from _condition(f"{path}.conditions.{number}", condition, schemas)
        if rule.pattern == "M:N" and not (is_key(condition) or isinstance(condition, SumWithin)):
            yield Fault(
                path=f"{path}.conditions.{number}",
                message=f"{condition.op} cannot tell which records of an M:N rule are one group.",
                suggestion=(
                    "Group by eq or normalized conditions only (steps month "
                    "and year make periods of dates)."
                ),
            )
    if not any(is_key(c) for c in rule.conditions):
        yield from _without_key(path, rule)


def _without_key(path: str, rule: Rule) -> Iterator[Fault]:
    severity = "error" if rule.pattern == "M:N" else "warning"
    yield Fault(
        path=path,
        message=(
            "The rule has no eq or normalized condition: every record is compared with every other."
        ),
        suggestion=(
            "Add an eq or normalized condition; without one the rule is refused for large sources."
        ),
        severity=severity,
    )


def is_key(condition: Condition) -> bool:
    return isinstance(condition, Normalized) or (
        isinstance(condition, Compare) and condition.op == "eq"
    )


def _condition(path: str, condition: Condition, schemas: Known) -> Iterator[Fault]:
    columns: list[Column] = []
    for side in schemas:
        name = condition.left if side == "left" else condition.right
        yield from _unknown_column(f"{path}.{side}", name, schemas[side])
        columns += [schemas[side][name]] if name in schemas[side] else []
    match condition:
        case Tolerance() | SumWithin():
            yield from _fits(path, condition.op, columns, _NUMBERS, "numbers")
            yield from _decimals(path, columns, WIDE)
            yield from _bounds(path, condition, columns)
        case DateWindow():
            yield from _fits(path, condition.op, columns, _DAYS, "dates")
        case Similar():
            yield from _fits(path, condition.op, columns, _TEXT, "text")
        case Normalized():
            dates = {"month", "year"} & {step for step in condition.steps if isinstance(step, str)}
            if dates:
                yield from _fits(path, dates.pop(), columns, _DAYS, "dates")
            yield from _have_text(path, columns)
        case Compare(op="contains" | "startswith" | "endswith"):
            yield from _fits(path, condition.op, columns, _TEXT, "text")
        case Compare() if len(columns) == 2:
            yield from _comparable(path, *columns)
            yield from _decimals(path, columns, FULL)
            yield from _have_text(path, columns)


def _fits(
    path: str, op: str, columns: Sequence[Column], kinds: frozenset[Kind], what: str
) -> Iterator[Fault]:
    for column in columns:
        if column.kind not in kinds:
            yield Fault(
                path=path,
                message=f"{op} takes {what}, but {column.name} is {column.described}.",
                suggestion=f"Choose a column of {what}, or cast it in the source's query.",
            )


def _text(path: str, name: str, columns: Columns) -> Iterator[Fault]:
    if name in columns:
        yield from _have_text(path, [columns[name]])


def _have_text(path: str, columns: Sequence[Column]) -> Iterator[Fault]:
    """Values that engines order or format differently cannot be compared."""
    for column in (column for column in columns if not column.has_text):
        yield Fault(
            path=path,
            message=f"{column.name} is a {column.type}, which cannot be compared.",
            suggestion="Choose another column, or make a text of it in the source's query.",
        )


def _decimals(path: str, columns: Sequence[Column], most: int) -> Iterator[Fault]:
    """More decimals than digits would require rounding; nothing is rounded."""
    for column in columns:
        if column.kind is Kind.NUMBER and column.scale > most:
            yield Fault(
                path=path,
                message=f"{column.name} has {column.scale} decimals; {most} are the most.",
                suggestion="Round it in the source's query.",
            )


def _bounds(
    path: str,
    condition: Tolerance | SumWithin,
    columns: Sequence[Column],
) -> Iterator[Fault]:
    """A bound is compared with amounts at the largest scale of both sides and the bound."""
    possible = (condition.absolute, condition.minus, condition.plus)
    bounds = [bound for bound in possible if bound is not None]
    scale = max((scale_of(bound) for bound in bounds), default=0)
    scale = max([scale, *(column.scale for column in columns if column.kind in _NUMBERS)])
    for bound in bounds:
        if digits_of(bound) + scale > WIDE:
            yield Fault(
                path=path,
                message=f"{bound:f} has more than {WIDE} digits, {scale} of them after the point.",
                suggestion="Give a smaller bound, or round the column in the source's query.",
            )


def _comparable(path: str, left: Column, right: Column) -> Iterator[Fault]:
    kinds = {left.kind, right.kind}
    if len(kinds) == 1 or Kind.TEXT in kinds or kinds == {Kind.DATE, Kind.MOMENT}:
        return
    yield Fault(
        path=path,
        message=(
            f"{left.name} is {left.described} and {right.name} is {right.described}: "
            "they are never equal."
        ),
        suggestion="Compare columns of one kind, or cast one of them in its source's query.",
    )


def _names(draft: Draft) -> Iterator[Fault]:
    seen: set[str] = set()
    for path, rule in draft.rules:
        if rule.name in seen:
            yield Fault(
                path=f"{path}.name",
                message=f"Another rule is called {rule.name!r} already.",
                suggestion="Give each rule a name of its own; the evidence tells rules by it.",
            )
        if rule.name == MANUAL_RULE:
            yield Fault(
                path=f"{path}.name",
                message=f"{MANUAL_RULE!r} is reserved for manual decisions in evidence.",
                suggestion="Give the rule another name.",
            )
        seen.add(rule.name)


def _thresholds(recipe: Recipe) -> Iterator[Fault]:
    if recipe.thresholds.max_unmatched_amount is not None and totalled(recipe) is None:
        yield Fault(
            path="thresholds.max_unmatched_amount",
            message="The recipe names no amounts, so this threshold can never be checked.",
            suggestion='Add output.amount, such as {"left": "amount", "right": "amount"}.',
        )


def _chosen(draft: Draft, schemas: Known) -> Iterator[Fault]:
    labels = [pair.label for _, pair in draft.compare]
    if len(set(labels)) != len(labels):
        yield Fault(
            path="compare",
            message="Two compared fields have one name.",
            suggestion="Give them names.",
        )
    for side, columns in schemas.items():
        for path, pair in draft.compare:
            yield from _unknown_column(f"{path}.{side}", getattr(pair, side), columns)
            yield from _text(f"{path}.{side}", getattr(pair, side), columns)
            if (column := columns.get(getattr(pair, side))) is not None:
                yield from _decimals(f"{path}.{side}", [column], FULL)
        for name in getattr(draft.output.columns, side):
            yield from _unknown_column(f"output.columns.{side}", name, columns)
        for what in ("amount", "currency"):
            pair_of_columns = getattr(draft.output, what)
            if pair_of_columns is not None:
                yield from _unknown_column(
                    f"output.{what}.{side}", getattr(pair_of_columns, side), columns
                )
        if draft.output.currency is not None:
            name = getattr(draft.output.currency, side)
            yield from _text(f"output.currency.{side}", name, columns)
        if draft.output.amount is not None and (
            column := columns.get(getattr(draft.output.amount, side))
        ):
            yield from _fits(f"output.amount.{side}", "amount", [column], _NUMBERS, "numbers")
            yield from _decimals(f"output.amount.{side}", [column], WIDE)


def _parameters(draft: Draft) -> Iterator[Fault]:
    used_names: set[str] = set()
    for path, condition in (placed for side in draft.filters.values() for placed in side):
        for name in used(condition.value):
            used_names.add(name)
            if name not in draft.parameters:
                yield Fault(
                    path=f"{path}.value",
                    message=f"There is no parameter {name}.",
                    suggestion=nearest(name, draft.parameters, "Declare it under parameters."),
                )
    for name in sorted(draft.parameters.keys() - used_names):
        yield Fault(
            path=f"parameters.{name}",
            message="No filter uses this parameter.",
            suggestion=f'Use it as a filter\'s value, {{"parameter": "{name}"}}, or leave it out.',
            severity="warning",
        )


def used(value: object) -> list[str]:
    """The parameters that a filter's value refers to."""
    if isinstance(value, dict):
        return [str(value.get("parameter"))]
    return [name for item in value for name in used(item)] if isinstance(value, list) else []


def _currencies(draft: Draft, schemas: Known) -> Iterator[Fault]:
    """Amounts of several currencies are not comparable; the mistake stays unnoticed until a yen
    matches a dollar."""
    names = [
        next((n for n in schemas.get(side, ()) if n.lower() in CURRENCIES), None)
        for side in ("left", "right")
    ]
    left, right = names
    if left is None or right is None:
        return
    for path, rule in draft.rules:
        amounts = any(isinstance(c, Tolerance | SumWithin) for c in rule.conditions)
        if amounts and not any(c.left == left and c.right == right for c in rule.conditions):
            yield Fault(
                path=path,
                message="Both sides have a currency, but the rule compares amounts without it.",
                suggestion=f'Add {{"left": "{left}", "op": "eq", "right": "{right}"}}.',
                severity="warning",
            )


def _unknown_column(path: str, name: str, columns: Columns) -> Iterator[Fault]:
    if name not in columns:
        yield Fault(
            path=path, message=f"There is no column {name!r}.", suggestion=nearest(name, columns)
        )
