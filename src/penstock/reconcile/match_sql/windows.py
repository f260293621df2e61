"""Aggregates and windows, called by `expressions`: where they may stand, and their order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql import aggregates
from penstock.reconcile.match_sql.aggregates import AGGREGATES, WINDOWS
from penstock.reconcile.match_sql.call import Call
from penstock.reconcile.match_sql.parse import only, refused, shown
from penstock.reconcile.match_sql.types import WHOLE_DIGITS, Sort, whole
from penstock.reconcile.match_sql.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.reconcile.match_sql.expressions import Expressions
    from penstock.reconcile.match_sql.scope import Scope

_MOST_SHIFT = 1000
_FRAME = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def aggregate_call(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    """An aggregate without a window."""
    return _finished(_aggregate(compiler, node, scope))


def _aggregate(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    if not scope.may_aggregate or scope.inside_aggregate:
        raise refused(
            node,
            f"{shown(node)} stands where no aggregate may.",
            "Write it after SELECT or HAVING.",
        )
    name, arguments = node.name.lower(), node.expressions
    if len(arguments) != 1:
        raise refused(node, f"{name} takes one argument.", "Write count(*) or sum(x).")
    [argument] = arguments
    if isinstance(argument, exp.Star):
        if name != "count" or any(argument.args.values()):
            raise refused(node, f"{name} takes a column.", "Name the column.")
        return aggregates.aggregate(compiler.maker, node, name, None, distinct=False)
    distinct = isinstance(argument, exp.Distinct)
    if distinct:
        only(argument, "expressions")
        [argument] = argument.expressions if len(argument.expressions) == 1 else [argument]
    value = compiler.value(argument, replace(scope, inside_aggregate=True))
    return aggregates.aggregate(compiler.maker, node, name, value, distinct=distinct)


def _finished(value: Value) -> Value:
    """Cast an aggregate or a window function to its declared type; engines return others."""
    return replace(value, sql=f"CAST({value.sql} AS {value.type.sql})")


def window(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    only(node, "this", "partition_by", "order", "over")
    if not scope.may_window or not isinstance(node.this, exp.Anonymous):
        raise refused(
            node,
            f"{shown(node)} stands where no window may.",
            "Write it after SELECT, in a subquery.",
        )
    name = node.this.name.lower()
    parts = [compiler.value(part, scope).sql for part in node.args.get("partition_by") or ()]
    ordered = node.args["order"].expressions if node.args.get("order") else []
    order = [_ordered(compiler, part, scope) for part in ordered]
    if name in AGGREGATES:
        value = _window_aggregate(compiler, node.this, scope)
        return _finished(_over(value, parts, order, ""))
    if name not in WINDOWS:
        raise refused(node, f"{name} has no window.", "Leave OVER (…) out.")
    if not order:
        raise refused(node, f"{shown(node)} has no order.", "Write ORDER BY inside OVER (…).")
    if name in ("rank", "dense_rank"):
        _no_arguments(node.this)
        value = Value(sql=f"{name.upper()}()", type=whole(WHOLE_DIGITS), node=node)
        return _finished(_over(value, parts, order, ""))
    if scope.tie_break is None:
        raise refused(
            node,
            f"Rows that are alike would have no order in {shown(node)}.",
            "Write it over one SELECT, not over UNION ALL.",
        )
    order += [f"{sql} ASC NULLS LAST" for sql in scope.tie_break]
    value = _positional(compiler, node.this, name, scope)
    frame = "" if name in ("lag", "lead") else _FRAME
    over = _over(value, parts, order, frame)
    return _finished(over) if name == "row_number" else over


def _window_aggregate(compiler: Expressions, node: exp.Expr, scope: Scope) -> Value:
    if scope.groups is not None:
        raise refused(
            node,
            f"{shown(node)} is a window over groups.",
            "Group in a subquery first.",
        )
    if any(isinstance(part, exp.Distinct) for part in node.expressions):
        raise refused(node, f"{shown(node)} has no window.", "Count in a subquery.")
    return _aggregate(compiler, node, replace(scope, may_aggregate=True))


def _positional(compiler: Expressions, node: exp.Anonymous, name: str, scope: Scope) -> Value:
    """row_number, lag, lead and first_value."""
    if name == "row_number":
        _no_arguments(node)
        return Value(sql="ROW_NUMBER()", type=whole(WHOLE_DIGITS), node=node)
    values = [compiler.value(part, scope) for part in node.expressions]
    if not values or len(values) > (1 if name == "first_value" else 2):
        raise refused(node, f"{name} takes a value, and by how many rows.", "Write lag(x, 1).")
    shift = ""
    if len(values) == 2:
        number = Call(
            name=name,
            node=node,
            arguments=values,
            maker=compiler.maker,
        ).constant_number(1, 0, _MOST_SHIFT)
        shift = f", {number}"
    value = values[0]
    if value.type.sort in (Sort.OTHER, Sort.NULL):
        raise refused(node, f"{name} takes no {value.type}.", "Choose another column.")
    return Value(sql=f"{name.upper()}({value.sql}{shift})", type=value.type, node=node)


def _no_arguments(node: exp.Anonymous) -> None:
    if node.expressions:
        raise refused(node, f"{node.name.lower()} takes no arguments.", "Leave them out.")


def _ordered(compiler: Expressions, node: exp.Expr, scope: Scope) -> str:
    value = compiler.value(node.this, scope)
    if value.type.sort in (Sort.OTHER, Sort.BYTES, Sort.NULL):
        raise refused(node, f"{value} has no order.", "Order by another column.")
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{value.sql} {way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _over(value: Value, parts: Sequence[str], order: Sequence[str], frame: str) -> Value:
    pieces = [f"PARTITION BY {', '.join(parts)}"] if parts else []
    pieces += [f"ORDER BY {', '.join(order)}"] if order else []
    pieces += [frame] if frame else []
    return replace(value, sql=f"{value.sql} OVER ({' '.join(pieces)})")
