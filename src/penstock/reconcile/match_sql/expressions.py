"""Compiles expression trees of match_sql to typed SQL, over the columns of a scope.

`select` and `queries` call it. `conditions`, `cast_syntax` and `windows` compile their parts and
call it for the operands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql import arithmetic, conditions, dates
from penstock.reconcile.match_sql.aggregates import AGGREGATES, WINDOWS
from penstock.reconcile.match_sql.cast_syntax import cast
from penstock.reconcile.match_sql.date_functions import date_part
from penstock.reconcile.match_sql.functions import call
from penstock.reconcile.match_sql.parse import IN_THE_REFERENCE, only, refused, shown
from penstock.reconcile.match_sql.types import BOOLEAN, NULL, TEXT, Sort, whole
from penstock.reconcile.match_sql.values import DAY_SECONDS, PER_SECOND, Maker, Value
from penstock.reconcile.match_sql.windows import aggregate_call, window
from penstock.reconcile.recipes.fault import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.reconcile.match_sql.scope import Scope

_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_INTERVALS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": DAY_SECONDS, "WEEK": 7 * DAY_SECONDS}
_LAST_TICKS = 9_000_000_000_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Expressions:
    maker: Maker

    def value(self, node: exp.Expr, scope: Scope) -> Value:
        if (key := self._group_key(node, scope)) is not None:
            return key
        if (compile_node := _COMPILERS.get(type(node))) is not None and not _is_subquery(node):
            return compile_node(self, node, scope)
        match node:
            case exp.Paren():
                return self.value(node.this, scope)
            case exp.Literal():
                text = self.maker.text(node, node.name)
                return text if node.is_string else self.maker.number(node, Decimal(node.name))
            case exp.Boolean():
                return self.maker.boolean(node, "TRUE" if node.this else "FALSE")
            case exp.Null():
                return Value(sql="NULL", type=NULL, node=node)
            case exp.Neg():
                return arithmetic.negated(self.maker, node, self.value(node.this, scope))
            case exp.Exists() | exp.In() | exp.Subquery():
                raise refused(
                    node,
                    f"{shown(node)} is a subquery inside an expression.",
                    "Join it, or write EXISTS or IN as a condition of WHERE, joined by AND.",
                )
        raise refused(node, f"{shown(node)} is not part of its SQL.", IN_THE_REFERENCE)

    def _group_key(self, node: exp.Expr, scope: Scope) -> Value | None:
        if scope.groups is None or scope.inside_aggregate:
            return None
        keys = [value for key, value in scope.groups if key == node]
        return replace(keys[0], node=node) if keys else None

    def condition(self, node: exp.Expr, scope: Scope) -> Value:
        """A boolean expression."""
        value = self.value(node, scope)
        if value.type.sort is Sort.NULL:
            return self.maker.fits(value, BOOLEAN)
        if value.type.sort is not Sort.BOOLEAN:
            raise refused(node, f"{value} is neither true nor false.", "Write a comparison.")
        return value

    # columns

    def column(self, node: exp.Expr, scope: Scope) -> Value:
        only(node, "this", "table")
        table = node.text("table")
        if isinstance(node.this, exp.Star):
            raise refused(node, "* is for a list of columns.", "Name the column.")
        if not table and (merged := scope.merged.get(node.name.casefold())) is not None:
            return self._grouped(replace(merged, node=node), scope)
        at: Scope | None = scope
        while at is not None:
            columns = at.find(node.name, table)
            if len(columns) > 1:
                raise refused(
                    node,
                    f"There are several columns {shown(node)}.",
                    "Write the table before it: l.x.",
                )
            if columns:
                [(sql, kind)] = columns
                value = Value(sql=sql, type=kind, node=node)
                return self._grouped(value, scope) if at is scope else value
            at = at.outer
        names = [name for one in scope.relations for name, _, _ in one.columns]
        raise refused(node, f"There is no column {shown(node)}.", nearest(node.name, names))

    def _grouped(self, value: Value, scope: Scope) -> Value:
        if scope.groups is None or scope.inside_aggregate:
            return value
        if any(key.sql == value.sql for _, key in scope.groups):
            return value
        raise refused(
            value.node,
            f"{shown(value.node)} is not what the rows are grouped by.",
            "Add it to GROUP BY, or write min(x) or max(x).",
        )

    def extract(self, node: exp.Expr, scope: Scope) -> Value:
        value = self.value(node.expression, scope)
        return date_part(self.maker, node, node.this.name.lower(), value)

    # operators

    def _operands(self, node: exp.Expr, scope: Scope) -> tuple[Value, Value]:
        return self.value(node.this, scope), self.value(node.expression, scope)

    def compared(self, node: exp.Expr, scope: Scope) -> Value:
        return self.maker.compared(node, _COMPARISONS[type(node)], *self._operands(node, scope))

    def concatenated(self, node: exp.Expr, scope: Scope) -> Value:
        values = self._operands(node, scope)
        for value in values:
            if value.type.sort not in (Sort.TEXT, Sort.NULL):
                raise refused(node, f"{value} is no text in {shown(node)}.", "CAST(x AS VARCHAR).")
        return Value(sql=f"({' || '.join(v.sql for v in values)})", type=TEXT, node=node)

    def added(self, node: exp.Expr, scope: Scope) -> Value:
        if isinstance(node.expression, exp.Interval):
            return self._shifted(node, scope)
        a, b = self._operands(node, scope)
        operator, dialect = ("+" if isinstance(node, exp.Add) else "-"), self.maker.dialect
        if a.type.sort is not Sort.DATE:
            return arithmetic.added(self.maker, node, operator, a, b)
        if b.type.sort is Sort.DATE and operator == "-":
            sql = f"CAST({dialect.day(a.sql)} - {dialect.day(b.sql)} AS BIGINT)"
            return Value(sql=sql, type=whole(8), node=node)
        return dates.moved(self.maker, node, operator, a, b)

    def multiplied(self, node: exp.Expr, scope: Scope) -> Value:
        a, b = self._operands(node, scope)
        match node:
            case exp.Mul():
                return arithmetic.multiplied(self.maker, node, a, b)
            case exp.Div():
                return arithmetic.divided(self.maker, node, a, b)
        return arithmetic.whole_divided(
            self.maker, node, "%" if isinstance(node, exp.Mod) else "//", a, b
        )

    def _shifted(self, node: exp.Expr, scope: Scope) -> Value:
        """A date or timestamp plus or minus an interval of fixed length."""
        value, interval = self.value(node.this, scope), node.expression
        unit = interval.args.get("unit")
        name = unit.name.upper().removesuffix("S") if unit is not None else ""
        number = interval.this.name if isinstance(interval.this, exp.Literal) else ""
        if name not in _INTERVALS or not number.isdigit():
            raise refused(
                node,
                f"{shown(interval)} has no fixed length.",
                "Write INTERVAL 3 DAY, with WEEK, DAY, HOUR, MINUTE or SECOND.",
            )
        operator = "+" if isinstance(node, exp.Add) else "-"
        seconds = int(number) * _INTERVALS[name]
        if value.type.sort is Sort.DATE and seconds % DAY_SECONDS == 0:
            days = self.maker.number(node, Decimal(seconds // DAY_SECONDS))
            return dates.moved(self.maker, node, operator, value, days)
        if value.type.sort is not Sort.TIMESTAMP or seconds > 10**11:
            raise refused(node, f"{value} cannot be moved by {shown(interval)}.", "Write day + 3.")
        ticks = seconds * PER_SECOND[value.type.unit]
        if ticks > _LAST_TICKS:
            raise refused(node, f"{shown(interval)} is too long.", "Write a shorter one.")
        wide = f"(CAST({value.sql} AS DECIMAL(20, 0)) {operator} CAST({ticks} AS DECIMAL(20, 0)))"
        wrong = f"NOT ({wide} BETWEEN -{_LAST_TICKS} AND {_LAST_TICKS})"
        sql = f"({value.sql} {operator} {ticks})"
        return self.maker.guarded(node, sql, value.type, value, wrong, "would pass what is counted")

    # functions

    def call(self, node: exp.Expr, scope: Scope) -> Value:
        name = node.name.lower()
        if name in AGGREGATES:
            return aggregate_call(self, node, scope)
        if name in WINDOWS:
            raise refused(node, f"{name} needs a window.", f"Write {name}(…) OVER (ORDER BY …).")
        return call(self.maker, node, name, [self.value(part, scope) for part in node.expressions])

    def own_syntax(self, node: exp.Expr, scope: Scope) -> Value:
        match node:
            case exp.Trim():
                only(node, "this", "position", "expression")
                place = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
                    node.args.get("position") or "",
                )
                sign = node.args.get("expression")
                if sign is not None and not (isinstance(sign, exp.Literal) and sign.name == " "):
                    raise refused(
                        node,
                        "trim takes spaces only.",
                        "Write regexp_replace(x, '^[…]+', '', 'g').",
                    )
                return call(self.maker, node, place or "trim", [self.value(node.this, scope)])
            case exp.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                values = [self.value(part, scope) for part in parts if part is not None]
                return call(self.maker, node, "substr", values)
        only(node, "this", "substr")
        values = [self.value(node.args[name], scope) for name in ("this", "substr")]
        return call(self.maker, node, "strpos", values)


def _is_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and bool(node.args.get("query"))


_COMPILERS: Mapping[type[exp.Expr], Callable[[Expressions, exp.Expr, Scope], Value]] = {
    exp.Column: Expressions.column,
    exp.And: conditions.joined,
    exp.Or: conditions.joined,
    exp.Not: conditions.negation,
    exp.Is: conditions.is_null_or_truth,
    exp.In: conditions.in_list,
    exp.Between: conditions.between,
    exp.Like: conditions.like,
    exp.Escape: conditions.like,
    exp.Case: conditions.case,
    exp.If: conditions.case,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Extract: Expressions.extract,
    exp.Window: window,
    exp.Anonymous: Expressions.call,
    exp.Trim: Expressions.own_syntax,
    exp.Substring: Expressions.own_syntax,
    exp.StrPosition: Expressions.own_syntax,
    exp.DPipe: Expressions.concatenated,
    exp.Add: Expressions.added,
    exp.Sub: Expressions.added,
    exp.Mul: Expressions.multiplied,
    exp.Div: Expressions.multiplied,
    exp.IntDiv: Expressions.multiplied,
    exp.Mod: Expressions.multiplied,
    **dict.fromkeys(_COMPARISONS, Expressions.compared),
}
"""The compiler of each type of node that has parts of its own."""
