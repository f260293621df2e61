"""The NetworkX bridge: the allowlist, encoding of results, and native equivalents."""

from __future__ import annotations

import inspect
import math
from contextlib import suppress
from operator import attrgetter
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.graphdb.algorithms.allowed import ALLOWED, CATEGORY
from penstock.graphdb.algorithms.bridge import call
from penstock.graphdb.algorithms.encoding import Encoder
from penstock.graphdb.algorithms.equivalents import NATIVE, NOT_HERE, native
from penstock.graphdb.algorithms.errors import AlgorithmNotFound
from penstock.graphdb.algorithms.functions import function
from penstock.graphdb.algorithms.topology import WEIGHT, Edges
from penstock.graphdb.contract import SOURCE, TARGET
from penstock.kit.errors import InvalidInput
from tests.graphdb.algorithms.graphs import Drawn, drawn


def asked(
    name: str,
    graph: Drawn,
    parameters: dict[str, Any] | None = None,
    *,
    directed: bool | None = None,
    weight: str | None = None,
    properties: dict[str, pa.Array] | None = None,
) -> dict[str, Any]:
    """The summary, with a column under `column`."""
    sources, targets, costs = ([edge[i] for edge in graph.edges] for i in range(3))
    ends = {SOURCE: sources, TARGET: targets, "cost": costs}
    columns = pa.table(
        ends, schema=pa.schema({SOURCE: pa.int64(), TARGET: pa.int64(), "cost": pa.float64()})
    )
    table = (
        columns.append_column(WEIGHT, columns["cost"]) if weight else columns.drop_columns("cost")
    )
    edges = [Edges(type="LINK", from_label="Node", to_label="Node", table=table)]
    chosen = function(name)
    chosen.check(parameters or {})
    topology = graph.topology(weighted=weight is not None)
    result = call(
        chosen,
        parameters or {},
        graph=topology,
        edges=edges,
        properties=properties or {},
        weight=weight,
        directed=directed,
    )
    return dict(result.summary) | {
        suffix or "column": c.to_pylist() for suffix, c in result.columns.items()
    }


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("directed", [True, False])
def test_of_parallel_edges_of_several_types_the_lightest_is_kept(
    order: int, directed: bool
) -> None:
    costs = {"CHEAP": [1.0, 5.0], "DEAR": [9.0, 2.0]}
    schema = pa.schema(
        {SOURCE: pa.int64(), TARGET: pa.int64(), "cost": pa.float64(), WEIGHT: pa.float64()}
    )
    tables = [
        Edges(
            type=name,
            from_label="Node",
            to_label="Node",
            table=pa.table(
                {SOURCE: [0, 1], TARGET: [1, 2], "cost": costs_of, WEIGHT: costs_of}, schema=schema
            ),
        )
        for name, costs_of in costs.items()
    ][::order]
    graph = Drawn(3, [(0, 1, 1.0), (1, 2, 5.0), (0, 1, 9.0), (1, 2, 2.0)]).topology(weighted=True)
    parameters = {"source": 0, "target": 2}
    common: dict[str, Any] = {
        "graph": graph,
        "edges": tables,
        "properties": {},
        "directed": directed,
    }
    length = call(function("dijkstra_path_length"), parameters, weight="cost", **common)
    assert length.summary["value"] == 3.0


PATH = Drawn(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)])
STRONG = Drawn(4, [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 3.0), (3, 0, 4.0), (0, 2, 1.0)])
TRIANGLE = Drawn(4, [(0, 1, 1.0), (1, 2, 2.0), (2, 0, 3.0), (2, 3, 4.0)])


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_every_name_on_the_list_is_a_function_that_reads_one_graph(name: str) -> None:
    call = attrgetter(ALLOWED[name])(nx)
    assert callable(call)
    assert not call.__module__.startswith(
        ("networkx.drawing", "networkx.readwrite", "networkx.generators")
    )
    described = function(name).describe()
    assert described["category"] == CATEGORY[name]
    assert described["description"]
    first, *_ = inspect.signature(call).parameters
    assert first in ("G", "B", "T", "flowG")


@pytest.mark.parametrize(
    "name", ["draw", "read_gml", "write_graphml", "gnp_random_graph", "__init__", "nx.pagerank", ""]
)
def test_what_is_not_on_the_list_is_not_found(name: str) -> None:
    with pytest.raises(AlgorithmNotFound):
        function(name)


def _smallest_arguments(name: str) -> dict[str, Any]:
    """Something for every parameter that has no default."""
    arguments: dict[str, Any] = {
        "source": "Node:0",
        "target": "Node:3",
        "s": "Node:0",
        "t": "Node:3",
        "_s": "Node:0",
    }
    arguments |= {
        "_t": "Node:3",
        "u": "Node:0",
        "v": "Node:1",
        "n": "Node:0",
        "start": "Node:0",
        "node1": "Node:0",
    }
    arguments |= {
        "node2": "Node:1",
        "S": ["Node:0"],
        "C": ["Node:0"],
        "sources": ["Node:0"],
        "targets": ["Node:3"],
    }
    arguments |= {
        "nodes": ["Node:0", "Node:1"],
        "terminal_nodes": ["Node:0", "Node:3"],
        "center_nodes": ["Node:0"],
    }
    arguments |= {
        "nbunch1": ["Node:0"],
        "T": ["Node:1"],
        "k": 2,
        "attribute": "tag",
        "distance": 1,
        "num_colors": 4,
    }
    arguments |= {"stretch": 3, "communities": [["Node:0", "Node:1"], ["Node:2", "Node:3"]]}
    arguments |= {"partition": arguments["communities"], "top_nodes": ["Node:0"]}
    needed = [p.name for p in function(name).parameters if p.default is inspect.Parameter.empty]
    return {parameter: arguments[parameter] for parameter in needed}


FLOWS = ("gomory_hu_tree", "maximum_flow", "maximum_flow_value", "minimum_cut", "minimum_cut_value")
PARTICULAR: dict[str, tuple[Drawn, dict[str, Any]]] = {
    "eulerian_circuit": (Drawn(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0)]), {}),
    "find_negative_cycle": (
        Drawn(4, [(0, 1, -1.0), (1, 2, -1.0), (2, 0, -1.0)]),
        {"source": "Node:0"},
    ),
    "max_weight_clique": (TRIANGLE, {"weight": "size"}),
    "panther_similarity": (STRONG, {"source": "Node:0", "k": 2}),
    **{name: (TRIANGLE, {"capacity": "cost"}) for name in FLOWS},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_every_function_answers_on_one_graph_at_least(name: str) -> None:
    tags = {"tag": pa.array([1, 1, 2, 2]), "community": pa.array([1, 1, 2, 2])}
    if name in PARTICULAR:
        graph, parameters = PARTICULAR[name]
        given_parameters = _smallest_arguments(name) | parameters
        assert asked(
            name,
            graph,
            given_parameters,
            weight="cost",
            properties=tags | {"size": pa.array([1, 2, 3, 4])},
        )
        return
    kinds = set()
    for graph in (TRIANGLE, PATH, STRONG):
        for directed in (True, False):
            with suppress(InvalidInput):
                kinds.add(
                    asked(
                        name, graph, _smallest_arguments(name), directed=directed, properties=tags
                    )["kind"]
                )
    assert kinds


KINDS = [
    ("pagerank", {}, "per_node"),
    ("edge_betweenness_centrality", {}, "per_edge"),
    ("density", {}, "scalar"),
    ("find_cliques", {}, "list"),
    ("connected_components", {}, "list"),
    ("maximal_independent_set", {}, "list"),
    ("max_weight_matching", {}, "list"),
    ("minimum_spanning_tree", {}, "graph"),
    ("bidirectional_dijkstra", {"source": "Node:0", "target": "Node:3"}, "tuple"),
    ("degree_mixing_dict", {}, "mapping"),
    ("all_pairs_shortest_path_length", {}, "list"),
]


@pytest.mark.parametrize(("name", "parameters", "kind"), KINDS)
def test_every_kind_of_result_is_returned(name: str, parameters: dict[str, Any], kind: str) -> None:
    result = asked(name, TRIANGLE, parameters, directed=False)
    assert result["kind"] == kind
    assert "column" in result or result["value"] is not None


def test_results_name_nodes_by_their_ids() -> None:
    assert asked("connected_components", TRIANGLE, directed=False)["value"] == [
        [f"Node:{n}" for n in range(4)]
    ]
    edges = asked("edge_betweenness_centrality", TRIANGLE, {"normalized": False}, directed=False)[
        "value"
    ]
    assert {"source": "Node:2", "target": "Node:3", "value": 3.0} in edges
    tree = asked("minimum_spanning_tree", TRIANGLE, directed=False, weight="cost")["value"]
    assert sorted((e["source"], e["target"], e["cost"]) for e in tree["edges"]) == [
        ("Node:0", "Node:1", 1.0),
        ("Node:1", "Node:2", 2.0),
        ("Node:2", "Node:3", 4.0),
    ]


def test_without_a_word_on_direction_the_function_s_own_is_taken() -> None:
    assert asked("core_number", TRIANGLE)["column"] == [2, 2, 2, 1]
    assert asked("is_strongly_connected", TRIANGLE)["value"] is False
    with pytest.raises(InvalidInput, match="directed"):
        asked("bridges", TRIANGLE, directed=True)


def test_a_result_without_end_is_cut() -> None:
    encoder = Encoder(frozenset(), limit=10)
    assert encoder.encode(iter(range(1_000_000))) == list(range(10))
    assert encoder.truncated


def test_numbers_that_json_cannot_say_are_null() -> None:
    assert Encoder(frozenset()).encode([float("inf"), float("nan"), 1.5]) == [None, None, 1.5]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph=drawn(), directed=st.booleans(), weighted=st.booleans())
@pytest.mark.parametrize("name", sorted(NATIVE))
def test_a_shortcut_gives_what_networkx_gives(
    name: str, graph: Drawn, directed: bool, weighted: bool
) -> None:
    ids = [f"Node:{n}" for n in range(graph.count)]
    given_parameters = {"source": "Node:0"} if "source" in name else {}
    topology = graph.topology(weighted=weighted)
    mine = native(name, given_parameters, topology, directed=directed, ids=ids)
    if mine is NOT_HERE:
        return
    relabeled = nx.relabel_nodes(graph.simple(directed=directed), dict(enumerate(ids)))
    chosen = function(name)
    weight = "weight" if weighted else None
    arguments = chosen.arguments(given_parameters, weight, topology.nodes)
    if not weighted and "weight" in chosen.names:
        arguments["weight"] = (lambda *_: 1) if "dijkstra" in name else None
    if name == "pagerank":
        arguments |= {"tol": 1e-12, "max_iter": 10_000}
    try:
        other = chosen.call(relabeled, **arguments)
        other = list(other) if hasattr(other, "__next__") else other
    except nx.NetworkXNotImplemented:
        return
    if isinstance(other, list):
        assert sorted(map(sorted, mine)) == sorted(map(sorted, other))
    else:
        assert mine == pytest.approx(other, abs=1e-7)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", ["approximation_min_weighted_vertex_cover", "max_weight_clique"])
def test_a_weight_of_a_node_that_is_no_number_is_refused(name: str, value: float) -> None:
    path = Drawn(3, [(0, 1, 1.0), (1, 2, 1.0)])
    weights = {"cost": pa.array([1.0, value, 1.0])}
    with pytest.raises(InvalidInput, match="cost has values that are not finite"):
        asked(name, path, {"weight": "cost"}, directed=False, properties=weights)
