"""Every fault of a recipe at once, each with what to do: first the document's form, then against the real columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from penstock.reconcile.column import Kind
from penstock.reconcile.errors import RecipeInvalid
from penstock.reconcile.recipe import (
    Compare,
    DateWindow,
    Normalized,
    Recipe,
    Similar,
    SumWithin,
    Tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.reconcile.column import Column
    from penstock.reconcile.recipe import Condition, Rule, SideName

    Columns = Mapping[str, Column]

_NUMBERS = frozenset({Kind.NUMBER, Kind.TEXT})
_DAYS = frozenset({Kind.DATE, Kind.MOMENT, Kind.TEXT})
_CURRENCIES = frozenset({"currency", "ccy", "currency_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`severity` is error or warning; a warning lets the recipe run."""

    path: str
    message: str
    suggestion: str
    severity: str = "error"


def read(document: object) -> Recipe:
    """The recipe; RecipeInvalid has every fault of its form."""
    found = form(document)
    if isinstance(found, Recipe):
        return found
    raise invalid(found)


def form(document: object) -> Recipe | list[Fault]:
    try:
        return Recipe.model_validate(document)
    except ValidationError as e:
        return [_of_form(error) for error in e.errors(include_url=False, include_input=False, include_context=False)]


def invalid(faults: Sequence[Fault]) -> RecipeInvalid:
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return RecipeInvalid(
        f"{first.path}: {first.message}{more}", hint=first.suggestion, faults=[asdict(fault) for fault in faults]
    )


def against(recipe: Recipe, left: Columns, right: Columns) -> list[Fault]:
    """What is wrong with a recipe for sources that have these columns."""
    sides: dict[SideName, Columns] = {"left": left, "right": right}
    return [
        *_sources(recipe, sides),
        *(fault for number, rule in enumerate(recipe.rules) for fault in _rule(f"rules.{number}", rule, sides)),
        *_names(recipe.rules),
        *_chosen(recipe, sides),
        *_parameters(recipe),
        *_currencies(recipe, sides),
    ]


def check(recipe: Recipe, left: Columns, right: Columns) -> list[Fault]:
    """Raises for errors; the warnings come back."""
    found = against(recipe, left, right)
    errors = [fault for fault in found if fault.severity == "error"]
    if errors:
        raise invalid(errors)
    return found


def _of_form(error: Any) -> Fault:
    path = ".".join(str(part) for part in error["loc"]) or "recipe"
    message = str(error["msg"]).removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            known = [name for name in Recipe.model_fields if len(error["loc"]) == 1]
            return Fault(
                path=path, message="There is no such field.", suggestion=_nearest(str(error["loc"][-1]), known)
            )
        case "missing":
            return Fault(path=path, message="It is missing.", suggestion=f"Add {path}.")
        case "union_tag_invalid" | "union_tag_not_found":
            ops = "eq, gt, gte, lt, lte, contains, startswith, endswith, tolerance, sum_within, date_window, "
            return Fault(
                path=f"{path}.op", message="There is no such op.", suggestion=f"Use one of {ops}normalized, similar."
            )
    return Fault(path=path, message=f"{message[:1].upper()}{message[1:]}.", suggestion="See the recipe's reference.")


def _sources(recipe: Recipe, sides: Mapping[SideName, Columns]) -> Iterator[Fault]:
    for side, found in sides.items():
        wanted = getattr(recipe.sources, side)
        path = f"sources.{side}"
        for name in wanted.primary_key:
            yield from _known(f"{path}.primary_key", name, found)
        if wanted.partition_key:
            yield from _known(f"{path}.partition_key", wanted.partition_key, found)
        for number, condition in enumerate(wanted.filters):
            yield from _known(f"{path}.filters.{number}.column", condition.column, found)


def _rule(path: str, rule: Rule, sides: Mapping[SideName, Columns]) -> Iterator[Fault]:
    sums = [c for c in rule.conditions if isinstance(c, SumWithin)]
    if rule.pattern == "1:1" and sums:
        yield Fault(path=path, message="A 1:1 rule has nothing to sum.", suggestion="Use tolerance, or pattern 1:N.")
    if rule.pattern != "1:1" and len(sums) != 1:
        yield Fault(
            path=path,
            message=f"A {rule.pattern} rule checks one sum; this one has {len(sums)} sum_within conditions.",
            suggestion='Add {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0}.',
        )
    for number, condition in enumerate(rule.conditions):
        yield from _condition(f"{path}.conditions.{number}", condition, sides)
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
    return isinstance(condition, Normalized) or (isinstance(condition, Compare) and condition.op == "eq")


def _condition(path: str, condition: Condition, sides: Mapping[SideName, Columns]) -> Iterator[Fault]:
    missing = [
        *_known(f"{path}.left", condition.left, sides["left"]),
        *_known(f"{path}.right", condition.right, sides["right"]),
    ]
    yield from missing
    if missing:
        return
    left, right = sides["left"][condition.left], sides["right"][condition.right]
    match condition:
        case Tolerance() | SumWithin():
            yield from _fits(path, condition.op, (left, right), _NUMBERS, "numbers")
        case DateWindow():
            yield from _fits(path, condition.op, (left, right), _DAYS, "dates")
        case Similar():
            yield from _fits(path, condition.op, (left, right), frozenset({Kind.TEXT}), "text")
        case Normalized():
            dates = {"month", "year"} & {step for step in condition.steps if isinstance(step, str)}
            if dates:
                yield from _fits(path, dates.pop(), (left, right), _DAYS, "dates")
        case Compare(op="contains" | "startswith" | "endswith"):
            yield from _fits(path, condition.op, (left, right), frozenset({Kind.TEXT}), "text")
        case Compare():
            yield from _comparable(path, left, right)


def _fits(path: str, op: str, pair: tuple[Column, Column], kinds: frozenset[Kind], what: str) -> Iterator[Fault]:
    for column in pair:
        if column.kind not in kinds:
            yield Fault(
                path=path,
                message=f"{op} takes {what}, but {column.name} is a {column.kind}.",
                suggestion=f"Choose a column of {what}, or cast it in the source's query.",
            )


def _comparable(path: str, left: Column, right: Column) -> Iterator[Fault]:
    kinds = {left.kind, right.kind}
    if len(kinds) == 1 or Kind.TEXT in kinds or kinds == {Kind.DATE, Kind.MOMENT}:
        return
    yield Fault(
        path=path,
        message=f"{left.name} is a {left.kind} and {right.name} is a {right.kind}: they are never equal.",
        suggestion="Compare columns of one kind, or cast one of them in its source's query.",
    )


def _names(rules: Sequence[Rule]) -> Iterator[Fault]:
    seen: set[str] = set()
    for number, rule in enumerate(rules):
        if rule.name in seen:
            yield Fault(
                path=f"rules.{number}.name",
                message=f"Another rule is called {rule.name!r} already.",
                suggestion="Give each rule a name of its own; the evidence tells rules by it.",
            )
        seen.add(rule.name)


def _chosen(recipe: Recipe, sides: Mapping[SideName, Columns]) -> Iterator[Fault]:
    for number, pair in enumerate(recipe.compare):
        yield from _known(f"compare.{number}.left", pair.left, sides["left"])
        yield from _known(f"compare.{number}.right", pair.right, sides["right"])
    labels = [pair.label for pair in recipe.compare]
    if len(set(labels)) != len(labels):
        yield Fault(path="compare", message="Two compared fields have one name.", suggestion="Give them names.")
    for side, found in sides.items():
        for name in getattr(recipe.output.columns, side):
            yield from _known(f"output.columns.{side}", name, found)
        for what in ("amount", "currency"):
            pair = getattr(recipe.output, what)
            if pair is not None:
                yield from _known(f"output.{what}.{side}", getattr(pair, side), found)
        if recipe.output.amount is not None and (column := found.get(getattr(recipe.output.amount, side))):
            yield from _fits("output.amount", "amount", (column, column), _NUMBERS, "numbers")


def _parameters(recipe: Recipe) -> Iterator[Fault]:
    for side in ("left", "right"):
        for number, condition in enumerate(getattr(recipe.sources, side).filters):
            for name in used(condition.value):
                if name not in recipe.parameters:
                    yield Fault(
                        path=f"sources.{side}.filters.{number}.value",
                        message=f"There is no parameter {name}.",
                        suggestion=_nearest(name, recipe.parameters, "Declare it under parameters."),
                    )


def used(value: object) -> list[str]:
    """The parameters that a filter's value names."""
    if isinstance(value, dict):
        return [str(value.get("parameter"))]
    return [name for item in value for name in used(item)] if isinstance(value, list) else []


def _currencies(recipe: Recipe, sides: Mapping[SideName, Columns]) -> Iterator[Fault]:
    """Amounts of several currencies are not comparable; nobody notices until a yen matches a dollar."""
    found = {side: next((n for n in columns if n.lower() in _CURRENCIES), None) for side, columns in sides.items()}
    if not all(found.values()):
        return
    for number, rule in enumerate(recipe.rules):
        amounts = any(isinstance(c, Tolerance | SumWithin) for c in rule.conditions)
        if amounts and not any(c.left == found["left"] and c.right == found["right"] for c in rule.conditions):
            yield Fault(
                path=f"rules.{number}",
                message="Both sides have a currency, but the rule compares amounts without it.",
                suggestion=f'Add {{"left": "{found["left"]}", "op": "eq", "right": "{found["right"]}"}}.',
                severity="warning",
            )


def _known(path: str, name: str, found: Columns) -> Iterator[Fault]:
    if name not in found:
        yield Fault(path=path, message=f"There is no column {name!r}.", suggestion=_nearest(name, found))


def _nearest(name: str, known: Mapping[str, object] | Sequence[str], otherwise: str = "") -> str:
    folded = {word.lower(): word for word in known}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {folded[close[0]]}?"
    return otherwise or (f"There are: {', '.join(sorted(known)[:20])}." if known else "Leave it out.")
