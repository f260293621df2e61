"""Fuzzes generated data sets and sheets of expressions: `run(cases, seed)` prints the differences,
with the seed that replays each alone."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

from tests.reconcile.oracle.books import book
from tests.reconcile.oracle.judge import differences
from tests.reconcile.oracle.sheet import Tally
from tests.reconcile.oracle.sheet import differences as sheet_differences


def problems(seed: int) -> list[str]:
    """What is wrong with the book of one seed."""
    with tempfile.TemporaryDirectory(prefix="penstock-oracle-") as folder:
        try:
            return differences(book(seed), Path(folder))
        except Exception:
            return [traceback.format_exc()]


def sheet_problems(seed: int) -> list[str]:
    """What is wrong with the expressions of one seed."""
    with tempfile.TemporaryDirectory(prefix="penstock-oracle-") as folder:
        try:
            return sheet_differences(seed, Path(folder), Tally())
        except Exception:
            return [traceback.format_exc()]


def run(cases: int, seed: int) -> int:
    """Judge the books and sheets of `cases` seeds from `seed` on; how many have differences."""
    wrong = 0
    for number in range(seed, seed + cases):
        for kind, judge in (("book", problems), ("sheet", sheet_problems)):
            sentences = judge(number)
            wrong += bool(sentences)
            for sentence in sentences[:5]:
                sys.stdout.write(f"{kind} {number}: {sentence}\n")
    sys.stdout.write(f"{cases} books and sheets from seed {seed}: {wrong} differ\n")
    return wrong
