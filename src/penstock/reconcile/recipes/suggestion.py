"""Suggests rules from data: columns that share values, and the differences of amounts and dates
under the same key.

Deterministic, from the rows only. With confirmed pairs the differences are those of the pairs;
otherwise those of records that the suggested key joins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.reconcile.matching.column import Column, Kind, columns
from penstock.reconcile.recipes.filters import is_date
from penstock.reconcile.recipes.validation import CURRENCIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

T = TypeVar("T", Decimal, date, int)

LEAST_OVERLAP = 0.2
LEAST_AGREED = 0.8
COVERED = 0.95
_STEPS = ["trim", "case", "punctuation", "spaces"]
_DAY = len("2024-01-31")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,6})?")
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`why` explains each condition."""

    rules: list[dict[str, Any]]
    why: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    left: str
    right: str
    overlap: float
    unique: float
    normalized: bool


def suggest(
    left: pa.Table,
    right: pa.Table,
    pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]] | None = None,
) -> Suggestion:
    kinds = (columns(left.schema), columns(right.schema))
    rows = (left.to_pylist(), right.to_pylist())
    agreed = _agreed(*kinds, pairs or ())
    keys = agreed or _keys(*kinds, *rows)
    if not keys:
        return Suggestion(
            rules=[], why=["No two columns share values: there is nothing to match by."]
        )
    key = keys[0]
    reason = (
        f"are equal in {key.overlap:.0%} of the confirmed pairs"
        if agreed
        else f"share {key.overlap:.0%} of their values"
    )
    conditions, why = [_condition(key)], [f"{key.left} and {key.right} {reason}."]
    met = list(pairs) if pairs else _met(key, *rows)
    if (money := _currency(*kinds, met)) is not None:
        conditions.append(money[0])
        why.append(money[1])
    for kind, build in ((Kind.NUMBER, _amount), (Kind.DATE, _window)):
        for a, b in _named_alike(kind, *kinds, taken=(key.left, key.right), rows=rows):
            if (built := build(a, b, met)) is not None:
                conditions.append(built[0])
                why.append(built[1])
                break
    rules = [{"name": "suggested", "pattern": "1:1", "conditions": conditions}]
    return Suggestion(rules=[*rules, *_sums(conditions)], why=why)


def _keys(left: Any, right: Any, rows: Rows, others: Rows) -> list[_Pair]:
    pairs_of_columns = []
    for a in left.values():
        for b in right.values():
            if (
                a.kind in (Kind.TEXT, Kind.NUMBER)
                and a.kind == b.kind
                and not (a.scale and a.kind is Kind.NUMBER)
            ):
                pairs_of_columns += _shared(a, b, rows, others)
    return sorted(
        pairs_of_columns,
        key=lambda p: (-round(p.overlap * p.unique, 6), -_alike(p.left, p.right), p.left, p.right),
    )


def _agreed(
    left: Any, right: Any, pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]
) -> list[_Pair]:
    """Columns that are equal in nearly all confirmed pairs and distinguish the pairs."""
    pairs_of_columns = []
    for a in left.values():
        for b in right.values():
            if (
                a.kind in (Kind.TEXT, Kind.NUMBER)
                and a.kind == b.kind
                and not (a.scale and a.kind is Kind.NUMBER)
            ):
                both = [
                    (x[a.name], y[b.name])
                    for x, y in pairs
                    if x[a.name] is not None and y[b.name] is not None
                ]
                pairs_of_columns += [
                    _agreement(a.name, b.name, both, len(pairs), normalized=n)
                    for n in (False, True)
                    if both
                ]
    good = [p for p in pairs_of_columns if p.overlap >= LEAST_AGREED and p.unique >= LEAST_OVERLAP]
    return sorted(
        good,
        key=lambda p: (
            -round(p.overlap * p.unique, 6),
            p.normalized,
            -_alike(p.left, p.right),
            p.left,
            p.right,
        ),
    )


def _agreement(
    a: str, b: str, both: Sequence[tuple[Any, Any]], count: int, *, normalized: bool
) -> _Pair:
    read = _normal if normalized else _same
    equal = sum(read(x) == read(y) for x, y in both)
    unique = len({read(x) for x, _ in both}) / len(both)
    return _Pair(left=a, right=b, overlap=equal / count, unique=unique, normalized=normalized)


def _shared(a: Column, b: Column, rows: Rows, others: Rows) -> list[_Pair]:
    shares = []
    for normalized, read in ((False, _same), (True, _normal)):
        mine = [read(row[a.name]) for row in rows if row[a.name] is not None]
        its = [read(row[b.name]) for row in others if row[b.name] is not None]
        if mine and its:
            x, y = set(mine), set(its)
            overlap = len(x & y) / min(len(x), len(y))
            unique = min(len(x) / len(mine), 1.0)
            shares.append(
                _Pair(
                    left=a.name, right=b.name, overlap=overlap, unique=unique, normalized=normalized
                )
            )
    best = [p for p in shares if p.overlap >= LEAST_OVERLAP and p.unique >= LEAST_OVERLAP]
    if len(best) == 2 and best[1].overlap <= best[0].overlap + 0.05:
        return best[:1]
    return best[-1:]


def _met(key: _Pair, rows: Rows, others: Rows) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    read = _normal if key.normalized else _same
    by: dict[object, dict[str, Any]] = {}
    for row in others:
        if row[key.right] is not None:
            by.setdefault(read(row[key.right]), row)
    return [
        (row, by[read(row[key.left])])
        for row in rows
        if row[key.left] is not None and read(row[key.left]) in by
    ]


def _named_alike(
    kind: Kind, left: Any, right: Any, *, taken: tuple[str, str], rows: tuple[Rows, Rows]
) -> list[tuple[str, str]]:
    mine = [c.name for c in left.values() if c.name != taken[0] and _is(c, kind, rows[0])]
    its = [c.name for c in right.values() if c.name != taken[1] and _is(c, kind, rows[1])]
    return sorted(((a, b) for a in mine for b in its), key=lambda p: (-_alike(*p), p))


def _is(column: Column, kind: Kind, rows: Rows) -> bool:
    """A column of text counts as amounts or days if every row parses as one."""
    if column.kind is Kind.TEXT:
        values = [row[column.name] for row in rows if row[column.name]]
        if kind is Kind.DATE:
            return bool(values) and all(_day(value) is not None for value in values)
        return any("." in value for value in values) and all(
            _NUMBER.fullmatch(value) for value in values
        )
    if kind is Kind.DATE:
        return column.kind in (Kind.DATE, Kind.MOMENT)
    return column.kind is Kind.NUMBER and column.scale > 0


def _currency(
    left: Any, right: Any, met: Sequence[tuple[Any, Any]]
) -> tuple[dict[str, Any], str] | None:
    """Amounts are compared within one currency if both sides have the column and mostly agree."""
    a, b = (
        next((name for name in side if name.lower() in CURRENCIES), None) for side in (left, right)
    )
    if a is None or b is None or not met:
        return None
    equal = sum(x[a] == y[b] for x, y in met) / len(met)
    if equal < LEAST_AGREED:
        return None
    return {
        "left": a,
        "op": "eq",
        "right": b,
    }, f"{a} and {b} are the same in {equal:.0%} of the pairs."


def _amount(a: str, b: str, met: Sequence[tuple[Any, Any]]) -> tuple[dict[str, Any], str] | None:
    away = _away([abs(y - x) for x, y in _both(a, b, met, _decimal)])
    if away is None:
        return None
    condition = {"left": a, "op": "tolerance", "right": b, "absolute": f"{round(away, 6):f}"}
    return condition, f"{COVERED:.0%} of the amounts {a} and {b} are within {round(away, 6):f}."


def _window(a: str, b: str, met: Sequence[tuple[Any, Any]]) -> tuple[dict[str, Any], str] | None:
    days = _away([abs((y - x).days) for x, y in _both(a, b, met, _day)])
    if days is None:
        return None
    return {
        "left": a,
        "op": "date_window",
        "right": b,
        "days": days,
    }, f"{a} and {b} are within {days} days."


def _both(
    a: str, b: str, met: Sequence[tuple[Any, Any]], read: Callable[[object], T | None]
) -> Iterator[tuple[T, T]]:
    for left, right in met:
        x, y = read(left[a]), read(right[b])
        if x is not None and y is not None:
            yield x, y


def _away(distances: list[T]) -> T | None:
    """The distance that covers most of them."""
    ordered = sorted(distances)
    return ordered[min(len(ordered) - 1, int(COVERED * len(ordered)))] if ordered else None


def _decimal(value: object) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _day(value: object) -> date | None:
    match value:
        case datetime():
            return value.date()
        case date():
            return value
        case str() if is_date(value.strip()[:_DAY]):
            return date.fromisoformat(value.strip()[:_DAY])
    return None


def _sums(conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    amount = next((c for c in conditions if c["op"] == "tolerance"), None)
    if amount is None:
        return []
    total = {"left": amount["left"], "op": "sum_within", "right": amount["right"], "absolute": "0"}
    return [{"name": "suggested in parts", "pattern": "1:N", "conditions": [conditions[0], total]}]


def _condition(pair: _Pair) -> dict[str, Any]:
    if pair.normalized:
        return {"left": pair.left, "op": "normalized", "right": pair.right, "steps": _STEPS}
    return {"left": pair.left, "op": "eq", "right": pair.right}


def _same(value: object) -> object:
    return value


def _normal(value: object) -> object:
    return re.sub(r"[\W_]", "", str(value)).lower()


def _alike(a: str, b: str) -> float:
    return SequenceMatcher(None, a.lower(), b.lower()).ratio()
