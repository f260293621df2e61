"""Oracle cases by seed: graphs, queries on each, and comparison of an engine's results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from tests.graphdb.oracle import graphs
from tests.graphdb.oracle.comparison import plain, same, shaped
from tests.graphdb.oracle.differences import DIALECTS, MET, excuse
from tests.graphdb.oracle.generator import Generator
from tests.graphdb.oracle.graphs import Traits
from tests.graphdb.oracle.reference import Impossible, Reference
from tests.graphdb.oracle.shrinking import shrink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.graphdb.oracle.engines import Engine
    from tests.graphdb.oracle.graphs import Graph
    from tests.graphdb.oracle.reference import Row
    from tests.graphdb.oracle.syntax import Query

QUERIES_A_GRAPH = 25
TRAITS = (
    Traits(),
    Traits(wide=True, nulls=False),
    Traits(nan=True, wide=True),
    Traits(tangled=False),
    Traits(nulls=False, tangled=False),
)
_OTHER_ROWS = "the rows are other than those which the reference has for it:"
_ALIKE = len(_OTHER_ROWS)
"""Characters of a description that say what kind of mistake it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One graph and the queries on it."""

    number: int
    graph: Graph
    queries: tuple[Query, ...]

    def fits(self, backend: str) -> bool:
        """Ryugraph does not hold NaN."""
        return not (self.graph.traits.nan and backend == "ryugraph")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A query on which an engine and the reference differ, made as small as it could be."""

    where: str
    query: Query
    what: str

    def __str__(self) -> str:
        used = {
            name: value
            for name, value in self.query.parameters.items()
            if f"${name}" in str(self.query)
        }
        return f"{self.where}\n  {self.query}\n  parameters {used}\n  {self.what}"


def batches(cases: int, seed: int) -> Iterator[Batch]:
    """Each batch depends on the seed and its number alone."""
    for number in range(-(-cases // QUERIES_A_GRAPH)):
        random = Random(f"{seed}:{number}")
        graph = graphs.make(random, TRAITS[number % len(TRAITS)])
        count = min(QUERIES_A_GRAPH, cases - number * QUERIES_A_GRAPH)
        queries = tuple(Generator(random, graph.schema, graph.traits).query() for _ in range(count))
        yield Batch(number=number, graph=graph, queries=queries)


def check(engine: Engine, batch: Batch, seed: int) -> tuple[int, list[Mistake]]:
    """How many queries were asked, and those that the engine got wrong; the graph is loaded."""
    asked, mistakes = 0, []
    for number, query in enumerate(batch.queries):
        expected = _expected(engine.backend, batch.graph, query)
        if expected is None:
            continue
        asked += 1
        if (what := _wrong(engine, batch.graph, query, expected)) is not None:
            smaller = shrink(query, partial(_is_wrong, engine, batch.graph, what[:_ALIKE]))
            again = _expected(engine.backend, batch.graph, smaller)
            what = what if again is None else _wrong(engine, batch.graph, smaller, again) or what
            where = f"{engine.backend}, seed {seed}, graph {batch.number}, query {number}"
            mistakes.append(Mistake(where=where, query=smaller, what=what))
    return asked, mistakes


def _is_wrong(engine: Engine, graph: Graph, like: str, query: Query) -> bool:
    """In the same way as the query that it was made of."""
    try:
        expected = _expected(engine.backend, graph, query)
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
        return False  # a candidate that makes no sense, which the reference cannot evaluate
    return expected is not None and (_wrong(engine, graph, query, expected) or "").startswith(like)


def _expected(backend: str, graph: Graph, query: Query) -> list[Row] | None:
    """The reference's rows; None for a query that meets a listed difference, or is an error by
    openCypher's rules."""
    if excuse(backend, query, graph.traits) is not None:
        return None
    reference = Reference(graph.nodes, DIALECTS[backend])
    try:
        rows = reference.answer(query)
    except Impossible:
        return None
    return None if reference.met & MET[backend] else rows


def _wrong(engine: Engine, graph: Graph, query: Query, expected: list[Row]) -> str | None:
    """What differs; None for nothing."""
    reply = engine.ask(str(query), query.parameters)
    if reply.outcome != "ok":
        return f"{reply.outcome}: {reply.message[:500]}"
    if same(query, expected, reply.rows, graph.nodes):
        return None
    rows = [[plain(value, graph.nodes) for value in row.values()] for row in expected]
    actual = [[shaped(value) for value in row] for row in reply.rows]
    return f"{_OTHER_ROWS} expected {len(rows)} {rows[:5]}\n  actual {len(actual)} {actual[:5]}"
