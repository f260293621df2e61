"""The Cypher guard against its corpora, mutated, and against a real engine."""

from __future__ import annotations

import os
import re
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.guard.cypher import check_cypher
from penstock.guard.cypher_tokens import CypherLimits, read
from penstock.guard.errors import CypherRefused, CypherTooLarge, CypherUnreadable
from tests.guard.cases import lines
from tests.guard.engine import ForeignEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = lines("hostile.cypher")
BENIGN = lines("benign.cypher")
EXAMPLES = int(os.environ.get("PENSTOCK_FUZZ", "1500"))
fuzz = settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
chance = st.integers(0, 2**32).map(Random)
FILES = re.compile(r"READ_(CSV|PARQUET|NPY|PANDAS)|COPY|EXPORT|IMPORT")
GIVEN = {"x": 1, "y": [1, 2], "z": 3}


def passes(text: str) -> bool:
    """Any other exception than a refusal is a failure of the guard."""
    try:
        check_cypher(text)
    except (CypherRefused, CypherUnreadable):
        return False
    return True


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignEngine]:
    """The benign half of the corpus must run on it."""
    with closing(ForeignEngine(tmp_path_factory.mktemp("guard"))) as opened:
        yield opened


def test_the_corpora_are_large_enough() -> None:
    assert len(set(HOSTILE)) >= 200
    assert len(set(BENIGN)) >= 110


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_statement_is_refused(text: str) -> None:
    assert not passes(text)


@pytest.mark.parametrize("text", BENIGN)
def test_a_benign_statement_passes(text: str) -> None:
    check_cypher(text)


def test_benign_statements_are_cypher_for_the_engine_too(engine: ForeignEngine) -> None:
    """But for the few that only other engines know."""
    foreign = {"MATCH (a)-[:KNOWS|:LIVES_IN]->(b) RETURN b", "MATCH (a:Person:City) RETURN a"}
    wrong = [text for text in BENIGN if text not in foreign and not _runs(engine, text)]
    assert wrong == []


def test_a_limit_can_be_added_wherever_the_guard_says_so(engine: ForeignEngine) -> None:
    """And nowhere else, but that is only a pity."""
    able = [text for text in BENIGN if check_cypher(text).open_ended and _runs(engine, text)]
    assert len(able) > 80
    assert [text for text in able if not _runs(engine, f"{check_cypher(text).text} LIMIT 7")] == []


@fuzz
@given(text=st.sampled_from([t for t in HOSTILE if "\\" not in t and t.isascii()]), rng=chance)
def test_no_disguise_of_case_space_and_comment_lets_one_pass(text: str, rng: Random) -> None:
    assert not passes(_disguised(text, rng))


@fuzz
@given(benign=st.sampled_from(BENIGN), hostile=st.sampled_from(HOSTILE), rng=chance)
def test_what_passes_with_something_hostile_inside_changes_nothing(
    engine: ForeignEngine, benign: str, hostile: str, rng: Random
) -> None:
    """Spliced at a token's edge: if the guard lets it pass, the engine must find no write in it."""
    mixed = _spliced(benign, hostile, rng)
    if mixed is not None and passes(mixed):
        before = engine.counts()
        assert "read-only" not in engine.refusal(mixed, _given(mixed), timeout=2), mixed
        assert engine.counts() == before
        assert not FILES.search(_plan(engine, mixed)), mixed


@fuzz
@given(text=st.text(max_size=60))
def test_nonsense_is_refused_or_passes_and_never_breaks_the_guard(text: str) -> None:
    passes(text)
    passes(f"RETURN {text}")


@pytest.mark.parametrize(
    ("text", "names", "open_ended"),
    [
        ("RETURN $a, '$b', `$c` // $d", {"a"}, True),
        ("MATCH (n) RETURN n LIMIT $n", {"n"}, False),
        ("MATCH (n) WITH n LIMIT 5 RETURN n", set(), True),
        ("MATCH (n) RETURN n ORDER BY n.x SKIP 3", set(), True),
        ("RETURN 1 AS x UNION RETURN 2 AS x", set(), False),
        ("EXPLAIN RETURN 1", set(), False),
        ("MATCH (n) WHERE EXISTS { MATCH (n) } RETURN n.limit AS limit", set(), True),
    ],
)
def test_what_is_learnt_of_a_query(text: str, names: set[str], *, open_ended: bool) -> None:
    checked = check_cypher(text)
    assert (checked.parameters, checked.open_ended) == (names, open_ended)


def test_comments_become_spaces_so_that_places_stay() -> None:
    checked = check_cypher("RETURN /* x\ny */ 1 // end\n;")
    assert checked.text == "RETURN     \n     1"


@pytest.mark.parametrize(
    ("limit", "at", "past"),
    [
        ("length", "RETURN 12", "RETURN 123"),
        ("tokens", "RETURN 1 + 2", "RETURN 1 + 2 + 3"),
        ("depth", "RETURN ((1))", "RETURN (((1)))"),
        (
            "cases",
            "RETURN CASE WHEN true THEN CASE WHEN true THEN 1 END END, CASE WHEN true THEN 1 END",
            "RETURN CASE WHEN true THEN CASE WHEN true THEN CASE WHEN true THEN 1 END END END",
        ),
        (
            "steps",
            (
                "MATCH (a)-[e]->(b)<--(c) WHERE a.n STARTS WITH 'x' WITH a, (1) - 2 AS d MATCH"
                " (a)--(b)<-[:X]-(c) RETURN d"
            ),
            "MATCH (a)-[e]->(b)<--(c) WHERE a.n STARTS WITH 'x' MATCH (a)-->(d) WITH a RETURN a",
        ),
    ],
)
def test_each_limit_holds_at_it_and_one_past_it(limit: str, at: str, past: str) -> None:
    limits = CypherLimits(
        **{limit: {"length": 9, "tokens": 4, "depth": 2, "cases": 2, "steps": 2}[limit]}
    )
    check_cypher(at, limits=limits)
    with pytest.raises(CypherTooLarge):
        check_cypher(past, limits=limits)


def test_a_refusal_says_which_word_and_what_else_is_possible() -> None:
    with pytest.raises(CypherRefused) as refused:
        check_cypher("MATCH (n) SET n.x = 1")
    assert refused.value.details == {"word": "SET", "position": 10}
    assert "backticks" in str(refused.value.hint)


def _runs(engine: ForeignEngine, text: str) -> bool:
    return not engine.refusal(check_cypher(text).text, _given(text))


def _given(text: str) -> dict[str, Any]:
    return {name: value for name, value in GIVEN.items() if f"${name}" in text}


def _plan(engine: ForeignEngine, text: str) -> str:
    return (
        ""
        if text.lstrip().upper().startswith(("EXPLAIN", "PROFILE"))
        else engine.plan(text, _given(text))
    )


def _disguised(text: str, rng: Random) -> str:
    try:
        tokens, _ = read(text, CypherLimits())
    except CypherUnreadable:
        return text
    gaps = (" ", "\n", "\t", " /* x */ ", " // y\n", "/**/")
    words = [
        t.text if t.kind != "word" else "".join(rng.choice((c.lower(), c.upper())) for c in t.text)
        for t in tokens
    ]
    return (
        rng.choice(gaps).join(words)
        if rng.random() < 0.5
        else "".join(w + rng.choice(gaps) for w in words)
    )


def _spliced(benign: str, hostile: str, rng: Random) -> str | None:
    try:
        tokens, clean = read(benign, CypherLimits())
    except CypherUnreadable:
        return None
    at = rng.choice([token.at for token in tokens] + [len(clean)])
    return f"{clean[:at]} {hostile} {clean[at:]}"
