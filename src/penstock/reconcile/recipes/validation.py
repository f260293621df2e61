"""Every fault of a recipe at once, each with what to do: first the document's form, then against
the real columns."""

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
"""What a parameter without a default is held against its column as."""


def read(document: object) -> Recipe:
    """The recipe; RecipeInvalid has every fault of its form."""
    found = form(document)
    if isinstance(found, Recipe):
        return found
    raise invalid(found)


def form(document: object) -> Recipe | list[Fault]:
    """The recipe, or the faults that its document has whatever the columns of its sources are."""
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


def against(draft: Draft, known: Known) -> list[Fault]:
    """What is wrong with a recipe for sources that have these columns; a side that is not known is
    not looked at."""
    return [
        *_engine(draft),
        *_sql_names(draft, known),
        *(fault for side in known for fault in _source(draft, side, known[side])),
        *(fault for path, rule in draft.rules for fault in _rule(path, rule, known)),
        *(
            fault
            for path, condition in draft.conditions
            for fault in _condition(path, condition, known)
        ),
        *_chosen(draft, known),
        *_parameters(draft),
        *_currencies(draft, known),
    ]


def check(recipe: Recipe, left: Columns, right: Columns) -> list[Fault]:
    """Raises for errors; the warnings come back."""
    found = against(whole(recipe), {"left": left, "right": right})
    errors = [fault for fault in found if fault.severity == "error"]
    if errors:
        raise invalid(errors)
    return found


def _engine(draft: Draft) -> Iterator[Fault]:
    if draft.engine is not None and draft.engine not in ENGINES:
        yield Fault(
            path="engine",
            message=f"There is no engine {draft.engine!r}.",
            suggestion=nearest(draft.engine, ENGINES),
        )


def _sql_names(draft: Draft, known: Known) -> Iterator[Fault]:
    """Free SQL over columns whose names SQL takes for one."""
    for side, columns in known.items() if draft.match_sql is not None else ():
        try:
            check_names(columns, side)
        except InvalidInput as e:
            suggestion = e.hint or "Rename one of them."
            yield Fault(path=f"sources.{side}", message=e.message, suggestion=suggestion)


def _source(draft: Draft, side: SideName, found: Columns) -> Iterator[Fault]:
    wanted, path = draft.sides.get(side), f"sources.{side}"
    for name in wanted.primary_key if wanted else ():
        yield from _known(f"{path}.primary_key", name, found)
        yield from _text(f"{path}.primary_key", name, found)
    if wanted and wanted.partition_key:
        yield from _known(f"{path}.partition_key", wanted.partition_key, found)
    for at, condition in draft.filters[side]:
        if condition.column in found:
            yield from _filter(at, condition, found[condition.column], draft.parameters)
        else:
            yield from _known(f"{at}.column", condition.column, found)


def _filter(
    path: str, condition: Filter, column: Column, parameters: Mapping[str, Parameter]
) -> Iterator[Fault]:
    """Values that its column cannot have, as the source itself would refuse them."""
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


def _rule(path: str, rule: Rule, known: Known) -> Iterator[Fault]:
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
            message=f"A {rule.pattern} rule checks one sum; this one has {len(sums)} sum_within conditions.",
            suggestion='Add {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}.',
        )
    for number, condition in enumerate(rule.conditions):
        yield from _condition(f"{path}.conditions.{number}", condition, known)
        if rule.pattern == "M:N" and not (is_key(condition) or isinstance(condition, SumWithin)):
            yield Fault(
                path=f"{path}.conditions.{number}",
                message=f"{condition.op} cannot tell which records of an M:N rule are one group.",
                suggestion="Group by eq or normalized conditions only (steps month and year make periods of dates).",
            )
    if not any(is_key(c) for c in rule.conditions):
        yield from _without_key(path, rule)


def _without_key(path: str, rule: Rule) -> Iterator[Fault]:
    severity = "error" if rule.pattern == "M:N" else "warning"
    yield Fault(
        path=path,
        message="The rule has no eq or normalized condition: every record is held against every other.",
        suggestion="Add an eq or normalized condition; without one the rule is refused for large sources.",
        severity=severity,
    )


def is_key(condition: Condition) -> bool:
    return isinstance(condition, Normalized) or (
        isinstance(condition, Compare) and condition.op == "eq"
    )


def _condition(path: str, condition: Condition, known: Known) -> Iterator[Fault]:
    columns: list[Column] = []
    for side in known:
        name = condition.left if side == "left" else condition.right
        yield from _known(f"{path}.{side}", name, known[side])
        columns += [known[side][name]] if name in known[side] else []
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


def _text(path: str, name: str, found: Columns) -> Iterator[Fault]:
    if name in found:
        yield from _have_text(path, [found[name]])


def _have_text(path: str, columns: Sequence[Column]) -> Iterator[Fault]:
    """Values that engines order or write in different ways are compared by none."""
    for column in (column for column in columns if not column.has_text):
        yield Fault(
            path=path,
            message=f"{column.name} is a {column.type}, which cannot be compared.",
            suggestion="Choose another column, or make a text of it in the source's query.",
        )


def _decimals(path: str, columns: Sequence[Column], most: int) -> Iterator[Fault]:
    """More decimals than there are digits would have to be rounded, which nothing is."""
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
    """A bound is compared with amounts of the most decimals that either side or the bound has."""
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
        message=f"{left.name} is {left.described} and {right.name} is {right.described}: they are never equal.",
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
                message=f"{MANUAL_RULE!r} is what evidence calls decisions by hand.",
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


def _chosen(draft: Draft, known: Known) -> Iterator[Fault]:
    labels = [pair.label for _, pair in draft.compare]
    if len(set(labels)) != len(labels):
        yield Fault(
            path="compare",
            message="Two compared fields have one name.",
            suggestion="Give them names.",
        )
    for side, found in known.items():
        for path, pair in draft.compare:
            yield from _known(f"{path}.{side}", getattr(pair, side), found)
            yield from _text(f"{path}.{side}", getattr(pair, side), found)
            if (column := found.get(getattr(pair, side))) is not None:
                yield from _decimals(f"{path}.{side}", [column], FULL)
        for name in getattr(draft.output.columns, side):
            yield from _known(f"output.columns.{side}", name, found)
        for what in ("amount", "currency"):
            wanted = getattr(draft.output, what)
            if wanted is not None:
                yield from _known(f"output.{what}.{side}", getattr(wanted, side), found)
        if draft.output.currency is not None:
            name = getattr(draft.output.currency, side)
            yield from _text(f"output.currency.{side}", name, found)
        if draft.output.amount is not None and (
            column := found.get(getattr(draft.output.amount, side))
        ):
            yield from _fits(f"output.amount.{side}", "amount", [column], _NUMBERS, "numbers")
            yield from _decimals(f"output.amount.{side}", [column], WIDE)


def _parameters(draft: Draft) -> Iterator[Fault]:
    asked: set[str] = set()
    for path, condition in (found for side in draft.filters.values() for found in side):
        for name in used(condition.value):
            asked.add(name)
            if name not in draft.parameters:
                yield Fault(
                    path=f"{path}.value",
                    message=f"There is no parameter {name}.",
                    suggestion=nearest(name, draft.parameters, "Declare it under parameters."),
                )
    for name in sorted(draft.parameters.keys() - asked):
        yield Fault(
            path=f"parameters.{name}",
            message="No filter uses this parameter.",
            suggestion=f'Use it as a filter\'s value, {{"parameter": "{name}"}}, or leave it out.',
            severity="warning",
        )


def used(value: object) -> list[str]:
    """The parameters that a filter's value names."""
    if isinstance(value, dict):
        return [str(value.get("parameter"))]
    return [name for item in value for name in used(item)] if isinstance(value, list) else []


def _currencies(draft: Draft, known: Known) -> Iterator[Fault]:
    """Amounts of several currencies are not comparable; nobody notices until a yen matches a
    dollar."""
    names = [
        next((n for n in known.get(side, ()) if n.lower() in CURRENCIES), None)
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


def _known(path: str, name: str, found: Columns) -> Iterator[Fault]:
    if name not in found:
        yield Fault(
            path=path, message=f"There is no column {name!r}.", suggestion=nearest(name, found)
        )
