"""Typed SQL expressions: literals, common types, comparisons, and how a query fails.

Engines cast, round and overflow differently. Here every cast is explicit, every result has a type
that holds it, and a value that cannot be computed fails the query on every engine. Operations on
values are in `arithmetic`, `casts` and `dates`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import (
    BOOLEAN,
    DOUBLE,
    NULL,
    TEXT,
    WHOLE_DIGITS,
    Sort,
    SqlType,
    decimal,
    whole,
)
from penstock.reconcile.matching.amounts import FULL, scale_of
from penstock.reconcile.matching.clauses import moment_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from penstock.engines.contract import Dialect

PER_SECOND = {"us": 10**6, "ns": 10**9}
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A typed SQL expression; `constant` is the value of a literal number or text."""

    sql: str
    type: SqlType
    node: exp.Expr
    constant: Decimal | str | None = None

    def __str__(self) -> str:
        return f"{shown(self.node)} ({self.type})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Builds values from values, in the dialect of an engine."""

    dialect: Dialect
    zone: str

    # constants

    def number(self, node: exp.Expr, number: Decimal) -> Value:
        scale = scale_of(number)
        digits = max(1, number.adjusted() + 1) if number else 1
        if digits + scale > FULL:
            raise refused(node, f"{shown(node)} has more than {FULL} digits.", "Write it shorter.")
        if not scale and digits <= WHOLE_DIGITS:
            kind, sql = whole(digits), f"CAST({number:f} AS BIGINT)"
        else:
            kind = decimal(digits, scale)
            sql = f"CAST('{number:f}' AS {kind.sql})"
        return Value(sql=sql, type=kind, node=node, constant=number)

    def text(self, node: exp.Expr, text: str) -> Value:
        escaped = text.replace("'", "''")
        return Value(sql=f"'{escaped}'", type=TEXT, node=node, constant=text)

    # types

    def fits(self, value: Value, kind: SqlType) -> Value:
        """Cast a value to a type that can hold it."""
        if value.type == kind or (value.type.sql == kind.sql and kind.sort == value.type.sort):
            return replace(value, type=kind)
        if value.type.sort is Sort.NULL:
            return replace(value, sql=f"CAST(NULL AS {kind.sql})", type=kind)
        if kind.sort is Sort.DOUBLE and isinstance(value.constant, Decimal):
            return replace(value, sql=f"CAST('{value.constant:f}' AS DOUBLE)", type=DOUBLE)
        if value.type.scale > kind.scale and kind.sort is Sort.NUMBER:
            return replace(value, sql=narrowed("CAST", value.sql, kind), type=kind)
        return replace(value, sql=f"CAST({value.sql} AS {kind.sql})", type=kind)

    def common(self, node: exp.Expr, values: Sequence[Value]) -> SqlType:
        """A type that can hold all values; they must be of one kind."""
        types = [value.type for value in values if value.type.sort is not Sort.NULL]
        if not types:
            return NULL
        for value in values:
            if value.type.sort is Sort.OTHER:
                raise refused(
                    node,
                    f"{value} can only be tested with IS NULL.",
                    "Make a text or a number of it in the source's query.",
                )
        if {kind.sort for kind in types} == {Sort.NUMBER}:
            return self.common_number(node, types)
        if all(kind.sort is Sort.DOUBLE or _is_number(v) for kind, v in _typed(values)):
            return DOUBLE
        first = types[0]
        if any((k.sort, k.zoned, k.unit) != (first.sort, first.zoned, first.unit) for k in types):
            pair = next(v for v in values if v.type != first and v.type.sort is not Sort.NULL)
            raise self._unlike(node, next(v for v in values if v.type == first), pair)
        return first

    def common_number(self, node: exp.Expr, types: Sequence[SqlType]) -> SqlType:
        digits, scale = max(t.digits for t in types), max(t.scale for t in types)
        if all(kind.whole for kind in types):
            return whole(digits)
        if digits + scale > FULL:
            raise refused(
                node,
                f"{shown(node)} has {size_of(digits, scale)}.",
                "Cast one of its numbers to a shorter decimal: CAST(x AS DECIMAL(20, 2)).",
            )
        return decimal(digits, scale)

    def _unlike(self, node: exp.Expr, a: Value, b: Value) -> Exception:
        sorts = {a.type.sort, b.type.sort}
        instead = "Cast one: CAST(x AS VARCHAR), CAST(x AS DECIMAL(20, 2)), CAST(x AS DATE)."
        if sorts == {Sort.DOUBLE, Sort.NUMBER}:
            instead = "Cast the double, CAST(x AS DECIMAL(20, 2)), or the other, CAST(x AS DOUBLE)."
        elif sorts <= {Sort.DATE, Sort.TIMESTAMP, Sort.TEXT} and isinstance(b.constant, str):
            instead = f"Write DATE '{b.constant[:10]}', or cast the other one to DATE."
        elif sorts == {Sort.TIMESTAMP}:
            instead = "Cast both to DATE, or to one kind of timestamp in the source's query."
        return refused(
            node,
            f"{a} and {b} are of different types in {shown(node)}; none is cast.",
            instead,
        )

    def alike(self, node: exp.Expr, values: Sequence[Value]) -> tuple[SqlType, list[Value]]:
        """Cast values to their common type."""
        kind = self.common(node, values)
        return kind, [self.fits(value, kind) for value in values]

    # comparisons

    def compared(self, node: exp.Expr, operator: str, a: Value, b: Value) -> Value:
        for value in (a, b):
            if value.type.sort is Sort.NULL:
                raise refused(
                    node,
                    f"{shown(node)} is never true.",
                    "Write x IS NULL, or x IS NOT NULL.",
                )
        a, b = self.ticks_alike(a, b)
        _, (a, b) = self.alike(node, [a, b])
        return self.boolean(node, f"({a.sql} {operator} {b.sql})")

    def ticks_alike(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Timestamps of two units, and times of day, as decimals of nanoseconds."""
        sorts, units = {a.type.sort, b.type.sort}, {a.type.unit, b.type.unit}
        if len(units) == 1 or len(sorts) != 1 or a.type.zoned != b.type.zoned:
            return a, b
        if sorts & {Sort.TIMESTAMP, Sort.TIME}:
            return self._nanoseconds(a), self._nanoseconds(b)
        return a, b

    def _nanoseconds(self, value: Value) -> Value:
        more = 10**9 // PER_SECOND[value.type.unit]
        sql = f"CAST({value.sql} AS DECIMAL(20, 0)) * CAST({more} AS DECIMAL(4, 0))"
        return replace(value, sql=f"CAST({sql} AS DECIMAL(24, 0))", type=decimal(24, 0))

    def boolean(self, node: exp.Expr, sql: str) -> Value:
        return Value(sql=sql, type=BOOLEAN, node=node)

    # failing

    def guarded(
        self,
        node: exp.Expr,
        sql: str,
        kind: SqlType,
        about: Value,
        wrong: str,
        why: str,
    ) -> Value:
        """A value that fails the query with a message on rows where `wrong` is true."""
        failed = f"CAST({self.failure(about, why)} AS {kind.sql})"
        return Value(sql=f"CASE WHEN {wrong} THEN {failed} ELSE {sql} END", type=kind, node=node)

    def failure(self, about: Value, why: str) -> str:
        value = self.as_text(about).sql
        text = f"{why}: {shown(about.node)}".replace("'", "''")
        return self.dialect.fail(f"substr(coalesce({value}, 'null'), 1, 80) || ' {text}'")

    def as_text(self, value: Value) -> Value:
        """Text, the same on every engine."""
        kind, dialect, sql = value.type, self.dialect, value.sql
        match kind.sort:
            case Sort.TEXT:
                return value
            case Sort.NUMBER if not kind.digits:
                # DuckDB writes no zero before the point where the type has no digit there.
                sql = f"CAST(CAST({sql} AS {decimal(1, kind.scale).sql}) AS VARCHAR)"
            case Sort.NUMBER | Sort.BOOLEAN | Sort.DATE:
                sql = f"CAST({sql} AS VARCHAR)"
            case Sort.DOUBLE:
                sql = dialect.shortest(sql)
            case Sort.TIMESTAMP:
                sql = moment_text(sql, kind.unit, dialect)
                sql = f"({sql} || 'Z')" if kind.zoned else sql
            case Sort.NULL:
                sql = "CAST(NULL AS VARCHAR)"
            case Sort.TIME | Sort.BYTES | Sort.OTHER:
                raise refused(
                    value.node,
                    f"{value} has no text here.",
                    "Make one in the source's query.",
                )
        return replace(value, sql=sql, type=TEXT)

    # amounts


def size_of(digits: int, scale: int) -> str:
    return f"{digits} digits before and {scale} after the point; {FULL} are the most"


def narrowed(cast: str, sql: str, kind: SqlType) -> str:
    """A cast that may round, or that may give null. DataFusion would compare what is cast with a
    literal, as if the cast lost nothing, but for the CASE."""
    return f"CASE WHEN {sql} IS NOT NULL THEN {cast}({sql} AS {kind.sql}) END"


def _is_number(value: Value) -> bool:
    return isinstance(value.constant, Decimal)


def _typed(values: Sequence[Value]) -> list[tuple[SqlType, Value]]:
    return [(value.type, value) for value in values if value.type.sort is not Sort.NULL]
