"""The aggregates of match_sql, and the names of its window functions.

`windows` calls `aggregate` for those that stand in an expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.call import INTEGER
from penstock.reconcile.match_sql.parse import refused
from penstock.reconcile.match_sql.types import Sort, decimal
from penstock.reconcile.match_sql.values import Value

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.reconcile.match_sql.values import Maker

AGGREGATES = frozenset({"bool_and", "bool_or", "count", "max", "min", "sum"})
WINDOWS = frozenset({"dense_rank", "first_value", "lag", "lead", "rank", "row_number"})
_MOST_SUMMED = 28
"""Digits of numbers whose sums fit 38, of up to ten billion rows."""


def aggregate(
    maker: Maker,
    node: exp.Expr,
    name: str,
    value: Value | None,
    *,
    distinct: bool,
) -> Value:
    """An aggregate without its window; `count(*)` has no argument."""
    if value is None or name == "count":
        what = "*" if value is None else f"DISTINCT {value.sql}" if distinct else value.sql
        return Value(sql=f"COUNT({what})", type=INTEGER, node=node)
    sort = value.type.sort
    if distinct:
        raise refused(node, f"{name}(DISTINCT …) is not part of its SQL.", "Group in a subquery.")
    if name == "sum":
        if sort is not Sort.NUMBER:
            raise refused(
                node,
                f"{name} takes exact numbers, and {value} is none.",
                "CAST(x AS DECIMAL(20, 2)).",
            )
        if value.type.digits + value.type.scale > _MOST_SUMMED:
            raise refused(
                node,
                f"A sum of {value} may have more than 38 digits.",
                f"Cast it to {_MOST_SUMMED} digits at most: CAST(x AS DECIMAL(20, 2)).",
            )
        exact = maker.fits(value, decimal(value.type.digits, value.type.scale))
        return Value(
            sql=f"SUM({exact.sql})",
            type=decimal(value.type.digits + 10, value.type.scale),
            node=node,
        )
    if name in ("bool_and", "bool_or"):
        if sort is not Sort.BOOLEAN:
            raise refused(node, f"{value} is no boolean.", "Write a comparison.")
    elif sort is Sort.DOUBLE:  # DataFusion loses NaN and infinities in groups
        raise refused(node, f"{name} takes no {value}.", "Cast it: CAST(x AS DECIMAL(20, 2)).")
    elif sort in (Sort.BOOLEAN, Sort.BYTES, Sort.OTHER, Sort.NULL):
        raise refused(node, f"{name} takes no {value}.", "Write bool_or(x), or CASE.")
    return Value(sql=f"{name.upper()}({value.sql})", type=value.type, node=node)
