"""The SQL that reads a side from its source: its table or query, with the recipe's filters as typed
conditions."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.kit.errors import InvalidInput
from penstock.reconcile.matching.column import Kind, column, columns
from penstock.reconcile.recipes.filters import is_date, is_finite, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from penstock.kit.json_value import JsonValue
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.filters import Filter, Parameter
    from penstock.reconcile.recipes.model import Recipe, Side

_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")
_DAY = len("2024-01-31")
_SUCH_AS = {
    Kind.NUMBER: "a number",
    Kind.TEXT: "a text in quotes",
    Kind.DATE: 'a date such as "2024-01-31"',
    Kind.MOMENT: 'a moment such as "2024-01-31T12:00:00Z"',
    Kind.OTHER: "true, false or a text",
}
_LIKE = "like is for text columns and takes a text with % and _."
_ESCAPED = r"A backslash stands before %, _ or another backslash: 50\% is the text 50%."
_LONE_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\(?![%_\\])")
_COMPARED = {
    "eq": exp.EQ,
    "neq": exp.NEQ,
    "gt": exp.GT,
    "gte": exp.GTE,
    "lt": exp.LT,
    "lte": exp.LTE,
}


def base(side: Side, dialect: str) -> str:
    """SELECT of all records of a side."""
    if side.query is not None:
        return side.query
    parts = [exp.to_identifier(part, quoted=True) for part in (side.table or "").split(".")]
    if len(parts) > 3:
        raise InvalidInput(
            f"{side.table!r} is not a table's name.", hint="Write [catalog.][schema.]name."
        )
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return f"SELECT * FROM {exp.Table(**names).sql(dialect=dialect)}"


def filtered(
    sql: str, schema: pa.Schema, filters: Sequence[Filter], dialect: str, *, plain: bool
) -> str:
    """The query with its filters; `plain` marks a `SELECT * FROM table`, which must stay
    splittable."""
    if not filters:
        return sql
    where = " AND ".join(f"({_condition(condition, schema, dialect)})" for condition in filters)
    return f"{sql} WHERE {where}" if plain else f"SELECT * FROM (\n{sql}\n) AS q WHERE {where}"


def where_inside(schema: pa.Schema, filters: Sequence[Filter]) -> str:
    """The filters as SQL over the relation of files with this schema, in a DuckDB-dialect
    engine."""
    by_name = columns(schema)
    for condition in filters:
        _check_there(condition, schema)
    conditions = [_inner_condition(condition, by_name[condition.column]) for condition in filters]
    return " AND ".join(f"({condition})" for condition in conditions) or "TRUE"


def _inner_condition(condition: Filter, column: Column) -> str:
    named: exp.Expr = exp.column(column.sql)
    if column.kind is Kind.NUMBER and column.is_text:
        named = exp.cast(named, f"decimal(38, {column.scale})")
    return _condition_sql(condition, column.kind, named, "duckdb")


def bound(recipe: Recipe, side: Side, arguments: Mapping[str, JsonValue]) -> Side:
    """The side with its parameters replaced by values of their declared types."""
    values = {
        name: _value(name, declared, arguments) for name, declared in recipe.parameters.items()
    }
    if unknown := sorted(arguments.keys() - values.keys()):
        raise InvalidInput(
            f"There is no parameter {unknown[0][:80]}.",
            hint=f"Known: {', '.join(sorted(values))}." if values else "The recipe has none.",
        )
    filters = tuple(f.model_copy(update={"value": _put(f.value, values)}) for f in side.filters)
    return side.model_copy(update={"filters": filters})


def _value(name: str, declared: Parameter, arguments: Mapping[str, JsonValue]) -> JsonValue:
    value = arguments.get(name, declared.default)
    if declared.takes(value):
        return value
    raise InvalidInput(
        f"Parameter {name} is missing."
        if value is None
        else f"Parameter {name} is no {declared.type}: {value!r:.80}.",
        hint="A date is written 2024-01-31.",
        parameter=name,
    )


def _put(value: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(value, list):
        return [_put(item, values) for item in value]
    if not isinstance(value, dict):
        return value
    name = str(value["parameter"])
    if name not in values:
        raise InvalidInput(
            f"A filter names parameter {name[:80]}, which the recipe does not declare.",
            hint="Declare it under parameters.",
            parameter=name[:80],
        )
    return values[name]


def _condition(condition: Filter, schema: pa.Schema, dialect: str) -> str:
    _check_there(condition, schema)
    kind = column(condition.column, schema.field(condition.column).type).kind
    return condition_sql(condition, kind, dialect)


def _check_there(condition: Filter, schema: pa.Schema) -> None:
    if condition.column not in schema.names:
        raise InvalidInput(
            f"There is no column {condition.column[:80]!r} to filter by.",
            hint=f"There are: {', '.join(schema.names[:20])}.",
        )


def condition_sql(condition: Filter, kind: Kind, dialect: str) -> str:
    """A filter on a column of this kind; InvalidInput if value and kind do not fit."""
    named = exp.column(exp.to_identifier(condition.column, quoted=True))
    return _condition_sql(condition, kind, named, dialect)


def _condition_sql(condition: Filter, kind: Kind, named: exp.Expr, dialect: str) -> str:
    if kind is Kind.TEXT and _numeric(condition, dialect):
        kind, named = Kind.NUMBER, exp.cast(_filled(named), "decimal(38, 12)")
    if kind is Kind.TEXT:
        return _text_tree(condition, named, dialect).sql(dialect=dialect)
    return _tree(condition, named, kind).sql(dialect=dialect)


def _numeric(condition: Filter, dialect: str) -> bool:
    """Whether text is parsed as numbers: columns of files are text, and a value that is no number
    is an error."""
    values = condition.value if isinstance(condition.value, list) else [condition.value]
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    return numbers and dialect == "duckdb" and condition.op != "is_null"


def _filled(named: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=exp.Trim(this=named), expression=exp.Literal.string(""))


def _tree(condition: Filter, named: exp.Expr, kind: Kind) -> exp.Expr:
    value: Any = condition.value
    match condition.op:
        case "is_null":
            is_null = exp.Is(this=named, expression=exp.Null())
            return exp.Not(this=is_null) if value is False else is_null
        case "between":
            low, high = (_literal(item, kind, condition) for item in value)
            return exp.Between(this=named, low=low, high=high)
        case "in":
            return exp.In(
                this=named, expressions=[_literal(item, kind, condition) for item in value]
            )
        case "like":
            raise _unfit(value, kind, condition, hint=_LIKE)
        case op:
            return _COMPARED[op](this=named, expression=_literal(value, kind, condition))


def _text_tree(condition: Filter, named: exp.Expr, dialect: str) -> exp.Expr:
    """A filter on text, compared by characters on every source, whatever its collation."""
    if condition.op == "like":
        return _like(condition, named, dialect)
    plain = _tree(condition, named, Kind.TEXT)
    if condition.op == "is_null" or dialect not in ("mysql", "postgres"):
        return plain
    ordered = condition.op in ("gt", "gte", "lt", "lte", "between")
    if dialect == "postgres":
        text = exp.cast(named.copy(), "text")
        return _tree(condition, _collated(text, "C"), Kind.TEXT) if ordered else plain
    by_bytes = _tree(condition, _bytes(_unicode(named)), Kind.TEXT)
    for literal in list(by_bytes.find_all(exp.Literal)):
        literal.replace(_bytes(literal.copy()))
    # An index serves the plain equality; it lets through what differs in case only.
    return exp.and_(plain, by_bytes) if condition.op in ("eq", "in") else by_bytes


def _like(condition: Filter, named: exp.Expr, dialect: str) -> exp.Expr:
    """ESCAPE is explicit: sources differ in whether backslash is the default."""
    value = condition.value
    if not isinstance(value, str):
        raise _unfit(value, Kind.TEXT, condition, hint=_LIKE)
    if _LONE_BACKSLASH.search(value):
        raise _unfit(value, Kind.TEXT, condition, hint=_ESCAPED)
    text = _collated(_unicode(named), "utf8mb4_bin") if dialect == "mysql" else named
    like = exp.Like(this=text, expression=exp.Literal.string(value))
    if dialect == "bigquery":  # has no ESCAPE; its escape is the backslash
        return like
    return exp.Escape(this=like, expression=exp.Literal.string("\\"))


def _collated(text: exp.Expr, name: str) -> exp.Expr:
    return exp.Collate(this=text, expression=exp.to_identifier(name, quoted=name == "C"))


def _unicode(text: exp.Expr) -> exp.Expr:
    kind = exp.DataType(this=exp.DType.CHARACTER_SET, kind=exp.var("utf8mb4"))
    return exp.Cast(this=text.copy(), to=kind)


def _bytes(text: exp.Expr) -> exp.Expr:
    return exp.Cast(this=text, to=exp.DataType.build("binary", dialect="mysql"))


def _literal(value: object, kind: Kind, condition: Filter) -> exp.Expr:
    """A value as a literal of the column's kind; a value that the column cannot have is an error,
    not a filter that matches nothing."""
    match kind, value:
        case Kind.OTHER, bool():
            return exp.true() if value else exp.false()
        case _, bool():
            raise _unfit(value, kind, condition)
        case Kind.NUMBER, int() | float() if is_finite(value):
            return exp.Literal.number(_digits(value))
        case Kind.NUMBER, str() if is_number(value):
            return exp.Literal.number(value)
        case Kind.TEXT, int() if condition.op in ("eq", "neq", "in") and is_finite(value):
            return exp.Literal.string(str(value))
        case Kind.TEXT, str():
            return exp.Literal.string(value)
        case Kind.DATE, str() if is_date(value):
            return exp.cast(exp.Literal.string(value), "date")
        case Kind.MOMENT, str() if is_date(value[:10]) and (
            len(value) == _DAY or _MOMENT.fullmatch(value)
        ):
            zoned = re.search(r"(Z|[+-]\d{2}:\d{2})$", value[_DAY:])
            return exp.cast(exp.Literal.string(value), "timestamptz" if zoned else "timestamp")
        case Kind.OTHER, str():
            return exp.Literal.string(value)
    raise _unfit(value, kind, condition)


def _unfit(value: object, kind: Kind, condition: Filter, hint: str = "") -> InvalidInput:
    return InvalidInput(
        f"The filter {condition.op} on {condition.column} compares a {kind} with {value!r:.80}.",
        hint=hint or f"Use {_SUCH_AS[kind]}.",
        column=condition.column,
    )


def _digits(value: float) -> str:
    return format(Decimal(str(value)), "f")
