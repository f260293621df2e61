"""Compiles conditions to SQL: the prepared columns of each side, and the comparison of the two.

Columns are prepared first (`l.c0`, `r.c1`: amounts as decimals, days as numbers, texts normalized),
so that a rule's join compares plain columns, every engine joins the same values, and a value that
cannot be parsed is found before the join.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, assert_never

import pyarrow as pa

from penstock.engines.zones import UTC
from penstock.reconcile.matching.amounts import (
    FULL,
    TEXT_NUMBER,
    compared_width,
    declared_width,
    readable,
    width,
    within_sql,
)
from penstock.reconcile.matching.column import Kind
from penstock.reconcile.matching.days import day, wrong_text
from penstock.reconcile.recipes.model import (
    Compare,
    DateWindow,
    Normalized,
    Regex,
    Similar,
    SumWithin,
    Tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.engines.contract import Dialect, Unit
    from penstock.reconcile.matching.amounts import Width
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.recipes.model import Condition, SideName, Step

Category = Literal["key", "amount", "date", "other"]
FULL_SCORE = 10_000
_CLEAN = "Clean them in the source's query, leave them out by a filter, or choose another column."
_NUMBERS = f"A number has at most 22 digits before and 6 after the point, as -1234.50. {_CLEAN}"
_DATES = f"A date is written 2024-01-31, a moment 2024-01-31T12:00:00+01:00. {_CLEAN}"
_PER_SECOND = {"us": 10**6, "ns": 10**9}
_COMPARISONS = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A condition between `l` and `r`; candidates with smaller `rank` are better, `score` is in
    ten-thousandths.

    `sides` are the compared expressions of left and right, where there are two; `scale` is the
    number of decimals of amounts. A clause with `sums` only requires that both amounts are present.
    """

    sql: str
    category: Category
    sides: tuple[str, str] = ("", "")
    rank: str | None = None
    scale: int = 0
    score: str | None = None
    sums: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference of a matched pair in one compared field, and its type in evidence."""

    sql: str
    type: pa.DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Finds column values that a rule cannot use: `wrong` is true of them, `what` describes what
    they should be."""

    column: Column
    what: str
    wrong: str
    hint: str


@dataclass(slots=True)
class Prepared:
    """The columns of one side that rules use, each computed once, by their generated names."""

    alias: str
    columns: Mapping[str, Column]
    dialect: Dialect
    zone: str
    expressions: dict[str, str] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)

    def add(self, sql: str) -> str:
        name = self.expressions.setdefault(sql, f"c{len(self.expressions)}")
        return f"{self.alias}.{name}"

    def named(self, added: str) -> str:
        """The name without the alias."""
        return added.removeprefix(f"{self.alias}.")

    def number(self, name: str, size: Width) -> str:
        column = self.columns[name]
        if (check := _number_check(column, size, self.dialect)) is not None:
            self.checks[f"{name} {size.type}"] = check
        return self.add(size.number(column, self.dialect))

    def day(self, name: str) -> str:
        return self.add(self._day(name))

    def period(self, name: str, unit: str) -> str:
        """A year, or a month as 202401."""
        column = self.columns[name]
        date = column.sql if column.kind is Kind.DATE else self.dialect.date(self._day(name))
        year = f"CAST(EXTRACT(YEAR FROM {date}) AS INTEGER)"
        month = f"CAST(EXTRACT(MONTH FROM {date}) AS INTEGER)"
        return year if unit == "year" else f"{year} * 100 + {month}"

    def moment(self, name: str, unit: Unit | None, *, local: bool) -> str:
        """A timestamp in ticks of one unit, in the recipe's time zone if `local`; without a unit as
        a decimal of nanoseconds, which holds both."""
        column = self.columns[name]
        ticks, per_second = self.dialect.ticks(column.sql, column.unit), _PER_SECOND[column.unit]
        if local and column.zoned and self.zone != UTC:
            ahead = self.dialect.zone_offset(self.zone, self.dialect.floor_div(ticks, per_second))
            ticks = f"({ticks} + {per_second} * {ahead})"
        if unit is None:
            more = f"CAST({10**9 // per_second} AS DECIMAL(4, 0))"
            ticks = f"CAST({ticks} AS DECIMAL(20, 0)) * {more}"
        return self.add(ticks)

    def text(self, name: str) -> str:
        column = self.columns[name]
        return written_text(column, column.sql, self.dialect)

    def _day(self, name: str) -> str:
        column = self.columns[name]
        if column.kind is Kind.TEXT:
            wrong = wrong_text(column, self.dialect)
            check = Check(column=column, what="date", wrong=wrong, hint=_DATES)
            self.checks[f"{name} date"] = check
        return day(column, self.dialect, self.zone)

    def select(self, key: tuple[str, ...], source: str) -> str:
        """`p0…` are the primary key, for ties; `c0…` the columns that rules use."""
        keys = [f"{self.columns[name].sql} AS p{number}" for number, name in enumerate(key)]
        expressions = [f"{sql} AS {name}" for sql, name in self.expressions.items()]
        return f"SELECT {', '.join(['_id', *keys, *expressions])} FROM {source}"


def written_text(column: Column, sql: str, dialect: Dialect) -> str:
    """A column's value as text; other types are formatted the same way on every engine."""
    if column.is_text:
        return sql
    if column.kind is Kind.MOMENT:
        stamp = moment_text(dialect.ticks(sql, column.unit), column.unit, dialect)
        return f"{stamp} || 'Z'" if column.zoned else stamp
    if column.is_time:
        stamp = moment_text(dialect.clock_ticks(sql, column.unit), column.unit, dialect)
        return dialect.replace(f"SUBSTR({stamp}, {len('1970-01-01T') + 1})", "[.]?0{0,9}$", "")
    if column.is_float:
        return dialect.shortest(f"CAST({sql} AS DOUBLE)")
    if column.is_binary:
        return dialect.hexadecimals(sql)
    if column.kind is Kind.DATE:
        return dialect.date_text(sql)
    if column.kind is Kind.NUMBER and not column.digits and column.scale < FULL:
        # DuckDB writes no zero before the point where the type has no digit there.
        sql = f"CAST({sql} AS DECIMAL({FULL}, {column.scale}))"
    text = f"CAST({sql} AS VARCHAR)"
    if column.scale == FULL:
        return _with_zero(text)
    return text


def _with_zero(text: str) -> str:
    """The text of a number below one with a zero before its point."""
    cases = f"WHEN '.' THEN '0' || {text} WHEN '-.' THEN '-0' || SUBSTR({text}, 2)"
    first = f"CASE WHEN SUBSTR({text}, 1, 1) = '.' THEN '.' ELSE SUBSTR({text}, 1, 2) END"
    return f"CASE {first} {cases} ELSE {text} END"


def moment_text(ticks: str, unit: Unit, dialect: Dialect) -> str:
    """Ticks since 1970 as `2024-01-31T12:00:00.000000`, with six decimals, and nine where the
    last three are not zero."""
    if unit == "us":
        return dialect.stamp(ticks)
    micros = dialect.floor_div(ticks, 1000)
    nanos = f"(({ticks} % 1000 + 1000) % 1000)"
    digits = f"LPAD(CAST({nanos} AS VARCHAR), 3, '0')"
    return f"{dialect.stamp(micros)} || CASE WHEN {nanos} = 0 THEN '' ELSE {digits} END"


def _number_check(column: Column, size: Width, dialect: Dialect) -> Check | None:
    """Check for values that are no number of this width; None if the type or the file statistics
    rule them out."""
    whole = size.precision - size.scale
    what = f"number of at most {whole} digits before and {size.scale} after the point"
    value = readable(column, dialect)
    fits = f"TRY_CAST({value} AS {size.type}) IS NOT NULL"
    if column.kind is Kind.TEXT:
        wrong = f"{value} IS NOT NULL AND NOT ({dialect.matches(value, TEXT_NUMBER)} AND {fits})"
        return Check(column=column, what="number", wrong=wrong, hint=_NUMBERS)
    if column.is_float:
        wrong = f"{column.sql} IS NOT NULL AND (isnan({column.sql}) OR NOT {fits})"
        return Check(column=column, what=what, wrong=wrong, hint=_CLEAN)
    if (column.digits if column.held is None else column.held) <= whole:
        return None
    return Check(column=column, what=what, wrong=f"{value} IS NOT NULL AND NOT {fits}", hint=_CLEAN)


class Transpiler:
    """Compiles conditions to clauses, and prepares the columns of both sides on the way."""

    def __init__(
        self,
        dialect: Dialect,
        left: Mapping[str, Column],
        right: Mapping[str, Column],
        zone: str = UTC,
    ) -> None:
        self.dialect = dialect
        self.left = Prepared("l", left, dialect, zone)
        self.right = Prepared("r", right, dialect, zone)

    def side(self, name: SideName) -> Prepared:
        return self.left if name == "left" else self.right

    def clause(self, condition: Condition) -> Clause:
        match condition:
            case Compare():
                return self._compare(condition)
            case Tolerance():
                size = self.size(condition)
                a, b = self.amounts(condition, size)
                return Clause(
                    sql=within_sql(condition, a, b, size),
                    category="amount",
                    sides=(a, b),
                    rank=f"ABS({b} - {a})",
                    scale=size.scale,
                )
            case SumWithin():
                size = self.size(condition)
                a, b = self.amounts(condition, size)
                return Clause(
                    sql=f"({a} IS NOT NULL AND {b} IS NOT NULL)",
                    category="amount",
                    sides=(a, b),
                    scale=size.scale,
                    sums=True,
                )
            case DateWindow():
                return self._window(condition)
            case Normalized():
                a, b = (
                    self.side(side).add(self._stepped(side, condition))
                    for side in ("left", "right")
                )
                return Clause(sql=f"{a} = {b}", category="key", sides=(a, b))
            case Similar():
                return self._similar(condition)
        assert_never(condition)

    def size(self, condition: Tolerance | SumWithin) -> Width:
        return width(
            self.left.columns[condition.left], self.right.columns[condition.right], condition
        )

    def amounts(self, condition: Tolerance | SumWithin, size: Width) -> tuple[str, str]:
        return self.left.number(condition.left, size), self.right.number(condition.right, size)

    def difference(self, left: str, right: str) -> Difference:
        """Right minus left of two columns: an amount, days, or whether texts differ."""
        a, b = self.left.columns[left], self.right.columns[right]
        kinds = {a.kind, b.kind}
        if kinds <= {Kind.NUMBER}:
            size = declared_width(a, b)
            sql = f"{self.right.number(right, size)} - {self.left.number(left, size)}"
            return Difference(sql=sql, type=pa.decimal128(FULL, size.scale))
        if kinds <= {Kind.DATE, Kind.MOMENT}:
            days = f"{self.right.day(right)} - {self.left.day(left)}"
            return Difference(sql=days, type=pa.int64())
        x, y = self.left.add(self.left.text(left)), self.right.add(self.right.text(right))
        changed = f"CASE WHEN {x} = {y} THEN '' ELSE {x} || ' → ' || {y} END"
        return Difference(sql=changed, type=pa.string())

    def _compare(self, condition: Compare) -> Clause:
        match condition.op:
            case "contains" | "startswith" | "endswith":
                a = self.left.add(self.left.text(condition.left))
                b = self.right.add(self.right.text(condition.right))
                called = {
                    "contains": "contains",
                    "startswith": "starts_with",
                    "endswith": "ends_with",
                }[condition.op]
                return Clause(sql=f"({b} <> '' AND {called}({a}, {b}))", category="other")
            case op:
                a, b = self._alike(condition)
                category: Category = "key" if op == "eq" else "other"
                return Clause(sql=f"{a} {_COMPARISONS[op]} {b}", category=category, sides=(a, b))

    def _alike(self, condition: Compare) -> tuple[str, str]:
        """Both columns cast to one type."""
        left, right = self.left.columns[condition.left], self.right.columns[condition.right]
        match frozenset({left.kind, right.kind}):
            case kinds if kinds <= {Kind.NUMBER, Kind.TEXT} and Kind.NUMBER in kinds:
                size = compared_width(left, right)
                return self.left.number(left.name, size), self.right.number(right.name, size)
            case kinds if kinds == {Kind.MOMENT}:
                unit = left.unit if left.unit == right.unit else None
                local = left.zoned != right.zoned
                a = self.left.moment(left.name, unit, local=local)
                return a, self.right.moment(right.name, unit, local=local)
            case kinds if (
                kinds & {Kind.DATE, Kind.MOMENT}
                and Kind.OTHER not in kinds
                and Kind.NUMBER not in kinds
            ):
                return self.left.day(left.name), self.right.day(right.name)
        return self.left.add(self.left.text(left.name)), self.right.add(self.right.text(right.name))

    def _window(self, condition: DateWindow) -> Clause:
        a, b = self.left.day(condition.left), self.right.day(condition.right)
        before = condition.days if condition.days is not None else condition.before or 0
        after = condition.days if condition.days is not None else condition.after or 0
        near = f"({b} - {a} BETWEEN -{before} AND {after})"
        return Clause(sql=near, category="date", sides=(a, b), rank=f"ABS({b} - {a})")

    def _stepped(self, side: SideName, condition: Normalized) -> str:
        prepared = self.side(side)
        name = condition.left if side == "left" else condition.right
        sql, is_text = prepared.text(name), True
        for step in condition.steps:
            if step in ("month", "year"):
                sql, is_text = prepared.period(name, step), False
                continue
            sql = _step(step, sql if is_text else f"CAST({sql} AS VARCHAR)", self.dialect)
            is_text = True
        return sql

    def _similar(self, condition: Similar) -> Clause:
        a = self.left.add(self.dialect.lower(self.left.text(condition.left)))
        b = self.right.add(self.dialect.lower(self.right.text(condition.right)))
        score = (
            edit_score(self.dialect, a, b)
            if condition.method == "edit"
            else token_score(self.dialect, a, b)
        )
        least = int(condition.min_score * FULL_SCORE)
        return Clause(sql=f"{score} >= {least}", category="other", score=score)


def edit_score(dialect: Dialect, a: str, b: str) -> str:
    longer = f"GREATEST(LENGTH({a}), LENGTH({b}))"
    return _share(
        f"{FULL_SCORE} * ({longer} - {dialect.edits(a, b)})", longer, f"{a} IS NULL OR {b} IS NULL"
    )


def token_score(dialect: Dialect, a: str, b: str) -> str:
    whole = f"({dialect.words(a)} + {dialect.words(b)})"
    return _share(
        f"{2 * FULL_SCORE} * {dialect.shared(a, b)}", whole, f"{a} IS NULL OR {b} IS NULL"
    )


def _share(part: str, whole: str, unknown: str) -> str:
    """Rounded down, and the same on every engine: the quotient of two integers that doubles
    represent exactly is rounded once."""
    ratio = f"FLOOR(CAST({part} AS DOUBLE) / CAST({whole} AS DOUBLE))"
    return (
        f"CASE WHEN {unknown} THEN NULL WHEN {whole} = 0 THEN {FULL_SCORE} "
        f"ELSE CAST({ratio} AS BIGINT) END"
    )


def _step(step: Step, sql: str, dialect: Dialect) -> str:
    match step:
        case Regex():
            return dialect.replace(sql, step.regex, step.replace)
        case "trim":
            return dialect.replace(sql, "^[ \\t\\r\\n]+|[ \\t\\r\\n]+$", "")
        case "case":
            return dialect.lower(sql)
        case "punctuation":
            return dialect.letters(sql)
        case "spaces":
            return dialect.replace(sql, "[ \\t\\r\\n]+", "")
        case "digits":
            return dialect.replace(sql, "[^0-9]+", "")
        case "month" | "year":
            return sql
