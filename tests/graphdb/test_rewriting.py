"""Statements that an engine answers incorrectly or crashes on: rewritten or refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.graphdb.cypher.null_lists import refuse_null_lists
from penstock.graphdb.cypher.offsets import with_offsets
from penstock.graphdb.errors import CypherError

TWO = ("CAST(CAST(", " AS TIMESTAMP_TZ) AS TIMESTAMP)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "RETURN timestamp('2024-01-01 00:00:00+02')",
            f"RETURN {TWO[0]}'2024-01-01 00:00:00+02'{TWO[1]}",
        ),
        ("RETURN f(TIMESTAMP ($p), (1))", f"RETURN f({TWO[0]}$p{TWO[1]}, (1))"),
        (
            "RETURN timestamp(f(timestamp(a)) + ')')",
            f"RETURN {TWO[0]}f({TWO[0]}a{TWO[1]}) + ')'{TWO[1]}",
        ),
        (
            (
                "MATCH (n:Timestamp) RETURN n.timestamp, 'timestamp(1)', `timestamp`,"
                " my_timestamp(1),"
                " $timestamp"
            ),
            None,
        ),
        ("RETURN timestamp('a'", None),
        ("RETURN timestamp('a'))", None),
    ],
)
def test_a_moment_is_read_with_its_offset(text: str, expected: str | None) -> None:
    assert with_offsets(text) == (expected or text)


@pytest.mark.parametrize(
    "text",
    [
        "RETURN 1 IN null",
        "RETURN 1 in ( NULL )",
        "MATCH (n) WHERE NOT n.a IN\nnull RETURN n",
        "RETURN list_contains( null, 1)",
        "RETURN ARRAY_HAS((null), 1)",
    ],
)
def test_a_search_in_null_is_refused(text: str) -> None:
    with pytest.raises(CypherError, match="cannot search in a null list"):
        refuse_null_lists(text)


@pytest.mark.parametrize(
    "text",
    [
        "RETURN 1 IN [null], n.in, null IN [1], 'IN null', `IN null`",
        "MATCH (n:IN) RETURN null AS nullable, 1 IN nullable, $in",
        "RETURN list_contains([null], null)",
    ],
)
def test_other_nulls_are_not(text: str) -> None:
    assert refuse_null_lists(text) == text


def test_ladybug_still_ignores_offsets() -> None:
    """When this fails, the rewrite can be removed."""
    done = _run("ladybug", "RETURN timestamp('2024-03-31 02:30:00+02')")
    assert done.stdout == "[[datetime.datetime(2024, 3, 31, 2, 30)]]\n"


def test_ryugraph_still_dies_of_a_search_in_null() -> None:
    """When this fails, the refusal can be removed."""
    assert _run("ryugraph", "RETURN 1 IN null").returncode < 0


def _run(library: str, ask: str) -> subprocess.CompletedProcess[str]:
    script = (
        f"import {library} as library\n"
        "connection = library.Connection(library.Database(':memory:', buffer_pool_size=2**26))\n"
        f"print(connection.execute({ask!r}).get_all())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
