"""Aggregation of sorted and limited rows: the rewrite around a bug of Ladybug's planner."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.graphdb.cypher.order_by_aggregates import with_barriers

BARRIER = "UNWIND [0] AS _sorted0 "


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (n) WITH n.a AS x ORDER BY x LIMIT 2 |RETURN sum(x)",
        "MATCH (n) WITH n.a AS x ORDER BY x SKIP $s WHERE x > 1 |RETURN (sum(x))",
        "MATCH (n) WITH n ORDER BY n.a LIMIT 2 WITH * |RETURN sum(n.a)",
        "MATCH (n) WITH n ORDER BY n.a LIMIT 2 MATCH (n)-->(m) |WITH DISTINCT m RETURN count(*)",
        "MATCH (n) WHERE n.s STARTS WITH 'x' WITH n ORDER BY n.a LIMIT 2 |RETURN max(n.a)",
        "MATCH (n) WITH n.return AS x, n.`with` AS y ORDER BY x LIMIT 2 |RETURN 'a' + max(y)",
        (
            "MATCH (n) with n order by n.a limit 2 |return sum(n.a) UNION RETURN 1 AS x ORDER BY x"
            " LIMIT 1"
        ),
    ],
)
def test_an_unwind_comes_between_the_cut_and_the_next_projection(text: str) -> None:
    assert with_barriers(text.replace("|", "")) == text.replace("|", BARRIER)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (n) RETURN n ORDER BY n.a LIMIT 3",
        "MATCH (n) WITH n ORDER BY n.a LIMIT 1 RETURN *",
        "MATCH (n) WITH n LIMIT 2 RETURN sum(n.a)",
        "MATCH (n) WHERE n.s = 'WITH x ORDER BY x LIMIT 1' RETURN sum(n.a) // ORDER BY LIMIT",
        "RETURN 1 AS a ORDER BY a LIMIT 1 UNION RETURN 2 AS a",
        "MATCH (n) WITH n.order AS a, n.limit AS b, n.return AS c RETURN sum(a), `ORDER`, `LIMIT`",
        "RETURN EXISTS { MATCH (n) WITH n ORDER BY n.a LIMIT 1 RETURN n } AS x, count(*)",
    ],
)
def test_other_statements_stay_as_they_are(text: str) -> None:
    assert with_barriers(text) == text


def test_ladybug_still_needs_it() -> None:
    """When this fails, the rewrite can be removed."""
    script = (
        "import ladybug\n"
        "connection = ladybug.Connection(ladybug.Database(':memory:', buffer_pool_size=2**26))\n"
        "ask = 'UNWIND [3, 1, 2] AS x WITH x ORDER BY x LIMIT 2 RETURN sum(x)'\n"
        "print(connection.execute(ask).get_next()[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "4\n"
