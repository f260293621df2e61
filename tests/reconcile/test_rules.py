"""The matcher against the brute one: thousands of small random cases, many to a run, on every engine."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.reconcile import brute
from tests.reconcile.stand import links, recipe

BLOCKS = 100
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("block", pa.int32()),
        ("ref", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("name", pa.string()),
    ]
)
BLOCK = {"left": "block", "op": "eq", "right": "block"}
CONDITIONS: list[dict[str, Any]] = [
    {"left": "ref", "op": "eq", "right": "ref"},
    {"left": "ref", "op": "normalized", "right": "ref", "steps": ["trim", "case", "punctuation"]},
    {"left": "ref", "op": "normalized", "right": "ref", "steps": [{"regex": "^[iI]", "replace": ""}, "spaces"]},
    {"left": "day", "op": "normalized", "right": "day", "steps": ["month"]},
    {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.02"},
    {"left": "amount", "op": "tolerance", "right": "amount", "percent": "2"},
    {"left": "amount", "op": "tolerance", "right": "amount", "absolute": "0.01", "percent": "0.5"},
    {"left": "amount", "op": "tolerance", "right": "amount", "minus": "0.01", "plus": "1"},
    {"left": "day", "op": "date_window", "right": "day", "days": 2},
    {"left": "day", "op": "date_window", "right": "day", "before": 0, "after": 3},
    {"left": "amount", "op": "gte", "right": "amount"},
    {"left": "day", "op": "lt", "right": "day"},
    {"left": "name", "op": "contains", "right": "ref"},
    {"left": "name", "op": "startswith", "right": "ref"},
    {"left": "name", "op": "endswith", "right": "ref"},
    {"left": "name", "op": "similar", "right": "name", "min_score": "0.6"},
    {"left": "name", "op": "similar", "right": "name", "method": "token", "min_score": "0.5"},
]
SUMS: list[dict[str, Any]] = [
    {"left": "amount", "op": "sum_within", "right": "amount", "absolute": "0"},
    {"left": "amount", "op": "sum_within", "right": "amount", "percent": "5"},
    {"left": "amount", "op": "sum_within", "right": "amount", "minus": "0.02", "plus": "0.5"},
]
AMOUNTS = ["1.00", "1.01", "1.02", "1.03", "2.00", "2.02", "2.04", "3.00", "100.00", "102.00", "-1.00", "0.00"]
REFS = ["I1", "i1", " I-1", "1", "I2", "2", "", None]
NAMES = ["I1 acme", "acme corp", "corp acme", "acme", "acne", "", "2 I2", None]


def rows(random: random.Random, first: int, block: int) -> list[dict[str, Any]]:
    return [
        {
            "id": first + number,
            "block": block,
            "ref": random.choice(REFS),
            "amount": None if random.random() < 0.05 else Decimal(random.choice(AMOUNTS)),
            "day": None if random.random() < 0.05 else date(2024, 1, 30) + timedelta(days=random.randrange(6)),
            "name": random.choice(NAMES),
        }
        for number in range(random.randrange(6))
    ]


def rule(random: random.Random, number: int) -> dict[str, Any]:
    pattern = random.choice(["1:1", "1:1", "1:N", "M:1", "M:N"])
    allowed = [c for c in CONDITIONS if pattern != "M:N" or c["op"] in ("eq", "normalized")]
    conditions = [BLOCK, *random.sample(allowed, random.randrange(3))]
    if pattern != "1:1":
        conditions.append(random.choice(SUMS))
    return {"name": f"rule {number}", "pattern": pattern, "conditions": conditions}


@pytest.mark.parametrize(
    ("engine", "seed"), [*(("duckdb", seed) for seed in range(30)), *(("datafusion", seed) for seed in range(12))]
)
def test_a_brute_matcher_agrees_pair_by_pair(engine: str, seed: int) -> None:
    chance = random.Random(seed)
    left = [row for block in range(BLOCKS) for row in rows(chance, block * 100, block)]
    right = [row for block in range(BLOCKS) for row in rows(chance, block * 100, block)]
    chance.shuffle(right)
    rules = [rule(chance, number) for number in range(chance.randrange(1, 4))]
    expected: dict[str, set[tuple[Any, ...]]] = {r["name"]: set() for r in rules}
    for block in range(BLOCKS):
        mine, its = ([row for row in side if row["block"] == block] for side in (left, right))
        for name, found in brute.match(rules, mine, its).items():
            expected[name] |= found
    tables = [pa.Table.from_pylist(side, schema=SCHEMA) for side in (left, right)]
    assert links(recipe(rules=rules), *tables, engine=engine) == expected
