"""A side's records as SQL of its source: its table or query, with the recipe's filters as typed conditions."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.kit.errors import InvalidInput
from penstock.reconcile.column import Kind, column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from penstock.reconcile.recipe import Filter, Parameter, Recipe, Side

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")
_COMPARED = {"eq": exp.EQ, "neq": exp.NEQ, "gt": exp.GT, "gte": exp.GTE, "lt": exp.LT, "lte": exp.LTE}


def base(side: Side, dialect: str) -> str:
    """All records of a side, as the recipe names them."""
    if side.query is not None:
        return side.query
    parts = [exp.to_identifier(part, quoted=True) for part in (side.table or "").split(".")]
    if len(parts) > 3:
        raise InvalidInput(f"{side.table!r} is not a table's name.", hint="Write [catalog.][schema.]name.")
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return f"SELECT * FROM {exp.Table(**names).sql(dialect=dialect)}"


def filtered(sql: str, schema: pa.Schema, filters: Sequence[Filter], dialect: str, *, plain: bool) -> str:
    """The query with its filters; `plain` says that it is `SELECT * FROM table`, which stays one that can be cut."""
    if not filters:
        return sql
    where = " AND ".join(f"({_condition(condition, schema, dialect)})" for condition in filters)
    return f"{sql} WHERE {where}" if plain else f"SELECT * FROM (\n{sql}\n) AS q WHERE {where}"


def where(schema: pa.Schema, filters: Sequence[Filter], dialect: str) -> str:
    return " AND ".join(f"({_condition(condition, schema, dialect)})" for condition in filters) or "TRUE"


def bound(recipe: Recipe, side: Side, given: Mapping[str, Any]) -> Side:
    """The side with its parameters put in, each of the type that it was declared with."""
    values = {name: _value(name, declared, given) for name, declared in recipe.parameters.items()}
    if unknown := sorted(given.keys() - values.keys()):
        raise InvalidInput(
            f"There is no parameter {unknown[0][:80]}.",
            hint=f"Known: {', '.join(sorted(values))}." if values else "The recipe has none.",
        )
    filters = tuple(f.model_copy(update={"value": _put(f.value, values)}) for f in side.filters)
    return side.model_copy(update={"filters": filters})


def _value(name: str, declared: Parameter, given: Mapping[str, Any]) -> Any:
    value = given.get(name, declared.default)
    match declared.type:
        case "text" if isinstance(value, str):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        case "number" if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
            return value
        case "date" if isinstance(value, str) and _DATE.fullmatch(value):
            return value
    raise InvalidInput(
        f"Parameter {name} is missing." if value is None else f"Parameter {name} is no {declared.type}: {value!r:.80}.",
        hint="A date is written 2024-01-31.",
        parameter=name,
    )


def _put(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return values[value["parameter"]]
    return [_put(item, values) for item in value] if isinstance(value, list) else value


def _condition(condition: Filter, schema: pa.Schema, dialect: str) -> str:
    index = schema.get_field_index(condition.column)
    if index < 0:
        raise InvalidInput(
            f"There is no column {condition.column[:80]!r} to filter by.",
            hint=f"There are: {', '.join(schema.names[:20])}.",
        )
    named = exp.column(exp.to_identifier(condition.column, quoted=True))
    kind = column(condition.column, schema.field(index).type).kind
    return _tree(condition, named, kind).sql(dialect=dialect)


def _tree(condition: Filter, named: exp.Column, kind: Kind) -> exp.Expr:
    value: Any = condition.value
    match condition.op:
        case "is_null":
            is_null = exp.Is(this=named, expression=exp.Null())
            return exp.Not(this=is_null) if value is False else is_null
        case "between":
            low, high = (_literal(item, kind, condition) for item in value)
            return exp.Between(this=named, low=low, high=high)
        case "in":
            return exp.In(this=named, expressions=[_literal(item, kind, condition) for item in value])
        case "like":
            return exp.Like(this=named, expression=exp.Literal.string(str(value)))
        case op:
            return _COMPARED[op](this=named, expression=_literal(value, kind, condition))


def _literal(value: Any, kind: Kind, condition: Filter) -> exp.Expr:
    """A value as the column's kind has it; one that the column cannot have is an error, never a filter of nothing."""
    match kind, value:
        case (_, bool()):
            return exp.true() if value else exp.false()
        case Kind.NUMBER, int() | float():
            return exp.Literal.number(_digits(value))
        case Kind.NUMBER, str() if re.fullmatch(r"-?\d+(\.\d+)?", value):
            return exp.Literal.number(value)
        case Kind.TEXT, str() | int():
            return exp.Literal.string(str(value))
        case Kind.DATE, str() if _DATE.fullmatch(value):
            return exp.cast(exp.Literal.string(value), "date")
        case Kind.MOMENT, str() if _DATE.fullmatch(value) or _MOMENT.fullmatch(value):
            return exp.cast(
                exp.Literal.string(value), "timestamptz" if re.search(r"(Z|[+-]\d{2}:\d{2})$", value) else "timestamp"
            )
        case Kind.OTHER, str():
            return exp.Literal.string(value)
    raise InvalidInput(
        f"The filter on {condition.column} compares a {kind} with {value!r:.80}.", hint=f"Give it a {kind}."
    )


def _digits(value: float) -> str:
    return format(Decimal(str(value)), "f")
