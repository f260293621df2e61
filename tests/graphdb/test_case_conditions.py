"""Rewrites of CASE conditions that the embedded engines evaluate incorrectly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.graphdb.cypher.case_conditions import with_compared_conditions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RETURN CASE WHEN n.b THEN 1 END", "RETURN CASE WHEN ( n.b ) = true THEN 1 END"),
        (
            "RETURN case when a then 1 when b or c then 2 else 3 end AS `case`",
            (
                "RETURN case when ( a ) = true then 1 when ( b or c ) = true then 2 else 3 end AS"
                " `case`"
            ),
        ),
        (
            "RETURN CASE WHEN CASE WHEN a THEN b END THEN c END",
            "RETURN CASE WHEN ( CASE WHEN ( a ) = true THEN b END ) = true THEN c END",
        ),
        (
            "RETURN (CASE /* WHEN */ WHEN n.when = 'THEN' // THEN\n THEN n.`END` END)",
            "RETURN (CASE /* WHEN */ WHEN ( n.when = 'THEN' // THEN\n ) = true THEN n.`END` END)",
        ),
        (
            "RETURN CASE WHEN f({case: [CASE WHEN $end THEN 1 END]}) THEN 2 END",
            (
                "RETURN CASE WHEN ( f({case: [CASE WHEN ( $end ) = true THEN 1 END]}) ) = true THEN"
                " 2"
                " END"
            ),
        ),
    ],
)
def test_each_condition_is_compared_with_true(text: str, expected: str) -> None:
    assert with_compared_conditions(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "RETURN CASE n.a WHEN 1 THEN 2 WHEN null THEN 4 ELSE 5 END AS x",
            "RETURN CASE WHEN (n.a) = ( 1 ) THEN 2 WHEN (n.a) = ( null ) THEN 4 ELSE 5 END AS x",
        ),
        (
            "RETURN CASE CASE WHEN a THEN 'WHEN' END WHEN CASE f(b) WHEN 1 THEN 2 END THEN 3 END",
            "RETURN CASE WHEN (CASE WHEN ( a ) = true THEN 'WHEN' END) = ( CASE WHEN (f(b)) = ( 1 )"
            " THEN 2 END )"
            " THEN 3 END",
        ),
        (
            "RETURN [CASE {case: 1}.case WHEN 1 THEN 2 END, CASE 1 WHEN 1 THEN 2 END]",
            (
                "RETURN [CASE WHEN ({case: 1}.case) = ( 1 ) THEN 2 END, CASE WHEN (1) = ( 1 ) THEN"
                " 2"
                " END]"
            ),
        ),
    ],
)
def test_a_value_is_compared_as_by_an_equals_sign(text: str, expected: str) -> None:
    assert with_compared_conditions(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "RETURN CASE n.a WHEN 1 THEN 2",
        (
            "RETURN 'CASE WHEN a THEN b END', n.case, n.when, $then, 1 AS end // CASE WHEN a THEN b"
            " END"
        ),
        "RETURN {case: 1, when: 2, then: 3, end: 4}",
        "RETURN CASE WHEN a THEN b",
    ],
)
def test_other_statements_stay_as_they_are(text: str) -> None:
    assert with_compared_conditions(text) == text


@pytest.mark.parametrize(
    ("library", "ask", "wrong"),
    [
        (
            "ryugraph",
            "UNWIND [true, false, true] AS b RETURN CASE WHEN b THEN 1 ELSE 0 END",
            "[[1], [0], [0]]",
        ),
        (
            "ladybug",
            (
                "UNWIND [true, false, true] AS b WITH b WHERE CASE WHEN CASE WHEN b THEN b END THEN"
                " b"
                " END RETURN b"
            ),
            "[]",
        ),
        (
            "ladybug",
            "UNWIND ['a', 'b'] AS x RETURN CASE x WHEN null THEN 1 ELSE 0 END",
            "[[1], [1]]",
        ),
        (
            "ryugraph",
            "UNWIND ['a', 'b'] AS x RETURN CASE x WHEN null THEN 1 ELSE 0 END",
            "[[1], [1]]",
        ),
    ],
)
def test_the_engines_still_need_it(library: str, ask: str, wrong: str) -> None:
    """When this fails, the rewrite can be removed."""
    script = (
        f"import {library} as library\n"
        "connection = library.Connection(library.Database(':memory:', buffer_pool_size=2**26))\n"
        f"print(connection.execute({ask!r}).get_all())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{wrong}\n"
