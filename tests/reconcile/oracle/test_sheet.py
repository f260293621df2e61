"""Expressions of match_sql on every engine against what docs/reference/match-sql.md says they mean.

`make fuzz NAME=reconcile` judges others; a sheet that fails names the seed that replays it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reconcile.oracle.sheet import PER_SEED, Tally, differences

if TYPE_CHECKING:
    from pathlib import Path

SHEETS = 40
AT_ONCE = 10


@pytest.mark.parametrize("first", range(0, SHEETS, AT_ONCE))
def test_every_engine_computes_expressions_as_the_reference_says(
    tmp_path: Path,
    first: int,
) -> None:
    tally, wrong = Tally(), {}
    for seed in range(first, first + AT_ONCE):
        (tmp_path / str(seed)).mkdir()
        if sentences := differences(seed, tmp_path / str(seed), tally):
            wrong[seed] = sentences[0]
    assert wrong == {}
    assert tally.computed >= PER_SEED * AT_ONCE // 2, "too few expressions have a value"
    assert tally.failed >= AT_ONCE // 2, "too few expressions end the run"
    assert tally.refused >= 1, "no expression is refused"
