"""Aggregates that Ryugraph would lose are refused, and only those."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.graphdb.cypher.lost_aggregates import refuse_lost_aggregates
from penstock.graphdb.errors import CypherError


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (n) RETURN n.a, count(DISTINCT n.b), count(*)",
        "MATCH (n) RETURN count(DISTINCT n.b) AS x, n.a, collect(n.c)",
        "MATCH (n) RETURN n.a, count(DISTINCT n.b) + sum(n.c) AS x",
        (
            "MATCH (n) WITH n.a AS a, count(*) AS c, sum( /* all */ distinct n.b) AS d, max(n.c) AS"
            " e"
            " RETURN a"
        ),
        (
            "MATCH (n) WITH DISTINCT n.a AS a, count(DISTINCT n.b) AS c, min(n.b) AS d ORDER BY a"
            " LIMIT"
            " 3 RETURN a"
        ),
        "RETURN EXISTS { MATCH (n) RETURN n.a, count(DISTINCT n.b), avg(n.c) } AS x",
        "MATCH (n) WITH *, count(DISTINCT n.a) AS b, count(*) AS c RETURN b",
        "RETURN 1 AS x UNION MATCH (n) RETURN n.a, count(DISTINCT n.b), count(*)",
    ],
)
def test_a_plain_aggregate_after_a_distinct_one_in_groups_is_refused(text: str) -> None:
    with pytest.raises(CypherError, match="loses an aggregate") as refusal:
        refuse_lost_aggregates(text)
    assert "last" in str(refusal.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (n) RETURN n.a, count(*), count(DISTINCT n.b)",
        "MATCH (n) RETURN n.a, count(DISTINCT n.b), sum(DISTINCT n.c)",
        "MATCH (n) RETURN count(DISTINCT n.b), count(*)",
        "MATCH (n) WITH n.a AS a, count(DISTINCT n.b) AS b RETURN a, sum(b)",
        "MATCH (n) RETURN n.a, count(DISTINCT n.b) AS `count(`, 'sum(n.c)' AS max // , count(*)",
        "MATCH (n) WHERE n.a STARTS WITH 'x' RETURN DISTINCT n.a, n.count, n.sum",
        "RETURN EXISTS { MATCH (n) RETURN count(DISTINCT n.b) } AS x, 1 AS y, count(*)",
        "MATCH (n) RETURN n.a, count(DISTINCT n.b) UNION MATCH (n) RETURN n.a, count(*)",
    ],
)
def test_what_loses_nothing_passes_unchanged(text: str) -> None:
    assert refuse_lost_aggregates(text) == text


def test_ryugraph_still_loses_them() -> None:
    """When this fails, the refusal can be removed."""
    script = (
        "import ryugraph\n"
        "connection = ryugraph.Connection(ryugraph.Database(':memory:', buffer_pool_size=2**26))\n"
        "ask = 'UNWIND [1, 1, 2] AS x RETURN 0 AS k, count(DISTINCT x) AS d, count(*) AS n'\n"
        "print(connection.execute(ask).get_next())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[0, 2, 0]\n"
