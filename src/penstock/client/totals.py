"""The totals of a run, as its evidence has them."""

from __future__ import annotations

from typing import TypedDict

Money = dict[str, str]
"""An exact amount for each currency; without a currency column its name is empty."""


class SideTotals(TypedDict):
    """One side of a run. `amounts` has sums of all rows (`total`), of the `matched` and of the
    `unmatched` ones; `unmatched_absolute` sums absolute values."""

    rows: int
    matched: int
    unmatched: int
    null_keys: int
    reasons: dict[str, int]
    amounts: dict[str, Money]


class RuleTotals(TypedDict):
    """One rule of a run: how many matches it made, and their sums on both sides."""

    name: str
    matches: int
    amounts: dict[str, Money]
