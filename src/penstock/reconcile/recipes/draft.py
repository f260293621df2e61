"""The readable parts of an invalid recipe document, so that all faults can be reported at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from penstock.reconcile.recipes.filters import Filter, Parameter
from penstock.reconcile.recipes.model import (
    Compared,
    Condition,
    Output,
    Recipe,
    Rule,
    Side,
    SideName,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    T = TypeVar("T")

SIDES: tuple[SideName, SideName] = ("left", "right")
_CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Lists pair each part with its path; `conditions` are those of rules that are invalid as a
    whole."""

    sides: Mapping[SideName, Side]
    filters: Mapping[SideName, Sequence[tuple[str, Filter]]]
    rules: Sequence[tuple[str, Rule]]
    conditions: Sequence[tuple[str, Condition]]
    compare: Sequence[tuple[str, Compared]]
    output: Output
    parameters: Mapping[str, Parameter]
    engine: str | None
    match_sql: str | None


def whole(recipe: Recipe) -> Draft:
    sides: dict[SideName, Side] = {"left": recipe.sources.left, "right": recipe.sources.right}
    return Draft(
        sides=sides,
        filters={
            name: _numbered(f"sources.{name}.filters", side.filters) for name, side in sides.items()
        },
        rules=_numbered("rules", recipe.rules),
        conditions=(),
        compare=_numbered("compare", recipe.compare),
        output=recipe.output,
        parameters=recipe.parameters,
        engine=recipe.engine,
        match_sql=recipe.match_sql,
    )


def readable(document: object) -> Draft:
    content, sources = _object(document), _object(_object(document).get("sources"))
    rules = _list(content.get("rules"))
    good = list(_each(Rule.model_validate, "rules", rules))
    broken = [number for number in range(len(rules)) if f"rules.{number}" not in dict(good)]
    filters = {name: _list(_object(sources.get(name)).get("filters")) for name in SIDES}
    engine, match_sql = content.get("engine"), content.get("match_sql")
    return Draft(
        sides={name: side for name in SIDES if (side := _side(sources.get(name))) is not None},
        filters={
            name: list(_each(Filter.model_validate, f"sources.{name}.filters", filters[name]))
            for name in SIDES
        },
        rules=good,
        conditions=[
            condition for number in broken for condition in _conditions(number, rules[number])
        ],
        compare=list(_each(Compared.model_validate, "compare", _list(content.get("compare")))),
        output=_read(Output.model_validate, content.get("output", {})) or Output(),
        parameters=dict(_named(_object(content.get("parameters")))),
        engine=engine if isinstance(engine, str) else None,
        match_sql=match_sql if isinstance(match_sql, str) else None,
    )


def _side(raw: object) -> Side | None:
    """Without its filters, which are parsed one by one, and without unknown fields."""
    fields = {
        name: value
        for name, value in _object(raw).items()
        if name in Side.model_fields and name != "filters"
    }
    return _read(Side.model_validate, fields)


def _conditions(number: int, rule: object) -> Iterator[tuple[str, Condition]]:
    yield from _each(
        _CONDITION.validate_python,
        f"rules.{number}.conditions",
        _list(_object(rule).get("conditions")),
    )


def _named(raw: Mapping[str, object]) -> Iterator[tuple[str, Parameter]]:
    for name, value in raw.items():
        if (parameter := _read(Parameter.model_validate, value)) is not None:
            yield name, parameter


def _each(
    read: Callable[[object], T], path: str, values: Sequence[object]
) -> Iterator[tuple[str, T]]:
    for number, value in enumerate(values):
        if (parsed := _read(read, value)) is not None:
            yield f"{path}.{number}", parsed


def _read(read: Callable[[object], T], value: object) -> T | None:
    try:
        return read(value)
    except ValidationError:
        return None


def _numbered(path: str, parts: Sequence[T]) -> list[tuple[str, T]]:
    return [(f"{path}.{number}", part) for number, part in enumerate(parts)]


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
