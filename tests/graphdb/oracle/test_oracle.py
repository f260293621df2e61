"""Every engine against the reference on fixed cases, and every listed difference."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from tests.graphdb.oracle import differences, graphs
from tests.graphdb.oracle.cases import batches, check
from tests.graphdb.oracle.differences import DIFFERENCES, PAGE
from tests.graphdb.oracle.engines import BACKENDS, Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES, SEED = 300, 20261116
_MOMENT = dt.datetime(2024, 3, 31, 0, 30)  # noqa: DTZ001 - a TIMESTAMP has no zone
MENDED: list[tuple[str, dict[str, Any], list[tuple[Any, ...]]]] = [
    (
        "MATCH (n:P) RETURN CASE n.s WHEN 'Ada' THEN 1 WHEN null THEN 2 ELSE 3 END AS x",
        {},
        [(1,), (3,), (3,), (3,)],
    ),
    (
        "WITH null AS q MATCH (n:P {id: 1}) RETURN CASE n.s WHEN q THEN 2 ELSE 3 END AS x",
        {},
        [(3,)],
    ),
    (
        "MATCH (n:P {id: 1}) RETURN CASE n.id WHEN $p THEN 'a' ELSE 'b' END AS x",
        {"p": None},
        [("b",)],
    ),
    ("RETURN CASE 1 WHEN 1 THEN 'a' ELSE 'b' END AS x", {}, [("a",)]),
    (
        "MATCH (n:P) WITH sum(n.id) AS s RETURN collect(s) AS x, {s: s, l: [[s]]} AS y",
        {},
        [([10], {"s": 10, "l": [[10]]})],
    ),
    ("RETURN timestamp('2024-03-31 02:30:00+02') AS x", {}, [(_MOMENT,)]),
    (
        "RETURN timestamp($p) AS x, timestamp(date('2024-03-31')) < timestamp($p) AS y",
        {"p": "2024-03-30T19:00:00-05:30"},
        [(_MOMENT, True)],
    ),
]


@pytest.fixture(scope="module", params=BACKENDS)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with Engine(request.param) as running:
        yield running


def test_an_engine_answers_as_the_reference_does(engine: Engine) -> None:
    asked, queries, mistakes = 0, 0, []
    for batch in batches(CASES, SEED):
        if batch.fits(engine.backend):
            engine.load(batch.graph)
            count, wrong = check(engine, batch, SEED)
            asked, queries, mistakes = asked + count, queries + len(batch.queries), mistakes + wrong
    assert not mistakes, "\n".join(map(str, mistakes))
    # What meets a listed difference is not asked; most queries must be.
    assert asked > queries * 2 / 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_listed_differences_are_there(backend: str) -> None:
    """One that is gone is taken off the list."""
    own = [difference for difference in DIFFERENCES if backend in difference.engines]
    assert len(own) > 5
    with Engine(backend) as engine:
        engine.load(graphs.small())
        for difference in own:
            reply = engine.ask(difference.probe, difference.parameters)
            actual = [list(row) for row in reply.rows] if reply.outcome == "ok" else reply.outcome
            # As text: a difference may be one of the last digit, or of an integer and a DOUBLE.
            assert repr(actual) == repr(difference.actual), (difference.name, reply.message)
            assert repr(actual) != repr(difference.expected), difference.name
            for query in difference.refused_too:
                other = engine.ask(query, {})
                assert other.outcome == "refused", (difference.name, query, other)


@pytest.mark.parametrize("backend", differences.EMBEDDED)
def test_what_the_graph_server_mends_is_answered_rightly(backend: str) -> None:
    with Engine(backend) as engine:
        engine.load(graphs.small())
        for text, parameters, rows in MENDED:
            reply = engine.ask(text, parameters)
            assert (reply.outcome, reply.rows) == ("ok", rows), (text, reply)


def test_the_page_has_the_list() -> None:
    assert PAGE.read_text() == differences.page(), (
        "python -m tests.graphdb.oracle.differences writes it"
    )


def test_every_departure_of_the_reference_is_a_listed_difference() -> None:
    listed = {difference.name for difference in DIFFERENCES}
    assert set(differences.MODELLED) <= listed
