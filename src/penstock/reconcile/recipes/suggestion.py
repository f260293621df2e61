"""Rules that the data suggest: which columns share values, how far amounts and dates of the same
key are apart.

Deterministic, from rows alone. With confirmed pairs the distances are those of the pairs; without,
of records that the suggested key brings together.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from penstock.kit.errors import InvalidInput
from penstock.reconcile.matching.column import Column, Kind, columns
from penstock.reconcile.recipes.filters import is_date
from penstock.reconcile.recipes.validation import CURRENCIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from penstock.kit.json_value import JsonObject, JsonValue

    Columns: TypeAlias = Mapping[str, Column]
    Met: TypeAlias = Sequence[tuple["Row", "Row"]]

T = TypeVar("T", Decimal, date, int)

LEAST_OVERLAP = 0.2
LEAST_AGREED = 0.8
COVERED = 0.95
MAX_COLUMNS = 500
"""Of each side: every one is held against every one of the other."""
MAX_CELLS = 1_000_000
SECONDS = 20.0
_NAME = 100
"""So many signs of two names say whether they are alike."""
_STEPS: list[JsonValue] = ["trim", "case", "punctuation", "spaces"]
_DAY = len("2024-01-31")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,6})?")
Row: TypeAlias = dict[str, object]
Rows: TypeAlias = list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`why` says what each condition rests on."""

    rules: list[JsonObject]
    why: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    left: str
    right: str
    overlap: float
    unique: float
    normalized: bool


class _Deadline:
    def __init__(self, seconds: float, ticks: Callable[[], float]) -> None:
        self._seconds = seconds
        self._ticks = ticks
        self._until = ticks() + seconds

    def check(self) -> None:
        """A thread cannot be stopped from outside, so whatever is done for two columns asks
        first.
        """
        if self._ticks() >= self._until:
            raise InvalidInput(
                f"Finding rules takes more than {self._seconds:g} s.",
                hint="Leave columns that no rule needs out in a query.",
            )


def suggest(
    left: pa.Table,
    right: pa.Table,
    pairs: Met | None = None,
    *,
    seconds: float = SECONDS,
    ticks: Callable[[], float] = time.monotonic,
) -> Suggestion:
    deadline = _Deadline(seconds, ticks)
    kinds = (columns(left.schema), columns(right.schema))
    rows = (_few(left).to_pylist(), _few(right).to_pylist())
    agreed = _agreed(*kinds, pairs or (), deadline)
    keys = agreed or _keys(*kinds, *rows, deadline)
    if not keys:
        return Suggestion(
            rules=[], why=["No two columns share values: there is nothing to match by."]
        )
    key = keys[0]
    message = (
        f"are equal in {key.overlap:.0%} of the confirmed pairs"
        if agreed
        else f"share {key.overlap:.0%} of their values"
    )
    conditions, why = [_condition(key)], [f"{key.left} and {key.right} {message}."]
    met = list(pairs) if pairs else _met(key, *rows)
    if (money := _currency(*kinds, met)) is not None:
        conditions.append(money[0])
        why.append(money[1])
    for kind, build in ((Kind.NUMBER, _amount), (Kind.DATE, _window)):
        for a, b in _named_alike(
            kind, *kinds, taken=(key.left, key.right), rows=rows, deadline=deadline
        ):
            deadline.check()
            if (built := build(a, b, met)) is not None:
                conditions.append(built[0])
                why.append(built[1])
                break
    return Suggestion(rules=[_rule("suggested", "1:1", conditions), *_sums(conditions)], why=why)


def _few(table: pa.Table) -> pa.Table:
    """As many first rows as become few enough Python values."""
    if table.num_columns > MAX_COLUMNS:
        raise InvalidInput(
            f"A side has {table.num_columns:,} columns; rules are found among at most"
            f" {MAX_COLUMNS}.",
            hint="Leave columns that no rule needs out in a query.",
            max_columns=MAX_COLUMNS,
        )
    return table.slice(0, MAX_CELLS // max(table.num_columns, 1))


def _keys(
    left: Columns, right: Columns, rows: Rows, others: Rows, deadline: _Deadline
) -> list[_Pair]:
    mine, its = _values(left, rows, deadline), _values(right, others, deadline)
    pairs_of_columns = [
        pair
        for a, b in _possible_keys(left, right, deadline)
        for pair in _shared(a, b, mine[a], its[b])
    ]
    return sorted(
        pairs_of_columns,
        key=lambda p: (
            -round(p.overlap * p.unique, 6),
            -_alike(p.left, p.right, deadline),
            p.left,
            p.right,
        ),
    )


def _possible_keys(left: Columns, right: Columns, deadline: _Deadline) -> Iterator[tuple[str, str]]:
    """Names of columns of one kind that may be keys: texts, and numbers without decimals."""
    for a in left.values():
        for b in right.values():
            deadline.check()
            whole_or_text = a.kind is Kind.TEXT or (a.kind is Kind.NUMBER and not a.scale)
            if whole_or_text and a.kind == b.kind:
                yield a.name, b.name


def _agreed(
    left: Columns,
    right: Columns,
    pairs: Met,
    deadline: _Deadline,
) -> list[_Pair]:
    """Columns that are equal in nearly all confirmed pairs, and tell the pairs apart."""
    pairs_of_columns = []
    for a, b in _possible_keys(left, right, deadline):
        both = [(x[a], y[b]) for x, y in pairs if x[a] is not None and y[b] is not None]
        pairs_of_columns += [
            _agreement(a, b, both, len(pairs), normalized=n) for n in (False, True) if both
        ]
    good = [p for p in pairs_of_columns if p.overlap >= LEAST_AGREED and p.unique >= LEAST_OVERLAP]
    return sorted(
        good,
        key=lambda p: (
            -round(p.overlap * p.unique, 6),
            p.normalized,
            -_alike(p.left, p.right, deadline),
            p.left,
            p.right,
        ),
    )


def _agreement(
    a: str, b: str, both: Sequence[tuple[object, object]], count: int, *, normalized: bool
) -> _Pair:
    read = _normal if normalized else _same
    equal = sum(read(x) == read(y) for x, y in both)
    unique = len({read(x) for x, _ in both}) / len(both)
    return _Pair(left=a, right=b, overlap=equal / count, unique=unique, normalized=normalized)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Of one column, as they are and normalized: read once, and held against every other column."""

    count: int
    plain: frozenset[object]
    normalized: frozenset[object]


def _values(side: Columns, rows: Rows, deadline: _Deadline) -> dict[str, _Values]:
    values = {}
    for column in side.values():
        deadline.check()
        if column.kind in (Kind.TEXT, Kind.NUMBER):
            present = [row[column.name] for row in rows if row[column.name] is not None]
            values[column.name] = _Values(
                count=len(present),
                plain=frozenset(present),
                normalized=frozenset(map(_normal, present)),
            )
    return values


def _shared(a: str, b: str, mine: _Values, its: _Values) -> list[_Pair]:
    if not mine.count or not its.count:
        return []
    shared_pairs = []
    for normalized, x, y in (
        (False, mine.plain, its.plain),
        (True, mine.normalized, its.normalized),
    ):
        overlap = len(x & y) / min(len(x), len(y))
        unique = min(len(x) / mine.count, 1.0)
        shared_pairs.append(
            _Pair(left=a, right=b, overlap=overlap, unique=unique, normalized=normalized)
        )
    best = [p for p in shared_pairs if p.overlap >= LEAST_OVERLAP and p.unique >= LEAST_OVERLAP]
    if len(best) == 2 and best[1].overlap <= best[0].overlap + 0.05:
        return best[:1]
    return best[-1:]


def _met(key: _Pair, rows: Rows, others: Rows) -> list[tuple[Row, Row]]:
    read = _normal if key.normalized else _same
    by: dict[object, Row] = {}
    for row in others:
        if row[key.right] is not None:
            by.setdefault(read(row[key.right]), row)
    return [
        (row, by[read(row[key.left])])
        for row in rows
        if row[key.left] is not None and read(row[key.left]) in by
    ]


def _named_alike(
    kind: Kind,
    left: Columns,
    right: Columns,
    *,
    taken: tuple[str, str],
    rows: tuple[Rows, Rows],
    deadline: _Deadline,
) -> list[tuple[str, str]]:
    mine = [c.name for c in left.values() if c.name != taken[0] and _is(c, kind, rows[0])]
    its = [c.name for c in right.values() if c.name != taken[1] and _is(c, kind, rows[1])]
    return sorted(
        ((a, b) for a in mine for b in its), key=lambda p: (-_alike(p[0], p[1], deadline), p)
    )


def _is(column: Column, kind: Kind, rows: Rows) -> bool:
    """A file has text only: what reads as amounts or days in every row is taken for it."""
    if column.kind is Kind.TEXT:
        values = [str(row[column.name]) for row in rows if row[column.name]]
        if kind is Kind.DATE:
            return bool(values) and all(_day(value) is not None for value in values)
        return any("." in value for value in values) and all(
            _NUMBER.fullmatch(value) for value in values
        )
    if kind is Kind.DATE:
        return column.kind in (Kind.DATE, Kind.MOMENT)
    return column.kind is Kind.NUMBER and column.scale > 0


def _currency(left: Columns, right: Columns, met: Met) -> tuple[JsonObject, str] | None:
    """Amounts are compared within one currency, where both sides name it and mostly agree."""
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


def _amount(a: str, b: str, met: Met) -> tuple[JsonObject, str] | None:
    away = _away([abs(y - x) for x, y in _both(a, b, met, _decimal)])
    if away is None:
        return None
    condition: JsonObject = {
        "left": a,
        "op": "tolerance",
        "right": b,
        "absolute": f"{round(away, 6):f}",
    }
    return condition, f"{COVERED:.0%} of the amounts {a} and {b} are within {round(away, 6):f}."


def _window(a: str, b: str, met: Met) -> tuple[JsonObject, str] | None:
    days = _away([abs((y - x).days) for x, y in _both(a, b, met, _day)])
    if days is None:
        return None
    return {
        "left": a,
        "op": "date_window",
        "right": b,
        "days": days,
    }, f"{a} and {b} are within {days} days."


def _both(a: str, b: str, met: Met, read: Callable[[object], T | None]) -> Iterator[tuple[T, T]]:
    for left, right in met:
        x, y = read(left[a]), read(right[b])
        if x is not None and y is not None:
            yield x, y


def _away(distances: list[T]) -> T | None:
    """So far that most are covered."""
    ordered = sorted(distances)
    return ordered[min(len(ordered) - 1, int(COVERED * len(ordered)))] if ordered else None


def _decimal(value: object) -> Decimal | None:
    try:
        decimal = Decimal(str(value))
    except InvalidOperation:
        return None
    return decimal if decimal.is_finite() else None


def _day(value: object) -> date | None:
    match value:
        case datetime():
            return value.date()
        case date():
            return value
        case str() if is_date(value.strip()[:_DAY]):
            return date.fromisoformat(value.strip()[:_DAY])
    return None


def _sums(conditions: list[JsonObject]) -> list[JsonObject]:
    amount = next((c for c in conditions if c["op"] == "tolerance"), None)
    if amount is None:
        return []
    total = {"left": amount["left"], "op": "sum_within", "right": amount["right"], "absolute": "0"}
    return [_rule("suggested in parts", "1:N", [conditions[0], total])]


def _rule(name: str, pattern: str, conditions: Sequence[JsonObject]) -> JsonObject:
    return {"name": name, "pattern": pattern, "conditions": [*conditions]}


def _condition(pair: _Pair) -> JsonObject:
    if pair.normalized:
        return {"left": pair.left, "op": "normalized", "right": pair.right, "steps": _STEPS}
    return {"left": pair.left, "op": "eq", "right": pair.right}


def _same(value: object) -> object:
    return value


def _normal(value: object) -> object:
    return re.sub(r"[\W_]", "", str(value)).lower()


def _alike(a: str, b: str, deadline: _Deadline) -> float:
    deadline.check()
    return SequenceMatcher(None, a[:_NAME].lower(), b[:_NAME].lower()).ratio()
