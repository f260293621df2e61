"""CAST, TRY_CAST and written dates, called by `expressions`; `casts` does the casting."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql import casts
from penstock.reconcile.match_sql.parse import only, refused, shown
from penstock.reconcile.match_sql.types import DATE, SqlType, decimal, timestamp, whole
from penstock.reconcile.match_sql.values import DAY_SECONDS, Value

if TYPE_CHECKING:
    from penstock.reconcile.match_sql.expressions import Expressions
    from penstock.reconcile.match_sql.scope import Scope

_WHOLE_TYPES = {
    exp.DType.TINYINT: 3,
    exp.DType.SMALLINT: 5,
    exp.DType.INT: 10,
    exp.DType.BIGINT: 19,
}
_CASTS = "VARCHAR, BIGINT, INTEGER, SMALLINT, TINYINT, DECIMAL(p, s), DOUBLE, DATE, TIMESTAMP"


def cast(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    only(node, "this", "to", "safe", "_type")
    value, safe = compiler.value(node.this, scope), isinstance(node, exp.TryCast)
    to = node.args["to"]
    literal = None if safe else _literal(compiler, node, value.constant, to)
    if literal is not None:
        return literal
    maker = compiler.maker
    match to.this:
        case exp.DType.TEXT | exp.DType.VARCHAR if not to.expressions:
            return replace(maker.as_text(value), node=node)
        case exp.DType.DECIMAL:
            return casts.as_number(maker, node, value, _decimal(node, to), safe=safe)
        case kind if kind in _WHOLE_TYPES:
            return casts.as_number(maker, node, value, whole(_WHOLE_TYPES[kind]), safe=safe)
        case exp.DType.DOUBLE:
            return casts.as_double(maker, node, value, safe=safe)
        case exp.DType.DATE:
            return casts.as_date(maker, node, value, safe=safe)
        case exp.DType.TIMESTAMP | exp.DType.TIMESTAMPNTZ:
            return casts.as_timestamp(maker, node, value)
        case exp.DType.BOOLEAN:
            return casts.as_boolean(maker, node, value)
    raise refused(
        node,
        f"There is no cast to {shown(to)}.",
        f"Cast to {_CASTS} or BOOLEAN.",
    )


def _decimal(node: exp.Expr, to: exp.DataType) -> SqlType:
    sizes = [int(part.this.name) for part in to.expressions]
    precision, scale = [*sizes, 0][:2] if sizes else (18, 3)
    if not sizes or not 0 <= scale <= precision <= 38 or not precision:
        raise refused(
            node,
            f"{shown(to)} has no size from 1 to 38 digits.",
            "Write DECIMAL(18, 2).",
        )
    return decimal(precision - scale, scale)


def _literal(compiler: Expressions, node: exp.Expr, text: object, to: exp.Expr) -> Value | None:
    """A date or timestamp literal."""
    if not isinstance(text, str):
        return None
    try:
        if to.this is exp.DType.DATE:
            sql = compiler.maker.dialect.date(str((_plain_date(text) - date(1970, 1, 1)).days))
            return Value(sql=sql, type=DATE, node=node)
        if to.this in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None or not text[:1].isdigit():
                raise ValueError
            apart = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            ticks = (apart.days * DAY_SECONDS + apart.seconds) * 10**6 + apart.microseconds
            kind = timestamp("us", zoned=False)
            return Value(sql=f"CAST({ticks} AS BIGINT)", type=kind, node=node)
    except ValueError:
        raise refused(
            node,
            f"{shown(node)} is no {shown(to)}.",
            "Write DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'.",
        ) from None
    return None


def _plain_date(text: str) -> date:
    if len(text) != len("2024-01-31"):
        raise ValueError(text)
    return date.fromisoformat(text)
