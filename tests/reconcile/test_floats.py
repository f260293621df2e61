"""Floats as amounts: six decimals of their shortest text, a half away from zero."""

from __future__ import annotations

import math
import random
import struct
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import open_engine
from penstock.reconcile.matching.amounts import of_float
from tests.reconcile.book_runs import document, execute, rows
from tests.reconcile.oracle.values import rounded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def halves(dice: random.Random) -> Iterator[float]:
    """Numbers with a 5 as their seventh decimal, and their neighbors among doubles."""
    for _ in range(30_000):
        size = dice.choice([1, 10, 1000, 10**6, 10**8, 10**9])
        number = float(f"{dice.choice('+-')}{dice.randrange(size)}.{dice.randrange(10**6):06d}5")
        yield from (number, math.nextafter(number, math.inf), math.nextafter(number, -math.inf))


def amounts(dice: random.Random) -> Iterator[float]:
    yield from (0.0, -0.0, 5e-324, 5e-7, -5e-7, 4.999999999999999e-7, float(2**30), 2**30 - 0.25)
    for _ in range(20_000):
        yield round(dice.uniform(-1, 1) * 10 ** dice.randrange(16), dice.randrange(9))
    for _ in range(20_000):
        number = struct.unpack("d", dice.randbytes(8))[0]
        if math.isfinite(number) and abs(number) < 10**21:
            yield number


def test_a_float_is_rounded_half_up_from_its_shortest_text(engine: str, tmp_path: Path) -> None:
    dice = random.Random(13)
    floats = [*halves(dice), *amounts(dice)]
    with open_engine(engine, tmp_path, EngineLimits()) as opened:
        opened.load("t", pa.table({"i": range(len(floats)), "f": floats}))
        read = opened.stream(f"SELECT i, {of_float('f', opened.dialect)} AS v FROM t ORDER BY i")
        numbers = read.read_all().column("v").to_pylist()
    wrong = [(f, v) for f, v in zip(floats, numbers, strict=True) if v != rounded(f)]
    assert wrong == []


def test_a_rule_compares_floats_as_they_are_rounded(engine: str, tmp_path: Path) -> None:
    floats = [0.5237875, -33582464.4777995, 1.0000005, 2.5000015]
    texts = ["0.523788", "-33582464.477800", "1.000001", "2.500002"]
    rules = [{"name": "same", "conditions": [{"left": "a", "op": "eq", "right": "b"}]}]
    left = pa.table({"id": range(4), "a": floats})
    right = pa.table({"id": range(4), "b": texts})
    done = execute(tmp_path / "run", document(rules=rules), left, right, engine=engine)
    pairs = [(row["left_id"], row["right_id"]) for row in rows(done, "matched")]
    assert pairs == [(n, n) for n in range(4)]
