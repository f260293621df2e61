"""Caps of SKIP and LIMIT, and the unsorted probe query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.graphdb.cypher.row_bounds import MOST_ROWS, with_row_bounds
from penstock.graphdb.cypher.skipped_sorts import SAFE_SKIP, first_row_unsorted

if TYPE_CHECKING:
    from penstock.graphdb.contract import JsonValue


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("RETURN 1 LIMIT 4294967295", "RETURN 1 LIMIT 4294967295"),
        ("RETURN 1 LIMIT 4294967296", "RETURN 1 LIMIT 4294967295"),
        (
            "RETURN 1 skip/* all */99999999999999999999 LIMIT 1",
            "RETURN 1 skip/* all */4294967295 LIMIT 1",
        ),
        ("RETURN 1 SKIP $big LIMIT $big;", "RETURN 1 SKIP 4294967295 LIMIT 4294967295;"),
        (
            "WITH 1 AS x LIMIT $big RETURN $big AS y",
            "WITH 1 AS x LIMIT 4294967295 RETURN $big AS y",
        ),
        ("RETURN 1 LIMIT $small", "RETURN 1 LIMIT $small"),
        ("RETURN 1 LIMIT $unknown", "RETURN 1 LIMIT $unknown"),
        ("RETURN 1 LIMIT $big + 1", "RETURN 1 LIMIT $big + 1"),
        ("RETURN 1 LIMIT 4294967296.5", "RETURN 1 LIMIT 4294967296.5"),
        ("RETURN 'LIMIT 4294967296' AS x", "RETURN 'LIMIT 4294967296' AS x"),
        ("RETURN 1 // LIMIT 4294967296", "RETURN 1 // LIMIT 4294967296"),
        ("MATCH (n) RETURN n.limit, $limit, {limit: 4294967296}", None),
    ],
)
def test_a_bound_beyond_32_bits_is_the_most_that_they_hold(text: str, written: str | None) -> None:
    parameters: dict[str, JsonValue] = {"big": MOST_ROWS + 1, "small": 5, "limit": 2**40}
    assert with_row_bounds(text, parameters) == (written or text)


@pytest.mark.parametrize(
    ("text", "unsorted"),
    [
        (
            "MATCH (n) RETURN n.x AS x ORDER BY x, n.limit SKIP 257 LIMIT 10",
            "MATCH (n) RETURN n.x AS x SKIP  257\nLIMIT 1",
        ),
        ("RETURN x ORDER BY x SKIP 1000;", "RETURN x SKIP  1000\nLIMIT 1"),
        ("RETURN x ORDER BY x SKIP 10 * 100 LIMIT 1", "RETURN x SKIP  10 * 100\nLIMIT 1"),
        (
            "WITH x ORDER BY x LIMIT 3 RETURN x ORDER BY x SKIP 300",
            "WITH x ORDER BY x LIMIT 3 RETURN x SKIP  300\nLIMIT 1",
        ),
        (f"RETURN x ORDER BY x SKIP {SAFE_SKIP} LIMIT 1", None),
        ("RETURN x SKIP 1000", None),
        ("RETURN x ORDER BY x LIMIT 1000", None),
        ("WITH x ORDER BY x SKIP 1000 RETURN x", None),
        ("RETURN x ORDER BY x SKIP 1000 UNION RETURN x", None),
        ("RETURN x ORDER BY 'SKIP 1000'", None),
    ],
)
def test_a_result_that_skips_many_sorted_rows_is_asked_for_its_first_one(
    text: str, unsorted: str | None
) -> None:
    assert first_row_unsorted(text) == unsorted
