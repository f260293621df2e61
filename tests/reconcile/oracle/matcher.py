"""Reference matcher in plain Python: compares every pair, and shares only the recipe document with
the real one.

Written from docs/guides/reconcile.md. Slow, and meant to be read from top to bottom.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cmp_to_key
from itertools import product
from typing import TYPE_CHECKING, Any

from tests.reconcile.oracle import assignment
from tests.reconcile.oracle.assignment import Edge
from tests.reconcile.oracle.values import (
    AMOUNT_DIGITS,
    COMPARED_DIGITS,
    Refused,
    Row,
    Side,
    day,
    decimals,
    instant,
    number,
    similarity,
    step,
    text,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Condition = dict[str, Any]
Rule = dict[str, Any]
_COMPARED = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}
_FAILED = {
    "tolerance": "amount_out_of_tolerance",
    "sum_within": "amount_out_of_tolerance",
    "date_window": "date_out_of_window",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Records that belong together, by their places in their files. `manual` is the rule of
    decisions."""

    rule: str
    pattern: str
    left: frozenset[int]
    right: frozenset[int]
    ambiguous: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    reason: str
    rule: str | None = None
    nearest: tuple[Any, ...] | None = None
    difference: Decimal | None = None
    days: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    matches: list[Match]
    breaks: dict[str, dict[int, Break]]
    duplicates: dict[str, dict[tuple[str | None, ...], int]]
    greedy_clusters: dict[str, int]
    large_sums: bool
    """Whether a sum has more digits than a percentage may be taken of, so that the run may be
    refused."""


@dataclass(slots=True, kw_only=True)
class Compared:
    """What a rule that sums compared and found wrong: right minus left and how many parts, by
    the single record or, for M:N, by the key of the group."""

    sums: dict[Any, tuple[Decimal, int]] = field(default_factory=dict)


class Matcher:
    def __init__(
        self,
        document: dict[str, Any],
        left: Side,
        right: Side,
        *,
        exact_cluster: int,
    ) -> None:
        self.document = document
        self.left = left
        self.right = right
        self.rules: Sequence[Rule] = document.get("rules", ())
        self.zone = document.get("time_zone", "UTC")
        self.exact_cluster = exact_cluster
        self.greedy_clusters: dict[str, int] = {}
        self.large_sums = False
        self.compared: dict[str, Compared] = {}
        self.places = {"left": _key_order(left), "right": _key_order(right)}

    def run(
        self,
        match: Sequence[tuple[Any, Any]] = (),
        unmatch: Sequence[tuple[Any, Any]] = (),
    ) -> Answer:
        """`match` and `unmatch` are decisions: pairs of keys."""
        with localcontext(prec=200):
            self.check_values()
            self.forbidden = {pair for keys in unmatch for pair in product(*self._named(keys))}
            return self._answer(match)

    def _answer(self, match: Sequence[tuple[Any, Any]]) -> Answer:
        pools = (list(range(len(self.left.rows))), list(range(len(self.right.rows))))
        matches = self._manual(match)
        pools = _without(pools, matches)
        for rule in self.rules:
            of_rule = self._rule(rule, *pools)
            matches += of_rule
            pools = _without(pools, of_rule)
        breaks = {
            side.name: {place: self._break(side, place, matches) for place in pool}
            for side, pool in zip((self.left, self.right), pools, strict=True)
        }
        return self._with_duplicates(matches, breaks)

    def _with_duplicates(self, matches: list[Match], breaks: dict[str, dict[int, Break]]) -> Answer:
        duplicates = {side.name: _duplicates(side) for side in (self.left, self.right)}
        return Answer(
            matches=matches,
            breaks=breaks,
            duplicates=duplicates,
            greedy_clusters=self.greedy_clusters,
            large_sums=self.large_sums,
        )

    # values

    def check_values(self) -> None:
        """Every value that a rule reads must be readable, before anything is matched."""
        rows = [(side, row) for side in (self.left, self.right) for row in side.rows]
        for condition in [c for rule in self.rules for c in rule["conditions"]]:
            if condition["op"] in ("tolerance", "sum_within"):
                self._check_bounds(condition)
            for side, row in rows:
                self._value(condition, side, row)
        if (pair := self.totalled()) is not None:
            for side, row in rows:
                column = pair[side.name]
                number(side, column, row, side.scale(column), AMOUNT_DIGITS)
        for pair in self.document.get("compare", ()):
            self._check_compared(pair)

    def _check_compared(self, pair: dict[str, str]) -> None:
        if {self.left.kind(pair["left"]), self.right.kind(pair["right"])} == {"number"}:
            scale = max(self.left.scale(pair["left"]), self.right.scale(pair["right"]))
            for side in (self.left, self.right):
                for row in side.rows:
                    number(side, pair[side.name], row, scale, COMPARED_DIGITS)

    def totalled(self) -> dict[str, str] | None:
        """Which amounts are totalled: those of the output, else of the first condition about
        amounts."""
        output: dict[str, str] | None = self.document.get("output", {}).get("amount")
        conditions = [c for rule in self.rules for c in rule["conditions"]]
        amounts = [c for c in conditions if c["op"] in ("tolerance", "sum_within")]
        return output or next(iter(amounts), None)

    def _value(self, c: Condition, side: Side, row: Row) -> Any:
        """What a condition compares of one record."""
        column = c[side.name]
        match c["op"]:
            case "tolerance" | "sum_within":
                return number(side, column, row, self._scale_with_bounds(c), AMOUNT_DIGITS)
            case "date_window":
                return day(side, column, row, self.zone)
            case "normalized":
                return self._normalized(c, side, row)
            case "similar" | "contains" | "startswith" | "endswith":
                return row[column]
        return self._comparable(c, side, row)

    def _scale_with_bounds(self, c: Condition) -> int:
        return max(
            [
                self._scale(c),
                *(decimals(c[name]) for name in ("absolute", "minus", "plus") if name in c),
            ]
        )

    def _check_bounds(self, c: Condition) -> None:
        """A bound is an amount too."""
        for name in ("absolute", "minus", "plus"):
            whole_digits = AMOUNT_DIGITS - self._scale_with_bounds(c)
            if Decimal(str(c.get(name, 0))) >= Decimal(10) ** whole_digits:
                raise Refused("recipe", name)

    def _scale(self, c: Condition) -> int:
        return max(self.left.scale(c["left"]), self.right.scale(c["right"]))

    def _comparable(self, c: Condition, side: Side, row: Row) -> Any:
        column, kinds = c[side.name], {self.left.kind(c["left"]), self.right.kind(c["right"])}
        if "number" in kinds:
            return number(side, column, row, self._scale(c), COMPARED_DIGITS)
        if kinds == {"moment"}:
            zoned = [s.type(c[s.name]).tz is not None for s in (self.left, self.right)]
            return instant(row[column], self.zone, local=zoned[0] != zoned[1])
        if kinds & {"date", "moment"}:
            return day(side, column, row, self.zone)
        return text(row[column])

    def _normalized(self, c: Condition, side: Side, row: Row) -> Any:
        value = row[c[side.name]]
        for name in c["steps"]:
            if name in ("month", "year"):
                number_of_day = day(side, c[side.name], row, self.zone)
                value = None if number_of_day is None else _month(number_of_day, name)
            elif value is not None:
                value = step(name, text(value) or "")
        return value

    # conditions

    def _holds(self, c: Condition, a: int, b: int) -> bool:
        x, y = (
            self._value(c, self.left, self.left.rows[a]),
            self._value(c, self.right, self.right.rows[b]),
        )
        if x is None or y is None:
            return False
        match c["op"]:
            case "tolerance":
                return within(c, x, y)
            case "sum_within":
                return True
            case "date_window":
                before, after = c.get("days", c.get("before", 0)), c.get("days", c.get("after", 0))
                return bool(-before <= y - x <= after)
            case "normalized":
                return bool(x == y)
            case "similar":
                least = int(Decimal(str(c["min_score"])) * 10_000)
                return similarity(x, y, c.get("method", "edit")) >= least
            case "contains":
                return y != "" and y in x
            case "startswith":
                return y != "" and bool(x.startswith(y))
            case "endswith":
                return y != "" and bool(x.endswith(y))
        return bool(_COMPARED[c["op"]](x, y))

    def _is_candidate(self, rule: Rule, a: int, b: int) -> bool:
        allowed = (a, b) not in self.forbidden
        return allowed and all(self._holds(c, a, b) for c in rule["conditions"])

    def _differences(self, rule: Rule, a: int, b: int) -> list[Decimal | None]:
        """How far amounts and days are apart, in the order of the conditions."""
        apart_by: list[Decimal | None] = []
        for c in rule["conditions"]:
            if c["op"] in ("tolerance", "date_window"):
                apart = self._apart(c, a, b)
                apart_by.append(None if apart is None else abs(apart))
        return apart_by

    def _apart(self, c: Condition, a: int, b: int) -> Decimal | None:
        x, y = (
            self._value(c, self.left, self.left.rows[a]),
            self._value(c, self.right, self.right.rows[b]),
        )
        return None if x is None or y is None else Decimal(y) - Decimal(x)

    def _score(self, rule: Rule, a: int, b: int) -> int:
        scores = [
            similarity(
                self.left.rows[a][c["left"]],
                self.right.rows[b][c["right"]],
                c.get("method", "edit"),
            )
            for c in rule["conditions"]
            if c["op"] == "similar"
        ]
        return min(scores, default=10_000)

    # rules

    def _rule(self, rule: Rule, lefts: list[int], rights: list[int]) -> list[Match]:
        match rule["pattern"]:
            case "1:1":
                return self._one_to_one(rule, lefts, rights)
            case "M:N":
                return self._groups(rule, lefts, rights)
        return self._parts(rule, lefts, rights)

    def _one_to_one(self, rule: Rule, lefts: list[int], rights: list[int]) -> list[Match]:
        edges: dict[Edge, tuple[int, int]] = {}
        for a, b in product(lefts, rights):
            if self._is_candidate(rule, a, b):
                away = tuple(apart for apart in self._differences(rule, a, b) if apart is not None)
                places = self.places["left"][a], self.places["right"][b]
                edges[Edge(*places, self._score(rule, a, b), away)] = (a, b)
        matches, too_large = [], 0
        for cluster in assignment.clusters(list(edges)):
            exact = assignment.records(cluster) <= self.exact_cluster
            too_large += not exact
            settle = assignment.best if exact else assignment.greedy
            for edge, ambiguous in settle(cluster).items():
                a, b = edges[edge]
                matches.append(_match(rule, [a], [b], ambiguous=ambiguous))
        self.greedy_clusters[rule["name"]] = too_large
        return matches

    def _parts(self, rule: Rule, lefts: list[int], rights: list[int]) -> list[Match]:
        """1:N and M:1: the single record takes all of its parts that are still there, if their
        sum fits."""
        left_is_one = rule["pattern"] == "1:N"
        ones, others = (lefts, rights) if left_is_one else (rights, lefts)
        candidates = {
            one: [
                other
                for other in others
                if self._is_candidate(rule, *((one, other) if left_is_one else (other, one)))
            ]
            for one in ones
        }
        times = Counter(part for parts in candidates.values() for part in parts)
        places = self.places["left" if left_is_one else "right"]
        taken: set[int] = set()
        matches = []
        compared = self.compared.setdefault(rule["name"], Compared())
        total = _sum_of(rule)
        for one in sorted(ones, key=lambda place: places[place]):
            parts = [part for part in candidates[one] if part not in taken]
            if not parts:
                continue
            a, b = ([one], parts) if left_is_one else (parts, [one])
            left, right = self._sum(total, self.left, a), self._sum(total, self.right, b)
            if within(total, left, right):
                taken.update(parts)
                matches.append(_match(rule, a, b, ambiguous=any(times[part] > 1 for part in parts)))
            else:
                compared.sums[one] = (right - left, len(parts))
        return matches

    def _groups(self, rule: Rule, lefts: list[int], rights: list[int]) -> list[Match]:
        total, compared = _sum_of(rule), self.compared.setdefault(rule["name"], Compared())
        groups = [
            self._grouped(rule, side, pool)
            for side, pool in ((self.left, lefts), (self.right, rights))
        ]
        matches = []
        for key in groups[0].keys() & groups[1].keys():
            a, b = groups[0][key], groups[1][key]
            left, right = self._sum(total, self.left, a), self._sum(total, self.right, b)
            if not within(total, left, right):
                compared.sums[key] = (right - left, len(a) + len(b))
            elif not any((x, y) in self.forbidden for x, y in product(a, b)):
                matches.append(_match(rule, a, b, ambiguous=False))
        return matches

    def _grouped(
        self,
        rule: Rule,
        side: Side,
        pool: Sequence[int],
    ) -> dict[tuple[Any, ...], list[int]]:
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place in pool:
            key = self._group_key(rule, side, place)
            if None not in key and self._value(_sum_of(rule), side, side.rows[place]) is not None:
                groups[key].append(place)
        return groups

    def _group_key(self, rule: Rule, side: Side, place: int) -> tuple[Any, ...]:
        return tuple(
            self._value(c, side, side.rows[place]) for c in rule["conditions"] if _is_key(c)
        )

    def _sum(self, c: Condition, side: Side, places: Sequence[int]) -> Decimal:
        total = sum((self._value(c, side, side.rows[place]) for place in places), Decimal(0))
        most = Decimal(10) ** (AMOUNT_DIGITS - self._scale_with_bounds(c))
        self.large_sums |= "percent" in c and abs(total) >= most
        return total

    # decisions

    def _named(self, keys: tuple[Any, Any]) -> tuple[list[int], list[int]]:
        left, right = (
            [
                place
                for place, row in enumerate(side.rows)
                if None not in key and _key(side, row) == key
            ]
            for side, key in zip((self.left, self.right), keys, strict=True)
        )
        return left, right

    def _manual(self, decisions: Sequence[tuple[Any, Any]]) -> list[Match]:
        """The first record with each key."""
        rule = {"name": "manual", "pattern": "manual"}
        named = [self._named(keys) for keys in decisions]
        return [_match(rule, a[:1], b[:1], ambiguous=False) for a, b in named if a and b]

    # why records are left

    def _break(self, side: Side, place: int, matches: Sequence[Match]) -> Break:
        matched = {other for match in matches for other in getattr(match, side.name)}
        key = _key(side, side.rows[place])
        reason = None
        if None not in key and any(_key(side, side.rows[other]) == key for other in matched):
            reason = "duplicate"
        judged = []
        for number_of_rule, rule in enumerate(self.rules):
            if (near := self._nearest(rule, side, place)) is not None:
                fails, nearest_of_rule = near
                judged.append((fails, number_of_rule, nearest_of_rule))
        if judged:
            _, _, nearest = min(judged, key=lambda item: item[:2])
            return nearest if reason is None else _because(nearest, reason)
        keyed = any(any(map(_is_key, rule["conditions"])) for rule in self.rules)
        return Break(reason=reason or ("no_key" if keyed else "other_condition"))

    def _nearest(self, rule: Rule, side: Side, place: int) -> tuple[int, Break] | None:
        """Of the records of the other side with its key the one that fails least, then nearest,
        then by key."""
        other = self.right if side is self.left else self.left
        keys, rest = (
            [c for c in rule["conditions"] if _is_key(c) is is_key] for is_key in (True, False)
        )
        if not keys:
            return None
        judged = []
        for candidate in self._with_key(rule, keys, side, place, other):
            a, b = (place, candidate) if side is self.left else (candidate, place)
            failed = [c for c in rest if not self._holds(c, a, b)]
            compared = self._compared(rule, a, b)
            fails = len(failed) + (
                rule["pattern"] != "1:1" and (compared is None or compared[1] < 2)
            )
            ranks = [(apart is None, apart or 0) for apart in self._differences(rule, a, b)]
            judged.append(
                ((fails, ranks, self.places[other.name][candidate]), a, b, failed, compared)
            )
        if not judged:
            return None
        (fails, _, _), a, b, failed, compared = min(judged, key=lambda item: item[0])
        reason = _FAILED.get(failed[0]["op"], "other_condition") if failed else "ambiguous"
        amount = next(
            (c for c in rule["conditions"] if c["op"] in ("tolerance", "sum_within")), None
        )
        if rule["pattern"] != "1:1":
            amount = _sum_of(rule)
        difference = None if amount is None else self._apart(amount, a, b)
        if not failed and compared is not None:
            reason, difference = "sum_mismatch", compared[0]
        window = next((c for c in rest if c["op"] == "date_window"), None)
        days = None if window is None else self._apart(window, a, b)
        nearest = _key(other, other.rows[b if side is self.left else a])
        return fails, Break(
            reason=reason,
            rule=rule["name"],
            nearest=nearest,
            difference=difference,
            days=None if days is None else int(days),
        )

    def _with_key(
        self,
        rule: Rule,
        keys: Sequence[Condition],
        side: Side,
        place: int,
        other: Side,
    ) -> list[int]:
        same_key = [
            candidate
            for candidate in range(len(other.rows))
            if all(
                self._holds(c, *((place, candidate) if side is self.left else (candidate, place)))
                for c in keys
            )
        ]
        if rule["pattern"] != "M:N":
            return same_key
        with_amount = [
            p for p in same_key if self._value(_sum_of(rule), other, other.rows[p]) is not None
        ]
        return (with_amount or same_key)[:1]

    def _compared(self, rule: Rule, a: int, b: int) -> tuple[Decimal, int] | None:
        """The sum that was compared and is wrong, and of how many parts."""
        compared = self.compared.get(rule["name"], Compared()).sums
        match rule["pattern"]:
            case "1:N":
                return compared.get(a)
            case "M:1":
                return compared.get(b)
            case "M:N":
                return compared.get(self._group_key(rule, self.left, a))
        return None


def _match(rule: Rule, left: Sequence[int], right: Sequence[int], *, ambiguous: bool) -> Match:
    return Match(
        rule=rule["name"],
        pattern=rule["pattern"],
        left=frozenset(left),
        right=frozenset(right),
        ambiguous=ambiguous,
    )


def _because(nearest: Break, reason: str) -> Break:
    return Break(
        reason=reason,
        rule=nearest.rule,
        nearest=nearest.nearest,
        difference=nearest.difference,
        days=nearest.days,
    )


def _without(
    pools: tuple[list[int], list[int]],
    matches: Sequence[Match],
) -> tuple[list[int], list[int]]:
    left = {place for match in matches for place in match.left}
    right = {place for match in matches for place in match.right}
    return [p for p in pools[0] if p not in left], [p for p in pools[1] if p not in right]


def _is_key(c: Condition) -> bool:
    return c["op"] in ("eq", "normalized")


def _sum_of(rule: Rule) -> Condition:
    return next(c for c in rule["conditions"] if c["op"] == "sum_within")


def _key(side: Side, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in side.key)


def _key_order(side: Side) -> dict[int, int]:
    """The place of each record when they are put in the order of keys, nulls last, then as they
    came."""

    def compare(one: int, other: int) -> int:
        for a, b in zip(_key(side, side.rows[one]), _key(side, side.rows[other]), strict=True):
            if a != b:
                return (a is None) - (b is None) or (1 if a > b else -1)
        return one - other

    ordered = sorted(range(len(side.rows)), key=cmp_to_key(compare))
    return {place: number_in_order for number_in_order, place in enumerate(ordered)}


def _duplicates(side: Side) -> dict[tuple[str | None, ...], int]:
    times = Counter(_key(side, row) for row in side.rows)
    return {tuple(text(part) for part in key): count for key, count in times.items() if count > 1}


def _month(number_of_day: int, unit: str) -> int:
    from datetime import date, timedelta

    at = date(1970, 1, 1) + timedelta(days=number_of_day)
    return at.year if unit == "year" else at.year * 100 + at.month


class FreeMatcher(Matcher):
    """A recipe of free SQL; `conditions` are what its SQL asks for, which is a join of both
    sources."""

    def __init__(
        self,
        document: dict[str, Any],
        left: Side,
        right: Side,
        conditions: Sequence[Condition],
    ) -> None:
        super().__init__(document, left, right, exact_cluster=0)
        self.conditions = conditions

    def _answer(self, match: Sequence[tuple[Any, Any]]) -> Answer:
        pools = (list(range(len(self.left.rows))), list(range(len(self.right.rows))))
        returned = {(a, b) for a, b in product(*pools) if self._is_returned(a, b)}
        matches = self._manual(match)
        free = _without(pools, matches)
        pairs = {(a, b) for a, b in returned - self.forbidden if a in free[0] and b in free[1]}
        matches += self._groups_of(pairs)
        breaks = {
            side.name: {
                place: Break(reason=self._why(side, place, matches, returned)) for place in pool
            }
            for side, pool in zip((self.left, self.right), _without(pools, matches), strict=True)
        }
        return self._with_duplicates(matches, breaks)

    def _is_returned(self, a: int, b: int) -> bool:
        named = [
            any(part is not None for part in _key(s, s.rows[p]))
            for s, p in ((self.left, a), (self.right, b))
        ]
        return all(named) and all(self._holds(c, a, b) for c in self.conditions)

    def _groups_of(self, pairs: set[tuple[int, int]]) -> list[Match]:
        """A match for each record of the side that leads: the right one of M:1, else the left
        one."""
        pattern = self.document.get("match_pattern")
        times = [Counter(pair[at] for pair in pairs) for at in (0, 1)]
        several = {"1:N": (1,), "M:1": (0,), "M:N": ()}.get(pattern or "", (0, 1))
        lead = 1 if pattern == "M:1" else 0
        groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for pair in pairs:
            groups[pair[lead]].append(pair)
        return [
            _match(
                {"name": "match_sql", "pattern": "sql"},
                [a for a, _ in group],
                [b for _, b in group],
                ambiguous=any(times[at][pair[at]] > 1 for pair in group for at in several),
            )
            for group in groups.values()
        ]

    def _why(
        self,
        side: Side,
        place: int,
        matches: Sequence[Match],
        returned: set[tuple[int, int]],
    ) -> str:
        row = side.rows[place]
        matched = {other for match in matches for other in getattr(match, side.name)}
        if None not in _key(side, row) and any(
            _key(side, side.rows[p]) == _key(side, row) for p in matched
        ):
            return "duplicate"
        if any(pair[0 if side is self.left else 1] == place for pair in returned):
            return "ambiguous"
        other = self.right if side is self.left else self.left
        keys = [c for c in self.conditions if c["op"] == "eq"]
        if all(part is None for part in _key(side, row)) or any(
            row[c[side.name]] is None for c in keys
        ):
            return "no_key"
        same = [r for r in other.rows if all(r[c[other.name]] == row[c[side.name]] for c in keys)]
        return "rejected_by_sql" if same else "no_candidate"
