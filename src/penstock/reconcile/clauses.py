"""Conditions become SQL: what each side is asked for once, and how the two answers are held against each other.

Columns are prepared first (`l.c0`, `r.c1`: amounts as decimals, days as numbers, texts normalised), so that a rule's
join compares plain columns, every engine joins the same values, and a value that cannot be read is found before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, assert_never

from penstock.reconcile.amounts import TEXT_NUMBER, declared_width, width, within_sql
from penstock.reconcile.column import Kind
from penstock.reconcile.recipe import (
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

    from penstock.engines.contract import Words
    from penstock.reconcile.amounts import Width
    from penstock.reconcile.column import Column
    from penstock.reconcile.recipe import Condition, SideName, Step

Category = Literal["key", "amount", "date", "other"]
TEXT_DATE = r"^[ \t]*[0-9]{4}-[0-9]{2}-[0-9]{2}"
FULL_SCORE = 10_000
_COMPARISONS = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A condition between `l` and `r`; candidates with smaller `rank` are better, `score` is in ten-thousandths.

    `sides` are what is compared on the left and on the right, where it is two columns.
    """

    sql: str
    category: Category
    sides: tuple[str, str] = ("", "")
    rank: str | None = None
    score: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A text column whose values must look like something."""

    column: str
    what: str
    pattern: str


@dataclass(slots=True)
class Prepared:
    """The columns of one side that rules ask for, each computed once, by the name it is given."""

    alias: str
    columns: Mapping[str, Column]
    expressions: dict[str, str] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)

    def add(self, sql: str) -> str:
        name = self.expressions.setdefault(sql, f"c{len(self.expressions)}")
        return f"{self.alias}.{name}"

    def named(self, added: str) -> str:
        """The bare name of what was added."""
        return added.removeprefix(f"{self.alias}.")

    def number(self, name: str, size: Width) -> str:
        column = self._seen(name, "number", TEXT_NUMBER)
        return self.add(size.number(column, quoted(name)))

    def day(self, name: str, words: Words) -> str:
        self._seen(name, "date", TEXT_DATE)
        return self.add(words.day(self._dated(name)))

    def period(self, name: str, unit: str) -> str:
        """A year, or a month as 202401."""
        self._seen(name, "date", TEXT_DATE)
        day = f"CAST({self._dated(name)} AS DATE)"
        year = f"CAST(EXTRACT(YEAR FROM {day}) AS INTEGER)"
        return year if unit == "year" else f"{year} * 100 + CAST(EXTRACT(MONTH FROM {day}) AS INTEGER)"

    def text(self, name: str) -> str:
        plain = self.columns[name].kind is Kind.TEXT
        return quoted(name) if plain else f"CAST({quoted(name)} AS VARCHAR)"

    def _dated(self, name: str) -> str:
        return f"NULLIF(TRIM({quoted(name)}), '')" if self.columns[name].kind is Kind.TEXT else quoted(name)

    def _seen(self, name: str, what: str, pattern: str) -> Column:
        column = self.columns[name]
        if column.kind is Kind.TEXT:
            self.checks[f"{name}:{what}"] = Check(column=name, what=what, pattern=pattern)
        return column

    def select(self, key: tuple[str, ...], source: str) -> str:
        """`p0…` are the primary key, for ties; `c0…` what the rules asked for."""
        keys = [f"{quoted(name)} AS p{number}" for number, name in enumerate(key)]
        asked = [f"{sql} AS {name}" for sql, name in self.expressions.items()]
        return f"SELECT {', '.join(['_id', *keys, *asked])} FROM {source}"


class Transpiler:
    """Clauses over two sides that are prepared on the way."""

    def __init__(self, words: Words, left: Mapping[str, Column], right: Mapping[str, Column]) -> None:
        self.words = words
        self.left = Prepared("l", left)
        self.right = Prepared("r", right)

    def side(self, name: SideName) -> Prepared:
        return self.left if name == "left" else self.right

    def clause(self, condition: Condition) -> Clause:
        match condition:
            case Compare():
                return self._compare(condition)
            case Tolerance():
                size = self.size(condition)
                a, b = self.amounts(condition, size)
                near = within_sql(condition, a, b, size)
                return Clause(sql=near, category="amount", sides=(a, b), rank=f"ABS({b} - {a})")
            case SumWithin():
                a, b = self.amounts(condition, self.size(condition))
                return Clause(sql=f"({a} IS NOT NULL AND {b} IS NOT NULL)", category="amount", sides=(a, b))
            case DateWindow():
                return self._window(condition)
            case Normalized():
                a, b = (self.side(side).add(self._stepped(side, condition)) for side in ("left", "right"))
                return Clause(sql=f"{a} = {b}", category="key", sides=(a, b))
            case Similar():
                return self._similar(condition)
        assert_never(condition)

    def size(self, condition: Tolerance | SumWithin) -> Width:
        return width(self.left.columns[condition.left], self.right.columns[condition.right], condition)

    def amounts(self, condition: Tolerance | SumWithin, size: Width) -> tuple[str, str]:
        return self.left.number(condition.left, size), self.right.number(condition.right, size)

    def difference(self, left: str, right: str) -> str:
        """Right minus left of two columns: an amount, days, or whether texts differ."""
        a, b = self.left.columns[left], self.right.columns[right]
        kinds = {a.kind, b.kind}
        if kinds <= {Kind.NUMBER}:
            size = declared_width(a, b)
            return f"{self.right.number(right, size)} - {self.left.number(left, size)}"
        if kinds <= {Kind.DATE, Kind.MOMENT}:
            return f"{self.right.day(right, self.words)} - {self.left.day(left, self.words)}"
        x, y = self.left.add(self.left.text(left)), self.right.add(self.right.text(right))
        return f"CASE WHEN {x} = {y} THEN '' ELSE {x} || ' → ' || {y} END"

    def _compare(self, condition: Compare) -> Clause:
        match condition.op:
            case "contains" | "startswith" | "endswith":
                a = self.left.add(self.left.text(condition.left))
                b = self.right.add(self.right.text(condition.right))
                called = {"contains": "contains", "startswith": "starts_with", "endswith": "ends_with"}[condition.op]
                return Clause(sql=f"({b} <> '' AND {called}({a}, {b}))", category="other")
            case op:
                a, b = self._alike(condition)
                category: Category = "key" if op == "eq" else "other"
                return Clause(sql=f"{a} {_COMPARISONS[op]} {b}", category=category, sides=(a, b))

    def _alike(self, condition: Compare) -> tuple[str, str]:
        """Both columns as one type."""
        left, right = self.left.columns[condition.left], self.right.columns[condition.right]
        match frozenset({left.kind, right.kind}):
            case kinds if kinds <= {Kind.NUMBER, Kind.TEXT} and Kind.NUMBER in kinds:
                size = width(left, right)
                return self.left.number(left.name, size), self.right.number(right.name, size)
            case kinds if kinds == {Kind.MOMENT}:
                a, b = self.words.micros(quoted(left.name)), self.words.micros(quoted(right.name))
                return self.left.add(a), self.right.add(b)
            case kinds if kinds & {Kind.DATE, Kind.MOMENT} and Kind.OTHER not in kinds and Kind.NUMBER not in kinds:
                return self.left.day(left.name, self.words), self.right.day(right.name, self.words)
        return self.left.add(self.left.text(left.name)), self.right.add(self.right.text(right.name))

    def _window(self, condition: DateWindow) -> Clause:
        a, b = self.left.day(condition.left, self.words), self.right.day(condition.right, self.words)
        before = condition.days if condition.days is not None else condition.before or 0
        after = condition.days if condition.days is not None else condition.after or 0
        near = f"({b} - {a} BETWEEN -{before} AND {after})"
        return Clause(sql=near, category="date", sides=(a, b), rank=f"ABS({b} - {a})")

    def _stepped(self, side: SideName, condition: Normalized) -> str:
        prepared = self.side(side)
        name = condition.left if side == "left" else condition.right
        sql = prepared.text(name)
        for step in condition.steps:
            sql = prepared.period(name, step) if step in ("month", "year") else _step(step, sql)
        return sql

    def _similar(self, condition: Similar) -> Clause:
        a = self.left.add(f"LOWER({self.left.text(condition.left)})")
        b = self.right.add(f"LOWER({self.right.text(condition.right)})")
        score = edit_score(self.words, a, b) if condition.method == "edit" else token_score(self.words, a, b)
        least = int(condition.min_score * FULL_SCORE)
        return Clause(sql=f"{score} >= {least}", category="other", score=score)


def edit_score(words: Words, a: str, b: str) -> str:
    longer = f"GREATEST(LENGTH({a}), LENGTH({b}))"
    return _share(f"{FULL_SCORE} * ({longer} - {words.edits(a, b)})", longer, f"{a} IS NULL OR {b} IS NULL")


def token_score(words: Words, a: str, b: str) -> str:
    whole = f"({words.words(a)} + {words.words(b)})"
    return _share(f"{2 * FULL_SCORE} * {words.shared(a, b)}", whole, f"{a} IS NULL OR {b} IS NULL")


def _share(part: str, whole: str, unknown: str) -> str:
    """Floored, and the same on every engine: the quotient of two integers that doubles hold is rounded once."""
    ratio = f"FLOOR(CAST({part} AS DOUBLE) / CAST({whole} AS DOUBLE))"
    return f"CASE WHEN {unknown} THEN NULL WHEN {whole} = 0 THEN {FULL_SCORE} ELSE CAST({ratio} AS BIGINT) END"


def _step(step: Step, sql: str) -> str:
    match step:
        case Regex():
            return _replaced(sql, step.regex, step.replace)
        case "trim":
            return _replaced(sql, "^[ \\t\\r\\n]+|[ \\t\\r\\n]+$", "")
        case "case":
            return f"LOWER({sql})"
        case "punctuation":
            return _replaced(sql, r"[^\p{L}\p{N} ]+", "")
        case "spaces":
            return _replaced(sql, "[ \\t\\r\\n]+", "")
        case "digits":
            return _replaced(sql, "[^0-9]+", "")
        case "month" | "year":
            return sql


def _replaced(sql: str, pattern: str, to: str) -> str:
    return f"REGEXP_REPLACE({sql}, '{_text(pattern)}', '{_text(to)}', 'g')"


def _text(value: str) -> str:
    return value.replace("'", "''")


def quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
