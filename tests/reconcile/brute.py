"""The rules in plain Python, slowly: every pair is looked at, and only the recipe's document is shared."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from functools import cache
from typing import Any

Row = dict[str, Any]


def match(rules: list[dict[str, Any]], left: list[Row], right: list[Row]) -> dict[str, set[tuple[Any, ...]]]:
    """By rule: (left id, right id, ambiguous); None stands where a group has more of one side."""
    found: dict[str, set[tuple[Any, ...]]] = {}
    for rule in rules:
        links = {"1:1": one_to_one, "1:N": one_to_many, "M:1": many_to_one, "M:N": many_to_many}[rule["pattern"]](
            rule, left, right
        )
        found[rule["name"]] = set(links)
        taken_l, taken_r = {link[0] for link in links}, {link[1] for link in links}
        left = [row for row in left if row["id"] not in taken_l]
        right = [row for row in right if row["id"] not in taken_r]
    return found


def one_to_one(rule: dict[str, Any], left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    pairs = [(rank(rule, a, b), a["id"], b["id"]) for a in left for b in right if agrees(rule, a, b)]
    pairs.sort()
    used_l: set[Any] = set()
    used_r: set[Any] = set()
    links = []
    for key, a, b in pairs:
        if a in used_l or b in used_r:
            continue
        rivals = [
            (x, y)
            for other, x, y in pairs
            if other == key and (x, y) != (a, b) and (x == a or y == b) and x not in used_l and y not in used_r
        ]
        used_l.add(a)
        used_r.add(b)
        links.append((a, b, bool(rivals)))
    return links


def one_to_many(rule: dict[str, Any], left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    total = next(c for c in rule["conditions"] if c["op"] == "sum_within")
    wanted = {a["id"]: [b for b in right if agrees(rule, a, b)] for a in left}
    times: dict[Any, int] = defaultdict(int)
    for parts in wanted.values():
        for part in parts:
            times[part["id"]] += 1
    taken: set[Any] = set()
    links = []
    for a in sorted(left, key=lambda row: row["id"]):
        parts = [b for b in wanted[a["id"]] if b["id"] not in taken]
        if parts and within(total, a[total["left"]], sum(b[total["right"]] for b in parts)):
            ambiguous = any(times[b["id"]] > 1 for b in parts)
            taken |= {b["id"] for b in parts}
            links += [(a["id"], b["id"], ambiguous) for b in parts]
    return links


def many_to_one(rule: dict[str, Any], left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    total = next(c for c in rule["conditions"] if c["op"] == "sum_within")
    wanted = {b["id"]: [a for a in left if agrees(rule, a, b)] for b in right}
    times: dict[Any, int] = defaultdict(int)
    for parts in wanted.values():
        for part in parts:
            times[part["id"]] += 1
    taken: set[Any] = set()
    links = []
    for b in sorted(right, key=lambda row: row["id"]):
        parts = [a for a in wanted[b["id"]] if a["id"] not in taken]
        if parts and within(total, sum(a[total["left"]] for a in parts), b[total["right"]]):
            ambiguous = any(times[a["id"]] > 1 for a in parts)
            taken |= {a["id"] for a in parts}
            links += [(a["id"], b["id"], ambiguous) for a in parts]
    return links


def many_to_many(rule: dict[str, Any], left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    total = next(c for c in rule["conditions"] if c["op"] == "sum_within")
    keys = [c for c in rule["conditions"] if c["op"] != "sum_within"]
    groups: tuple[dict[Any, list[Row]], dict[Any, list[Row]]] = (defaultdict(list), defaultdict(list))
    for number, (rows, side) in enumerate(((left, "left"), (right, "right"))):
        for row in rows:
            key = tuple(keyed(c, row[c[side]]) for c in keys)
            if None not in key and row[total[side]] is not None:
                groups[number][key].append(row)
    links = []
    for key in groups[0].keys() & groups[1].keys():
        ones, others = ([r["id"] for r in sorted(g[key], key=lambda r: r["id"])] for g in groups)
        sums = [sum(r[total[side]] for r in g[key]) for g, side in zip(groups, ("left", "right"), strict=True)]
        if within(total, *sums):
            longest = max(len(ones), len(others))
            pad = [list(ids) + [None] * (longest - len(ids)) for ids in (ones, others)]
            links += [(a, b, False) for a, b in zip(*pad, strict=True)]
    return links


def agrees(rule: dict[str, Any], a: Row, b: Row) -> bool:
    return all(holds(c, a[c["left"]], b[c["right"]]) for c in rule["conditions"])


def holds(c: dict[str, Any], a: Any, b: Any) -> bool:  # noqa: C901 - one line an operator
    if a is None or b is None:
        return False
    match c["op"]:
        case "eq":
            return bool(a == b)
        case "gt":
            return bool(a > b)
        case "gte":
            return bool(a >= b)
        case "lt":
            return bool(a < b)
        case "lte":
            return bool(a <= b)
        case "contains":
            return b != "" and b in a
        case "startswith":
            return b != "" and a.startswith(b)
        case "endswith":
            return b != "" and a.endswith(b)
        case "tolerance":
            return within(c, a, b)
        case "sum_within":
            return True
        case "date_window":
            before, after = c.get("days", c.get("before", 0)), c.get("days", c.get("after", 0))
            return bool(-before <= (b - a).days <= after)
        case "normalized":
            return bool(keyed(c, a) == keyed(c, b))
        case "similar":
            return score(c, a, b) >= int(Decimal(c["min_score"]) * 10000)
    raise AssertionError(c["op"])


def within(c: dict[str, Any], a: Decimal, b: Decimal) -> bool:
    if "minus" in c or "plus" in c:
        return -Decimal(c.get("minus", "0")) <= b - a <= Decimal(c.get("plus", "0"))
    near = "absolute" in c and abs(b - a) <= Decimal(c["absolute"])
    return near or ("percent" in c and abs(b - a) <= Decimal(c["percent"]) / 100 * abs(a))


def keyed(c: dict[str, Any], value: Any) -> Any:  # noqa: C901 - one line a step
    if value is None or c["op"] == "eq":
        return value
    for step in c["steps"]:
        match step:
            case "trim":
                value = value.strip()
            case "case":
                value = value.lower()
            case "punctuation":
                value = re.sub(r"[^A-Za-z0-9 ]", "", value)
            case "spaces":
                value = re.sub(r"\s", "", value)
            case "digits":
                value = re.sub(r"[^0-9]", "", value)
            case "month":
                value = value.year * 100 + value.month
            case "year":
                value = value.year
            case {"regex": pattern, "replace": to}:
                value = re.sub(pattern, to, value)
    return value


def rank(rule: dict[str, Any], a: Row, b: Row) -> tuple[Any, ...]:
    scores = [score(c, a[c["left"]], b[c["right"]]) for c in rule["conditions"] if c["op"] == "similar"]
    away = []
    for c in rule["conditions"]:
        if c["op"] == "tolerance":
            away.append(abs(b[c["right"]] - a[c["left"]]))
        elif c["op"] == "date_window":
            away.append(Decimal(abs((b[c["right"]] - a[c["left"]]).days)))
    return (-min(scores, default=10000), *away)


def score(c: dict[str, Any], a: str, b: str) -> int:
    a, b = a.lower(), b.lower()
    if c.get("method") == "token":
        x, y = set(a.split()), set(b.split())
        return 10000 if not x and not y else 20000 * len(x & y) // (len(x) + len(y))
    longer = max(len(a), len(b))
    return 10000 if not longer else 10000 * (longer - edits(a, b)) // longer


@cache
def edits(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))
