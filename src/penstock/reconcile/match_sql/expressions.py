"""Compiles expression trees of match_sql to typed SQL, over the columns of a scope."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.reconcile.match_sql import functions
from penstock.reconcile.match_sql.functions import AGGREGATES, MOST_SHIFT, WINDOWS, call, date_part
from penstock.reconcile.match_sql.parse import IN_THE_REFERENCE, refused, shown
from penstock.reconcile.match_sql.types import (
    BOOLEAN,
    DATE,
    NULL,
    TEXT,
    WHOLE_DIGITS,
    Sort,
    SqlType,
    decimal,
    timestamp,
    whole,
)
from penstock.reconcile.match_sql.values import DAY_SECONDS, PER_SECOND, Maker, Value
from penstock.reconcile.recipes.fault import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
_WHOLE_TYPES = {
    exp.DType.TINYINT: 3,
    exp.DType.SMALLINT: 5,
    exp.DType.INT: 10,
    exp.DType.BIGINT: 19,
}
_INTERVALS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": DAY_SECONDS, "WEEK": 7 * DAY_SECONDS}
_CASTS = "VARCHAR, BIGINT, INTEGER, SMALLINT, TINYINT, DECIMAL(p, s), DOUBLE, DATE, TIMESTAMP"
_LAST_TICKS = 9_000_000_000_000_000_000
_FRAME = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation of FROM: its columns by name, as SQL, and the columns that identify its rows; None
    where nothing does."""

    name: str
    columns: Sequence[tuple[str, str, SqlType]]
    identity: Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that an expression may use. In a grouped SELECT `groups` are the grouping
    expressions."""

    relations: Sequence[Relation] = ()
    merged: Mapping[str, Value] = field(default_factory=dict)
    outer: Scope | None = None
    groups: Sequence[tuple[exp.Expr, Value]] | None = None
    inside_aggregate: bool = False
    may_aggregate: bool = False
    may_window: bool = False
    tie_break: Sequence[str] | None = None

    def find(self, name: str, table: str) -> list[tuple[str, SqlType]]:
        name, table = name.casefold(), table.casefold()
        return [
            (sql, kind)
            for relation in self.relations
            if not table or relation.name.casefold() == table
            for own, sql, kind in relation.columns
            if own.casefold() == name
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expressions:
    maker: Maker

    def value(self, node: exp.Expr, scope: Scope) -> Value:
        if (key := self._group_key(node, scope)) is not None:
            return key
        compile_node = self._special(node)
        if compile_node is not None:
            return compile_node(node, scope)
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
                return self.maker.negated(node, self.value(node.this, scope))
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

    def _special(self, node: exp.Expr) -> Callable[[exp.Expr, Scope], Value] | None:
        """The compiler of a node type that has parts of its own."""
        if isinstance(node, exp.In) and node.args.get("query"):
            return None
        kinds: Mapping[type[exp.Expr], Callable[[exp.Expr, Scope], Value]] = {
            exp.Column: self._column,
            exp.And: self._joined,
            exp.Or: self._joined,
            exp.Not: self._not,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.Escape: self._like,
            exp.Case: self._case,
            exp.If: self._case,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Extract: self._extract,
            exp.Window: self._window,
            exp.Anonymous: self._call,
            exp.Trim: self._own_syntax,
            exp.Substring: self._own_syntax,
            exp.StrPosition: self._own_syntax,
            exp.DPipe: self._concatenated,
            exp.Add: self._added,
            exp.Sub: self._added,
            exp.Mul: self._multiplied,
            exp.Div: self._multiplied,
            exp.IntDiv: self._multiplied,
            exp.Mod: self._multiplied,
            **dict.fromkeys(_COMPARISONS, self._compared),
        }
        return kinds.get(type(node))

    def condition(self, node: exp.Expr, scope: Scope) -> Value:
        """A boolean expression."""
        value = self.value(node, scope)
        if value.type.sort is Sort.NULL:
            return self.maker.fits(value, BOOLEAN)
        if value.type.sort is not Sort.BOOLEAN:
            raise refused(node, f"{value} is neither true nor false.", "Write a comparison.")
        return value

    # columns

    def _column(self, node: exp.Expr, scope: Scope) -> Value:
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

    # conditions

    def _joined(self, node: exp.Expr, scope: Scope) -> Value:
        kind = type(node)
        parts: list[exp.Expr] = []
        rest = [node]
        while rest:
            part = rest.pop()
            if isinstance(part, kind):
                rest += [part.expression, part.this]
            else:
                parts.append(part)
        word = " AND " if kind is exp.And else " OR "
        sql = word.join(self.condition(part, scope).sql for part in parts)
        return self.maker.boolean(node, f"({sql})")

    def _not(self, node: exp.Expr, scope: Scope) -> Value:
        return self.maker.boolean(node, f"(NOT {self.condition(node.this, scope).sql})")

    def _extract(self, node: exp.Expr, scope: Scope) -> Value:
        value = self.value(node.expression, scope)
        return date_part(self.maker, node, node.this.name.lower(), value)

    def _is(self, node: exp.Expr, scope: Scope) -> Value:
        if isinstance(node.expression, exp.Null):
            return self.maker.boolean(node, f"({self.value(node.this, scope).sql} IS NULL)")
        if isinstance(node.expression, exp.Boolean):
            value = self.condition(node.this, scope).sql
            word = "TRUE" if node.expression.this else "FALSE"
            return self.maker.boolean(node, f"({value} IS {word})")
        raise refused(node, f"{shown(node)} is not part of its SQL.", "Write IS NULL.")

    def _in(self, node: exp.Expr, scope: Scope) -> Value:
        only(node, "this", "expressions")
        values = [self.value(part, scope) for part in (node.this, *node.expressions)]
        _, (value, *others) = self.maker.alike(node, values)
        if all(isinstance(part, exp.Literal) for part in node.expressions):
            listed = ", ".join(other.sql for other in others)
            return self.maker.boolean(node, f"({value.sql} IN ({listed}))")
        # Of columns DataFusion has answered null for every row once one of them was null.
        equal = " OR ".join(f"{value.sql} = {other.sql}" for other in others)
        return self.maker.boolean(node, f"({equal})")

    def _between(self, node: exp.Expr, scope: Scope) -> Value:
        only(node, "this", "low", "high")
        value, low, high = (self.value(node.args[name], scope) for name in ("this", "low", "high"))
        least = self.maker.compared(node, ">=", value, low)
        most = self.maker.compared(node, "<=", value, high)
        return self.maker.boolean(node, f"({least.sql} AND {most.sql})")

    def _like(self, node: exp.Expr, scope: Scope) -> Value:
        escape = node.expression if isinstance(node, exp.Escape) else None
        like = node if escape is None else node.this
        if not isinstance(like, exp.Like):
            raise refused(node, f"{shown(node)} is not part of its SQL.", "Write LIKE.")
        only(like, "this", "expression", "negate")
        text = self.value(like.this, scope)
        if text.type.sort not in (Sort.TEXT, Sort.NULL):
            raise refused(node, f"{text} is no text.", "Cast it: CAST(x AS VARCHAR).")
        if not isinstance(like.expression, exp.Literal) or not like.expression.is_string:
            raise refused(
                node,
                "LIKE takes a pattern that is written out.",
                "Write starts_with or contains.",
            )
        pattern = _escaped(node, like.expression.name, "" if escape is None else escape.name)
        sql = self.maker.dialect.like(self.maker.fits(text, TEXT).sql, pattern)
        return self.maker.boolean(node, f"(NOT {sql})" if like.args.get("negate") else sql)

    def _case(self, node: exp.Expr, scope: Scope) -> Value:
        if isinstance(node, exp.If):
            conditions = [self.condition(node.this, scope).sql]
            results = [node.args["true"], node.args.get("false") or exp.Null()]
        else:
            ifs, subject = node.args["ifs"], node.this
            conditions = [self._when(node, subject, part.this, scope) for part in ifs]
            results = [part.args["true"] for part in ifs]
            results.append(node.args.get("default") or exp.Null())
        kind, values = self.maker.alike(node, [self.value(part, scope) for part in results])
        *then, other = [value.sql for value in values]
        pieces = [f"WHEN {when} THEN {sql}" for when, sql in zip(conditions, then, strict=True)]
        return Value(sql=f"CASE {' '.join(pieces)} ELSE {other} END", type=kind, node=node)

    def _when(
        self,
        node: exp.Expr,
        subject: exp.Expr | None,
        condition: exp.Expr,
        scope: Scope,
    ) -> str:
        if subject is None:
            return self.condition(condition, scope).sql
        a, b = self.value(subject, scope), self.value(condition, scope)
        return self.maker.compared(node, "=", a, b).sql

    # casts

    def _cast(self, node: exp.Expr, scope: Scope) -> Value:
        only(node, "this", "to", "safe", "_type")
        value, safe = self.value(node.this, scope), isinstance(node, exp.TryCast)
        to = node.args["to"]
        literal = None if safe else self._literal(node, value.constant, to)
        if literal is not None:
            return literal
        maker = self.maker
        match to.this:
            case exp.DType.TEXT | exp.DType.VARCHAR if not to.expressions:
                return replace(maker.as_text(value), node=node)
            case exp.DType.DECIMAL:
                return maker.as_number(node, value, self._decimal(node, to), safe=safe)
            case kind if kind in _WHOLE_TYPES:
                return maker.as_number(node, value, whole(_WHOLE_TYPES[kind]), safe=safe)
            case exp.DType.DOUBLE:
                return maker.as_double(node, value, safe=safe)
            case exp.DType.DATE:
                return maker.as_date(node, value, safe=safe)
            case exp.DType.TIMESTAMP | exp.DType.TIMESTAMPNTZ:
                return maker.as_timestamp(node, value)
            case exp.DType.BOOLEAN:
                return maker.as_boolean(node, value)
        raise refused(
            node,
            f"There is no cast to {shown(to)}.",
            f"Cast to {_CASTS} or BOOLEAN.",
        )

    def _decimal(self, node: exp.Expr, to: exp.DataType) -> SqlType:
        sizes = [int(part.this.name) for part in to.expressions]
        precision, scale = [*sizes, 0][:2] if sizes else (18, 3)
        if not sizes or not 0 <= scale <= precision <= 38 or not precision:
            raise refused(
                node,
                f"{shown(to)} has no size from 1 to 38 digits.",
                "Write DECIMAL(18, 2).",
            )
        return decimal(precision - scale, scale)

    def _literal(self, node: exp.Expr, text: object, to: exp.Expr) -> Value | None:
        """A date or timestamp literal."""
        if not isinstance(text, str):
            return None
        try:
            if to.this is exp.DType.DATE:
                sql = self.maker.dialect.date(str((_plain_date(text) - date(1970, 1, 1)).days))
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

    # operators

    def _operands(self, node: exp.Expr, scope: Scope) -> tuple[Value, Value]:
        return self.value(node.this, scope), self.value(node.expression, scope)

    def _compared(self, node: exp.Expr, scope: Scope) -> Value:
        return self.maker.compared(node, _COMPARISONS[type(node)], *self._operands(node, scope))

    def _concatenated(self, node: exp.Expr, scope: Scope) -> Value:
        values = self._operands(node, scope)
        for value in values:
            if value.type.sort not in (Sort.TEXT, Sort.NULL):
                raise refused(node, f"{value} is no text in {shown(node)}.", "CAST(x AS VARCHAR).")
        return Value(sql=f"({' || '.join(v.sql for v in values)})", type=TEXT, node=node)

    def _added(self, node: exp.Expr, scope: Scope) -> Value:
        if isinstance(node.expression, exp.Interval):
            return self._shifted(node, scope)
        a, b = self._operands(node, scope)
        operator, dialect = ("+" if isinstance(node, exp.Add) else "-"), self.maker.dialect
        if a.type.sort is not Sort.DATE:
            return self.maker.added(node, operator, a, b)
        if b.type.sort is Sort.DATE and operator == "-":
            sql = f"CAST({dialect.day(a.sql)} - {dialect.day(b.sql)} AS BIGINT)"
            return Value(sql=sql, type=whole(8), node=node)
        return self.maker.moved(node, operator, a, b)

    def _multiplied(self, node: exp.Expr, scope: Scope) -> Value:
        a, b = self._operands(node, scope)
        match node:
            case exp.Mul():
                return self.maker.multiplied(node, a, b)
            case exp.Div():
                return self.maker.divided(node, a, b)
        return self.maker.whole_divided(node, "%" if isinstance(node, exp.Mod) else "//", a, b)

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
            return self.maker.moved(node, operator, value, days)
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

    def _call(self, node: exp.Expr, scope: Scope) -> Value:
        name = node.name.lower()
        if name in AGGREGATES:
            return self._finished(self._aggregate(node, scope))
        if name in WINDOWS:
            raise refused(node, f"{name} needs a window.", f"Write {name}(…) OVER (ORDER BY …).")
        return call(self.maker, node, name, [self.value(part, scope) for part in node.expressions])

    def _own_syntax(self, node: exp.Expr, scope: Scope) -> Value:
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

    def _aggregate(self, node: exp.Expr, scope: Scope) -> Value:
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
            return functions.aggregate(self.maker, node, name, None, distinct=False)
        distinct = isinstance(argument, exp.Distinct)
        if distinct:
            only(argument, "expressions")
            [argument] = argument.expressions if len(argument.expressions) == 1 else [argument]
        value = self.value(argument, replace(scope, inside_aggregate=True))
        return functions.aggregate(self.maker, node, name, value, distinct=distinct)

    def _finished(self, value: Value) -> Value:
        """Cast an aggregate or a window function to its declared type; engines return others."""
        return replace(value, sql=f"CAST({value.sql} AS {value.type.sql})")

    # windows

    def _window(self, node: exp.Expr, scope: Scope) -> Value:
        only(node, "this", "partition_by", "order", "over")
        if not scope.may_window or not isinstance(node.this, exp.Anonymous):
            raise refused(
                node,
                f"{shown(node)} stands where no window may.",
                "Write it after SELECT, in a subquery.",
            )
        name = node.this.name.lower()
        parts = [self.value(part, scope).sql for part in node.args.get("partition_by") or ()]
        ordered = node.args["order"].expressions if node.args.get("order") else []
        order = [self._ordered(part, scope) for part in ordered]
        if name in AGGREGATES:
            value = self._window_aggregate(node.this, scope)
            return self._finished(self._over(value, parts, order, ""))
        if name not in WINDOWS:
            raise refused(node, f"{name} has no window.", "Leave OVER (…) out.")
        if not order:
            raise refused(node, f"{shown(node)} has no order.", "Write ORDER BY inside OVER (…).")
        if name in ("rank", "dense_rank"):
            self._no_arguments(node.this)
            value = Value(sql=f"{name.upper()}()", type=whole(WHOLE_DIGITS), node=node)
            return self._finished(self._over(value, parts, order, ""))
        if scope.tie_break is None:
            raise refused(
                node,
                f"Rows that are alike would have no order in {shown(node)}.",
                "Write it over one SELECT, not over UNION ALL.",
            )
        order += [f"{sql} ASC NULLS LAST" for sql in scope.tie_break]
        value = self._positional(node.this, name, scope)
        frame = "" if name in ("lag", "lead") else _FRAME
        over = self._over(value, parts, order, frame)
        return self._finished(over) if name == "row_number" else over

    def _window_aggregate(self, node: exp.Expr, scope: Scope) -> Value:
        if scope.groups is not None:
            raise refused(
                node,
                f"{shown(node)} is a window over groups.",
                "Group in a subquery first.",
            )
        if any(isinstance(part, exp.Distinct) for part in node.expressions):
            raise refused(node, f"{shown(node)} has no window.", "Count in a subquery.")
        return self._aggregate(node, replace(scope, may_aggregate=True))

    def _positional(self, node: exp.Anonymous, name: str, scope: Scope) -> Value:
        """row_number, lag, lead and first_value."""
        if name == "row_number":
            self._no_arguments(node)
            return Value(sql="ROW_NUMBER()", type=whole(WHOLE_DIGITS), node=node)
        values = [self.value(part, scope) for part in node.expressions]
        if not values or len(values) > (1 if name == "first_value" else 2):
            raise refused(node, f"{name} takes a value, and by how many rows.", "Write lag(x, 1).")
        shift = ""
        if len(values) == 2:
            number = functions.Call(
                name=name,
                node=node,
                arguments=values,
                maker=self.maker,
            ).constant_number(1, 0, MOST_SHIFT)
            shift = f", {number}"
        value = values[0]
        if value.type.sort in (Sort.OTHER, Sort.NULL):
            raise refused(node, f"{name} takes no {value.type}.", "Choose another column.")
        return Value(sql=f"{name.upper()}({value.sql}{shift})", type=value.type, node=node)

    def _no_arguments(self, node: exp.Anonymous) -> None:
        if node.expressions:
            raise refused(node, f"{node.name.lower()} takes no arguments.", "Leave them out.")

    def _ordered(self, node: exp.Expr, scope: Scope) -> str:
        value = self.value(node.this, scope)
        if value.type.sort in (Sort.OTHER, Sort.BYTES, Sort.NULL):
            raise refused(node, f"{value} has no order.", "Order by another column.")
        way = "DESC" if node.args.get("desc") else "ASC"
        return f"{value.sql} {way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"

    def _over(self, value: Value, parts: Sequence[str], order: Sequence[str], frame: str) -> Value:
        pieces = [f"PARTITION BY {', '.join(parts)}"] if parts else []
        pieces += [f"ORDER BY {', '.join(order)}"] if order else []
        pieces += [frame] if frame else []
        return replace(value, sql=f"{value.sql} OVER ({' '.join(pieces)})")


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node with parts that are not supported here."""
    for name, part in node.args.items():
        if name not in names and part:
            word = name.strip("_").replace("_", " ").upper()
            raise refused(node, f"{word} is not part of its SQL in {shown(node)}.", "Leave it out.")


def _escaped(node: exp.Expr, pattern: str, escape: str) -> str:
    """A LIKE pattern whose escape is a backslash; one without ESCAPE has none."""
    pieces: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if escape and sign == escape:
            literal = next(signs, "")
            if literal not in ("%", "_", escape):
                raise refused(
                    node,
                    f"In {pattern!r:.80} {escape} stands before no %, _ or {escape}.",
                    "Double it.",
                )
            pieces.append(f"\\{literal}" if literal in "%_\\" else literal)
        else:
            pieces.append("\\\\" if sign == "\\" else sign)
    return "".join(pieces)


def _plain_date(text: str) -> date:
    if len(text) != len("2024-01-31"):
        raise ValueError(text)
    return date.fromisoformat(text)
