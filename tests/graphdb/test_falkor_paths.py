"""Patterns without variables: FalkorDB must count every path, not pairs of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import pyarrow as pa
import pytest

from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable, Property
from penstock.graphdb.cypher.named_paths import with_named_paths
from penstock.graphdb.errors import CypherError
from tests.graphdb.oracle.engines import Engine
from tests.graphdb.oracle.graphs import Graph, Traits

if TYPE_CHECKING:
    from collections.abc import Iterator

EDGES = [(1, 2), (2, 4), (1, 3), (3, 4), (4, 5), (4, 5)]
"""From 1 to 4 by two ways, from 4 to 5 by two relationships."""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("MATCH (a)-[:R]->(b) RETURN a", "MATCH _path0 = (a)-[:R]->(b) RETURN a"),
        ("MATCH (a), (b)-->(), (c) RETURN a", "MATCH (a), _path0 = (b)-->(), (c) RETURN a"),
        (
            "MATCH p = (a)-[*2]->(b), (b)--(c) RETURN p",
            "MATCH p = (a)-[*2]->(b), _path0 = (b)--(c) RETURN p",
        ),
        (
            (
                "MATCH (a {i: 1 -(2)})<-[:R]-(b) /* (c)-->(d) */ OPTIONAL MATCH (b)-->(c) RETURN"
                " '(e)-->(f)'"
            ),
            "MATCH _path0 = (a {i: 1 -(2)})<-[:R]-(b) /* (c)-->(d) */"
            " OPTIONAL MATCH _path1 = (b)-->(c) RETURN '(e)-->(f)'",
        ),
        ("MATCH (_path)-->(b) RETURN *", "MATCH _path_0 = (_path)-->(b) RETURN *"),
        (
            "MATCH (a) WHERE (a)-->() RETURN [(a)-->(b) | b.i]",
            "MATCH (a) WHERE (a)-->() RETURN [(a)-->(b) | b.i]",
        ),
        (
            "MATCH (a), (b) WITH shortestPath((a)-[*]->(b)) AS p RETURN DISTINCT *",
            "MATCH (a), (b) WITH shortestPath((a)-[*]->(b)) AS p RETURN DISTINCT *",
        ),
        (
            "MATCH p = allShortestPaths((a)-[*]->(b)) RETURN p",
            "MATCH p = allShortestPaths((a)-[*]->(b)) RETURN p",
        ),
        (
            "MATCH allShortestPaths((a)-[*]->(b)) RETURN a",
            "MATCH allShortestPaths((a)-[*]->(b)) RETURN a",
        ),
    ],
)
def test_each_pattern_with_relationships_gets_a_name(text: str, written: str) -> None:
    assert with_named_paths(text)[0] == written


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a)-->(b) RETURN DISTINCT *",
        "MATCH (a)-->(b) WITH *, Collect (a) AS x RETURN x",
        "MATCH (a)-->(b) RETURN * UNION ALL MATCH (a), (b) RETURN *",
    ],
)
def test_names_that_would_change_an_answer_are_not_given(text: str) -> None:
    with pytest.raises(CypherError, match=r"A \* in a projection"):
        with_named_paths(text)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    node = NodeTable(label="P", key=Property(name="id", type="INT64"))
    edge = EdgeTable(type="K", from_node="P", to_node="P")
    starts, ends = zip(*EDGES, strict=True)
    tables = {
        "P": pa.table({"id": [1, 2, 3, 4, 5]}),
        "K:P:P": pa.table({"from": starts, "to": ends}),
    }
    schema = GraphSchema(nodes=(node,), edges=(edge,))
    with Engine("falkordb") as running:
        running.load(Graph(traits=Traits(), schema=schema, tables=tables, nodes=nx.MultiDiGraph()))
        yield running


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("(a)-[:K]->(b)", 6),
        ("(a)-[e:K]->(b)", 6),
        ("(a)-->()", 6),
        ("(a)--(b)", 12),
        ("(a)-[:K]->()-[:K]->(b)", 6),
        ("(a)-[:K]->()-[:K]->()-[:K]->(b)", 4),
        ("(a)-[:K]->(b), (b)-[:K]->(c)", 6),
        ("(a {id: 4}), (b {id: 5}) MATCH (a)-[:K]->(b)", 2),
        ("(a)-[:K*2]->(b)", 6),
        ("(a)-[:K*2..2]->(b)", 6),
        ("(a)-[*3..3]->(b)", 4),
        ("(a)<-[e:K*3..3]-(b)", 4),
        ("(a)-[:K*1..1]->(b)", 6),
        ("(a)-[:K*1..3]->(b)", 16),
        ("(a {id: 4}) OPTIONAL MATCH (a)-[:K]->(b)", 2),
    ],
)
def test_every_way_counts(engine: Engine, pattern: str, count: int) -> None:
    assert engine.ask(f"MATCH {pattern} RETURN count(*) AS n", {}).rows == [(count,)]
    rows = engine.ask(f"MATCH {pattern} RETURN 1 AS one", {}).rows
    assert rows == [(1,)] * count


def test_every_variable_is_one_of_the_client(engine: Engine) -> None:
    reply = engine.ask("MATCH (a:P {id: 4})-[:K]->(b) WITH *, b.id AS i RETURN *", {})
    assert reply.types == ["NODE", "NODE", "INT64"]
    four, five = ({"_id": f"P:{i}", "_label": "P", "id": i} for i in (4, 5))
    assert reply.rows == [(four, five, 5)] * 2
