"""Typed SQL expressions, and the operations on them.

Engines cast, round and overflow differently. Here every cast is explicit, every result has a type
that holds it, and a value that cannot be computed fails the query on every engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.reconcile.match_sql.parse import refused, shown
from penstock.reconcile.match_sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    TEXT,
    WHOLE_DIGITS,
    Sort,
    SqlType,
    decimal,
    one_zero,
    timestamp,
    whole,
)
from penstock.reconcile.matching.amounts import FULL, WIDE, filled, of_float, scale_of
from penstock.reconcile.matching.clauses import moment_text
from penstock.reconcile.matching.column import FREE_SCALE
from penstock.reconcile.matching.days import day_of_instant, day_of_text, is_text_date

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from penstock.engines.contract import Dialect

DIVISION_SCALE = 6
_QUOTIENT_DIGITS = 33
"""What DataFusion divides with four more digits in the 38 that it has."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
_FAR = 4_000_000
PER_SECOND = {"us": 10**6, "ns": 10**9}
DAY_SECONDS = 86_400
_EXACT_DOUBLE = 15


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
            return replace(value, sql=_narrowed("CAST", value.sql, kind), type=kind)
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
            return self._common_number(node, types)
        if all(kind.sort is Sort.DOUBLE or _is_number(v) for kind, v in _typed(values)):
            return DOUBLE
        first = types[0]
        if any((k.sort, k.zoned, k.unit) != (first.sort, first.zoned, first.unit) for k in types):
            pair = next(v for v in values if v.type != first and v.type.sort is not Sort.NULL)
            raise self._unlike(node, next(v for v in values if v.type == first), pair)
        return first

    def _common_number(self, node: exp.Expr, types: Sequence[SqlType]) -> SqlType:
        digits, scale = max(t.digits for t in types), max(t.scale for t in types)
        if all(kind.whole for kind in types):
            return whole(digits)
        if digits + scale > FULL:
            raise refused(
                node,
                f"{shown(node)} has {_size(digits, scale)}.",
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

    # arithmetic

    def added(self, node: exp.Expr, operator: str, a: Value, b: Value) -> Value:
        """Addition and subtraction."""
        kind, (a, b) = self.alike(node, [a, b])
        if kind.sort is Sort.DOUBLE:
            return Value(sql=one_zero(f"({a.sql} {operator} {b.sql})"), type=DOUBLE, node=node)
        self._check_number(node, kind, a)
        result = self._sized(node, kind.digits + 1, kind.scale, whole_numbers=kind.whole)
        if not result.whole:
            a, b = self.fits(a, result), self.fits(b, result)
        sql = f"({a.sql} {operator} {b.sql})"
        return Value(
            sql=sql if result.whole else f"CAST({sql} AS {result.sql})",
            type=result,
            node=node,
        )

    def multiplied(self, node: exp.Expr, a: Value, b: Value) -> Value:
        if Sort.DOUBLE in (a.type.sort, b.type.sort):
            _, (a, b) = self.alike(node, [a, b])
            return Value(sql=one_zero(f"({a.sql} * {b.sql})"), type=DOUBLE, node=node)
        for value in (a, b):
            self._check_number(node, value.type, value)
        digits, scale = a.type.digits + b.type.digits, a.type.scale + b.type.scale
        result = self._sized(node, digits, scale, whole_numbers=a.type.whole and b.type.whole)
        if result.whole:
            return Value(sql=f"({a.sql} * {b.sql})", type=result, node=node)
        # Of two narrow decimals DuckDB makes a narrow product, and fails if it does not fit.
        x, y = (self.fits(value, _wide(value.type)) for value in (a, b))
        return Value(sql=f"CAST({x.sql} * {y.sql} AS {result.sql})", type=result, node=node)

    def divided(self, node: exp.Expr, a: Value, b: Value) -> Value:
        """Division, rounded half away from zero to six decimals or the scale of its operands."""
        if Sort.DOUBLE in (a.type.sort, b.type.sort):
            _, (a, b) = self.alike(node, [a, b])
            sql = one_zero(f"({a.sql} / {b.sql})")
            return self.guarded(node, sql, DOUBLE, b, _divides_by_zero(a, b), _BY_ZERO)
        for value in (a, b):
            self._check_number(node, value.type, value)
        scale = max(DIVISION_SCALE, a.type.scale, b.type.scale)
        digits = a.type.digits + b.type.scale
        wide = 1 + max(digits + scale, b.type.digits + b.type.scale)
        if wide > _QUOTIENT_DIGITS:
            raise refused(
                node,
                f"{shown(node)} needs {wide} digits; {_QUOTIENT_DIGITS} are the most.",
                "Cast its numbers to shorter decimals: CAST(x AS DECIMAL(18, 2)).",
            )
        upper = self._places(a, scale + b.type.scale - a.type.scale)
        lower = self._places(b, 0)
        number = f"DECIMAL({_QUOTIENT_DIGITS}, 0)"
        doubled = f"CAST({upper} * 2 + {lower} AS {number})"
        parts = self.dialect.whole_quotient(doubled, f"CAST({lower} * 2 AS {number})")
        smallest = f"CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL({scale + 1}, {scale}))"
        kind = decimal(digits, scale)
        away = f"CAST(CAST({parts} AS DECIMAL({digits + scale}, 0)) * {smallest} AS {kind.sql})"
        sql = f"CASE WHEN {_below_zero(a)} <> {_below_zero(b)} THEN -{away} ELSE {away} END"
        return self.guarded(node, sql, kind, b, _divides_by_zero(a, b), _BY_ZERO)

    def _places(self, value: Value, more: int) -> str:
        """A number without its sign, as a whole number of its last places times a power of ten."""
        scale = value.type.scale
        wide = decimal(_QUOTIENT_DIGITS - scale, scale)
        power = f"CAST('{10 ** (more + scale)}' AS DECIMAL({more + scale + 1}, 0))"
        product = f"abs(CAST({value.sql} AS {wide.sql})) * {power}"
        return f"CAST({product} AS DECIMAL({_QUOTIENT_DIGITS}, 0))"

    def whole_divided(self, node: exp.Expr, operator: str, a: Value, b: Value) -> Value:
        """`//` truncated, and `%`, its remainder; both towards zero."""
        for value in (a, b):
            self._check_number(node, value.type, value)
        kind = self._common_number(node, [a.type, b.type])
        if operator == "%":
            result = kind if kind.whole else decimal(kind.digits, kind.scale)
            x, y = self.fits(a, result), self.fits(b, result)
            if kind.whole and kind.digits > WHOLE_DIGITS:
                # The smallest BIGINT has no remainder by -1 that DataFusion can compute.
                wide = decimal(kind.digits, 0)
                sql = f"CAST({self.fits(a, wide).sql} % {self.fits(b, wide).sql} AS BIGINT)"
            else:
                sql = f"({x.sql} % {y.sql})"
            return self.guarded(node, sql, result, b, _divides_by_zero(a, b), _BY_ZERO)
        if kind.scale:
            raise refused(node, f"{shown(node)} divides no whole numbers.", "Write trunc(a / b).")
        wide = decimal(_QUOTIENT_DIGITS, 0)
        if kind.digits > _QUOTIENT_DIGITS:
            raise refused(node, f"{shown(node)} is too long.", "Cast: CAST(x AS DECIMAL(18, 0)).")
        parts = self.dialect.whole_quotient(
            f"abs({self.fits(a, wide).sql})",
            f"abs({self.fits(b, wide).sql})",
        )
        result = decimal(max(1, a.type.digits), 0)
        away = f"CAST({parts} AS {result.sql})"
        sql = f"CASE WHEN {_below_zero(a)} <> {_below_zero(b)} THEN -{away} ELSE {away} END"
        return self.guarded(node, sql, result, b, _divides_by_zero(a, b), _BY_ZERO)

    def negated(self, node: exp.Expr, value: Value, function: str = "-") -> Value:
        """`-x`, or `abs(x)`."""
        if value.type.sort is Sort.DOUBLE:
            return Value(sql=one_zero(f"{function}({value.sql})"), type=DOUBLE, node=node)
        self._check_number(node, value.type, value)
        if value.type.whole and value.type.digits > WHOLE_DIGITS:
            value = self.fits(value, decimal(value.type.digits, 0))
        constant = value.constant if isinstance(value.constant, Decimal) else None
        if constant is not None and function == "-":
            return self.number(node, -constant)
        return Value(sql=f"{function}({value.sql})", type=value.type, node=node)

    def rounded(self, node: exp.Expr, value: Value, scale: int) -> Value:
        """Rounded half away from zero."""
        self._check_number(node, value.type, value)
        if value.type.scale <= scale:
            return replace(value, node=node, constant=None)
        kind = self._sized(node, value.type.digits + 1, scale, whole_numbers=False)
        return replace(self.fits(value, kind), node=node, constant=None)

    def truncated(self, node: exp.Expr, value: Value, function: str) -> Value:
        """floor, ceil or trunc to an integer."""
        self._check_number(node, value.type, value)
        if value.type.scale == 0:
            return replace(value, node=node, constant=None)
        # DataFusion mistakes the type of a remainder whose numbers have different types.
        value = self.fits(value, decimal(max(1, value.type.digits), value.type.scale))
        rest = f"({value.sql} % CAST('1' AS {value.type.sql}))"
        zero, kind = _zero(value.type), decimal(value.type.digits + 1, 0)
        towards_zero = f"CAST({value.sql} - {rest} AS {kind.sql})"
        away = {
            "floor": f"WHEN {rest} < {zero} THEN -1",
            "ceil": f"WHEN {rest} > {zero} THEN 1",
        }
        step = f"CASE {away[function]} ELSE 0 END" if function in away else "0"
        sql = f"CAST({towards_zero} + CAST({step} AS DECIMAL(1, 0)) AS {kind.sql})"
        return Value(sql=sql, type=kind, node=node)

    def _sized(self, node: exp.Expr, digits: int, scale: int, *, whole_numbers: bool) -> SqlType:
        if whole_numbers and digits <= WHOLE_DIGITS:
            return whole(digits)
        if digits + scale > FULL:
            raise refused(
                node,
                f"{shown(node)} may have {_size(digits, scale)}.",
                "Cast its numbers to shorter decimals: CAST(x AS DECIMAL(18, 2)).",
            )
        return decimal(digits, scale)

    def _check_number(self, node: exp.Expr, kind: SqlType, value: Value) -> None:
        if kind.sort is not Sort.NUMBER:
            raise refused(
                node,
                f"{value} is no number in {shown(node)}.",
                "Cast it: CAST(x AS DECIMAL(20, 2)).",
            )

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
        failed = f"CAST({self._fail(about, why)} AS {kind.sql})"
        return Value(sql=f"CASE WHEN {wrong} THEN {failed} ELSE {sql} END", type=kind, node=node)

    def _fail(self, about: Value, why: str) -> str:
        value = self.as_text(about).sql
        text = f"{why}: {shown(about.node)}".replace("'", "''")
        return self.dialect.fail(f"substr(coalesce({value}, 'null'), 1, 80) || ' {text}'")

    # casts

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

    def as_number(self, node: exp.Expr, value: Value, kind: SqlType, *, safe: bool) -> Value:
        """Rounded half away from zero. A text must not have more decimals than the type; a value
        that does not fit fails the query, or is null if `safe`."""
        sort, digits = value.type.sort, value.type.digits + (value.type.scale > kind.scale)
        if sort is Sort.NUMBER and digits <= kind.digits:
            return replace(self._exact_cast(value, kind), node=node, constant=None)
        if sort is Sort.BOOLEAN:
            ones = f"CASE WHEN {value.sql} THEN 1 WHEN NOT {value.sql} THEN 0 END"
            return Value(sql=f"CAST({ones} AS {kind.sql})", type=kind, node=node)
        if sort is Sort.NULL:
            return replace(self.fits(value, kind), node=node)
        if sort not in (Sort.NUMBER, Sort.TEXT, Sort.DOUBLE):
            raise self._uncastable(node, value, _named(kind))
        number = self._tried(value, kind)
        if safe:
            return Value(sql=number, type=kind, node=node)
        wrong = f"{value.sql} IS NOT NULL AND {number} IS NULL"
        return self.guarded(node, number, kind, value, wrong, f"does not fit {_named(kind)}")

    def _tried(self, value: Value, kind: SqlType) -> str:
        """A number, text or double as a number; null where it does not fit."""
        source = value.sql
        if value.type.sort is Sort.DOUBLE:
            source = self.dialect.rounded(value.sql, kind.scale)
        number = _narrowed("TRY_CAST", source, decimal(kind.digits, kind.scale))
        if value.type.sort is Sort.TEXT:
            decimals = rf"([.][0-9]{{1,{kind.scale}}})?" if kind.scale else ""
            pattern = rf"^[+-]?[0-9]{{1,{FULL}}}{decimals}$"
            number = f"CASE WHEN {self.dialect.matches(value.sql, pattern)} THEN {number} END"
        if kind.whole:
            number = _narrowed("TRY_CAST", number, kind)
        if kind.whole and kind.digits < _BIGINT_DIGITS:
            most = _WHOLE_BOUNDS[kind.digits]
            number = f"CASE WHEN {number} BETWEEN -{most} - 1 AND {most} THEN {number} END"
        return number

    def _exact_cast(self, value: Value, kind: SqlType) -> Value:
        if kind.whole and value.type.scale:
            value = self.fits(value, decimal(value.type.digits + 1, 0))
        return self.fits(value, kind)

    def as_double(self, node: exp.Expr, value: Value, *, safe: bool) -> Value:
        """The nearest double, from the decimal digits."""
        match value.type.sort:
            case Sort.DOUBLE | Sort.NULL:
                return replace(self.fits(value, DOUBLE), node=node)
            case Sort.NUMBER if value.type.whole and value.type.digits <= _EXACT_DOUBLE:
                return Value(sql=f"CAST({value.sql} AS DOUBLE)", type=DOUBLE, node=node)
            case Sort.NUMBER:
                sql = one_zero(f"CAST({self.as_text(value).sql} AS DOUBLE)")
                return Value(sql=sql, type=DOUBLE, node=node)
            case Sort.TEXT:
                written = r"^[+-]?([0-9]{1,300}([.][0-9]{1,300})?([eE][+-]?[0-9]{1,3})?|NaN)$"
                number = f"TRY_CAST({value.sql} AS DOUBLE)"
                finite = f"abs({number}) < CAST('Infinity' AS DOUBLE)"
                is_number = f"{self.dialect.matches(value.sql, written)}"
                is_double = f"{is_number} AND ({value.sql} = 'NaN' OR {finite})"
                sql = f"CASE WHEN {is_double} THEN {one_zero(number)} END"
                if safe:
                    return Value(sql=sql, type=DOUBLE, node=node)
                wrong = f"{value.sql} IS NOT NULL AND NOT ({is_double})"
                return self.guarded(node, sql, DOUBLE, value, wrong, "is no DOUBLE")
        raise self._uncastable(node, value, "DOUBLE")

    def as_date(self, node: exp.Expr, value: Value, *, safe: bool) -> Value:
        """The day of a timestamp in the recipe's time zone."""
        match value.type.sort:
            case Sort.DATE | Sort.NULL:
                return replace(self.fits(value, DATE), node=node)
            case Sort.TIMESTAMP:
                return Value(sql=self.dialect.date(self.day(node, value)), type=DATE, node=node)
            case Sort.TEXT:
                text = value.sql
                pattern = self.dialect.matches(text, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
                real = f"TRY_CAST({text} AS DATE)"
                sql = f"CASE WHEN {pattern} AND substr({text}, 1, 4) <> '0000' THEN {real} END"
                if safe:
                    return Value(sql=sql, type=DATE, node=node)
                wrong = f"{text} IS NOT NULL AND {sql} IS NULL"
                return self.guarded(node, sql, DATE, value, wrong, "is no DATE such as 2024-01-31")
        raise self._uncastable(node, value, "DATE")

    def as_timestamp(self, node: exp.Expr, value: Value) -> Value:
        """Midnight of a date."""
        kind = timestamp("us", zoned=False)
        if value.type.sort is Sort.TIMESTAMP and not value.type.zoned:
            return replace(value, node=node)
        if value.type.sort is not Sort.DATE:
            raise self._uncastable(node, value, "TIMESTAMP")
        ticks = DAY_SECONDS * PER_SECOND["us"]
        sql = f"(CAST({self.dialect.day(value.sql)} AS BIGINT) * {ticks})"
        return Value(sql=sql, type=kind, node=node)

    def as_boolean(self, node: exp.Expr, value: Value) -> Value:
        if value.type.sort in (Sort.BOOLEAN, Sort.NULL):
            return replace(self.fits(value, BOOLEAN), node=node)
        raise self._uncastable(node, value, "BOOLEAN")

    def _uncastable(self, node: exp.Expr, value: Value, to: str) -> Exception:
        instead = "Write the comparison that is meant, or cast it in the source's query."
        return refused(node, f"{value} cannot be cast to {to}.", instead)

    # days

    def day(self, node: exp.Expr, value: Value) -> str:
        """The number of a value's day since 1970."""
        kind, dialect = value.type, self.dialect
        match kind.sort:
            case Sort.DATE:
                return dialect.day(value.sql)
            case Sort.TIMESTAMP:
                seconds = dialect.floor_div(value.sql, PER_SECOND[kind.unit])
                return day_of_instant(dialect, seconds, self.zone if kind.zoned else "UTC")
            case Sort.TEXT:
                text = filled(value.sql)
                real = is_text_date(text, dialect)
                failed = f"CAST({self._fail(value, 'is no date')} AS INTEGER)"
                wrong = f"{text} IS NOT NULL AND NOT ({real})"
                of_text = day_of_text(dialect, text, self.zone)
                return f"CASE WHEN {wrong} THEN {failed} ELSE {of_text} END"
        raise refused(node, f"{value} is no date in {shown(node)}.", "Cast it: CAST(x AS DATE).")

    def moved(self, node: exp.Expr, operator: str, date: Value, days: Value) -> Value:
        """A date plus or minus days; from year 1 to 9999."""
        self._check_number(node, days.type, days)
        if days.type.scale:
            raise refused(node, f"{days} is no whole number of days.", "Write round(x).")
        near = f"({days.sql} BETWEEN -{_FAR} AND {_FAR})"
        day = f"CAST({self.dialect.day(date.sql)} AS BIGINT) {operator} CAST({days.sql} AS BIGINT)"
        outside = f"NOT ({day} BETWEEN {_FIRST_DAY} AND {_LAST_DAY})"
        never = f"WHEN {date.sql} IS NULL THEN FALSE"
        wrong = f"CASE WHEN NOT {near} THEN TRUE {never} ELSE {outside} END"
        sql = self.dialect.date(f"({day})")
        why = "days from a date is not between the years 1 and 9999"
        return self.guarded(node, sql, DATE, days, wrong, why)

    # amounts

    def amount(self, node: exp.Expr, value: Value, digits: int, scale: int) -> str:
        """A value of any type as a decimal; only doubles are rounded."""
        kind, more = decimal(digits, scale), f"has more than {scale} decimals"
        match value.type.sort:
            case Sort.NUMBER if value.type.scale <= scale and value.type.digits <= digits:
                return self.fits(value, kind).sql
            case Sort.NUMBER if isinstance(value.constant, Decimal):
                raise refused(node, f"{shown(value.node)} {more}.", "Write it with fewer.")
            case Sort.NUMBER:
                number = _narrowed("TRY_CAST", value.sql, kind)
                checks = [
                    (f"{value.sql} IS NOT NULL AND {number} IS NULL", f"is too large for {kind}"),
                    (f"CAST({number} AS {_wider(value.type, kind).sql}) <> {value.sql}", more),
                ]
            case Sort.DOUBLE:
                number = f"TRY_CAST({of_float(value.sql, self.dialect)} AS {kind.sql})"
                checks = [(f"{value.sql} IS NOT NULL AND {number} IS NULL", "is no such number")]
            case Sort.TEXT:
                text = filled(value.sql)
                number = f"TRY_CAST({text} AS {kind.sql})"
                real = self.dialect.matches(
                    text, rf"^-?[0-9]{{1,{digits}}}([.][0-9]{{1,{FULL}}})?$"
                )
                longer = self.dialect.matches(text, rf"[.][0-9]{{{scale}}}0*[1-9]")
                checks = [
                    (
                        f"{text} IS NOT NULL AND NOT ({real} AND {number} IS NOT NULL)",
                        "is no number",
                    ),
                    (longer, more),
                ]
            case _:
                raise refused(node, f"{value} is no number.", "Cast it: CAST(x AS DECIMAL(20, 2)).")
        sql = number
        for wrong, why in reversed(checks):
            sql = self.guarded(node, sql, kind, value, wrong, why).sql
        return sql


_BY_ZERO = "is zero, and cannot divide; write nullif(x, 0)"
_BIGINT_DIGITS = 19
_WHOLE_BOUNDS = {3: 2**7 - 1, 5: 2**15 - 1, 10: 2**31 - 1}
AMOUNT = (WIDE - FREE_SCALE, FREE_SCALE)
PERCENT = (3, 4)


def _size(digits: int, scale: int) -> str:
    return f"{digits} digits before and {scale} after the point; {FULL} are the most"


def _wide(kind: SqlType) -> SqlType:
    """A type with the same decimals that DuckDB stores as a 128-bit decimal."""
    return decimal(max(kind.digits, WHOLE_DIGITS + 1 - kind.scale), kind.scale)


def _zero(kind: SqlType) -> str:
    return f"CAST('0' AS {kind.sql})"


def _below_zero(value: Value) -> str:
    return f"({value.sql} < {_zero(value.type)})"


def _divides_by_zero(a: Value, b: Value) -> str:
    return f"{b.sql} = {_zero(b.type)} AND {a.sql} IS NOT NULL"


def _narrowed(cast: str, sql: str, kind: SqlType) -> str:
    """A cast that may round, or that may give null. DataFusion would compare what is cast with a
    literal, as if the cast lost nothing, but for the CASE."""
    return f"CASE WHEN {sql} IS NOT NULL THEN {cast}({sql} AS {kind.sql}) END"


def _is_number(value: Value) -> bool:
    return isinstance(value.constant, Decimal)


def _typed(values: Sequence[Value]) -> list[tuple[SqlType, Value]]:
    return [(value.type, value) for value in values if value.type.sort is not Sort.NULL]


def _wider(a: SqlType, b: SqlType) -> SqlType:
    digits, scale = max(a.digits, b.digits), max(a.scale, b.scale)
    return decimal(min(digits, FULL - scale), scale)


def _named(kind: SqlType) -> str:
    if not kind.whole:
        return kind.sql
    return {3: "TINYINT", 5: "SMALLINT", 10: "INTEGER"}.get(kind.digits, "BIGINT")
