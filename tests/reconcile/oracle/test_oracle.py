"""The matcher on every engine against the plain one: three hundred books, always the same.

`make fuzz NAME=reconcile N=5000` judges others; a book that fails names the seed that replays it:
`make fuzz NAME=reconcile N=1 SEED=7`.
"""

from __future__ import annotations

import pytest

from tests.reconcile.oracle.books import NAMES, book
from tests.reconcile.oracle.fuzz import problems
from tests.reconcile.oracle.judge import answer_of
from tests.reconcile.oracle.values import Refused

BOOKS = 300
AT_ONCE = 10


@pytest.mark.parametrize("first", range(0, BOOKS, AT_ONCE))
def test_every_engine_matches_books_as_the_guide_says(first: int) -> None:
    wrong = {
        seed: sentences for seed in range(first, first + AT_ONCE) if (sentences := problems(seed))
    }
    assert not wrong, "\n".join(f"book {seed}: {sentences[0]}" for seed, sentences in wrong.items())


def test_the_books_have_what_they_are_for() -> None:
    """Three hundred books in which nothing competes, or no name is hostile, would prove little."""
    books = [book(seed) for seed in range(BOOKS)]
    answers = [answer for one in books if not isinstance(answer := answer_of(one), Refused)]
    matches = [match for answer in answers for match in answer.matches]
    breaks = [why for answer in answers for side in answer.breaks.values() for why in side.values()]
    names = {name for one in books for side in (one.left, one.right) for name in side.schema.names}
    assert len(books) - len(answers) >= 5
    assert {match.pattern for match in matches} == {"1:1", "1:N", "M:1", "M:N", "manual", "sql"}
    assert {why.reason for why in breaks} == {
        *(
            "no_key",
            "amount_out_of_tolerance",
            "date_out_of_window",
            "other_condition",
            "duplicate",
            "ambiguous",
        ),
        *("sum_mismatch", "no_candidate", "rejected_by_sql"),
    }
    assert sum(match.ambiguous for match in matches) >= 100
    assert sum(sum(answer.greedy_clusters.values()) for answer in answers) >= 10
    assert names >= set(NAMES)
    assert (
        sum(
            len({n.casefold() for n in one.left.schema.names}) < len(one.left.schema)
            for one in books
        )
        >= 50
    )
