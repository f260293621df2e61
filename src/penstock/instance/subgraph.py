"""`POST /subgraph`: what lies around some nodes, with every edge between what was found.

Hop by hop, each a few queries by primary key, so its cost is that of the neighbourhood and not of the graph.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, model_validator

from penstock.graphdb.contract import EdgeTable, Interrupt, NodeTable
from penstock.graphdb.errors import CypherError, QueryInterrupted
from penstock.graphdb.typenames import quoted
from penstock.guard.cypher import check_cypher
from penstock.instance import graphfile
from penstock.instance.client import gone
from penstock.instance.identity import Trusted
from penstock.instance.results import JSON_ROWS, values
from penstock.instance.served import Graph, Served
from penstock.kit.errors import InvalidInput

MOST_NODES = 50_000
MOST_EDGES = 500_000


class SubgraphBody(BaseModel):
    start: list[str] | None = Field(None, min_length=1, max_length=10_000, examples=[["Person:1"]])
    cypher: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None, description="A query; the nodes in its answer are the start.", examples=["MATCH (n:Person) RETURN n"]
    )
    parameters: dict[str, Any] = Field(default_factory=dict)
    hops: Annotated[int, Field(ge=0, le=10)] = 1
    relationship_types: list[str] | None = Field(None, max_length=1000, description="Only these; all, if unsaid.")
    limit: Annotated[int, Field(ge=1, le=MOST_NODES)] = Field(1000, description="Nodes at most.")
    format: Literal["json", "arrow", "graphml", "gexf"] = "json"
    timeout_ms: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def has_one_start(self) -> Self:
        if (self.start is None) == (self.cypher is None):
            raise ValueError("give either start or cypher")
        return self


def router(served: Served) -> APIRouter:
    routes = APIRouter()

    @routes.post("/subgraph")
    async def subgraph(body: SubgraphBody, request: Request, caller: Trusted) -> Response:  # noqa: ARG001 - it must be one
        graph = served.graph
        limits = served.settings
        timeout = limits.timeout_seconds if body.timeout_ms is None else body.timeout_ms / 1000
        if timeout > limits.max_timeout_seconds:
            raise InvalidInput(f"timeout_ms is at most {int(limits.max_timeout_seconds * 1000)}.", field="timeout_ms")
        began = time.perf_counter()
        try:
            content = await served.room.query(
                partial(_answer, graph, body, timeout), timeout=timeout, gone=partial(gone, request)
            )
        finally:
            served.tally.count(time.perf_counter() - began)
        return Response(content, media_type=graphfile.MEDIA[body.format])

    return routes


@dataclass(slots=True)
class Found:
    """Nodes and edges by id, in the order in which they were met."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, dict[str, Any]] = field(default_factory=dict)
    truncated: bool = False


def _answer(graph: Graph, body: SubgraphBody, timeout: float, cord: Interrupt) -> bytes:
    search = _Search(graph, body, timeout, cord)
    found = search.run()
    return graphfile.WRITERS[body.format](list(found.nodes.values()), list(found.edges.values()), found.truncated)


class _Search:
    def __init__(self, graph: Graph, body: SubgraphBody, timeout: float, cord: Interrupt) -> None:
        self._graph = graph
        self._body = body
        self._until = time.monotonic() + timeout
        self._cord = cord
        self._own = graph.own_properties()
        self._found = Found()
        self._types = self._wanted_types()

    def run(self) -> Found:
        frontier = self._take(self._start())
        for _ in range(self._body.hops):
            if not frontier or self._found.truncated:
                break
            frontier = self._take(self._neighbours(frontier))
        for table in self._types:
            self._edges_of(table)
        return self._found

    def _wanted_types(self) -> tuple[EdgeTable, ...]:
        wanted, schema = self._body.relationship_types, self._graph.schema
        if wanted is None:
            return schema.edges
        if strange := sorted(set(wanted) - set(schema.edge_types)):
            raise InvalidInput(f"There is no relationship type {strange[0][:80]!r}.", field="relationship_types")
        return tuple(table for table in schema.edges if table.type in wanted)

    def _start(self) -> Iterator[dict[str, Any]]:
        if self._body.cypher is not None:
            checked = check_cypher(self._body.cypher)
            if missing := sorted(checked.parameters - self._body.parameters.keys()):
                raise CypherError(f"The query names ${missing[0]}, which is not among its parameters.")
            given = {name: value for name, value in self._body.parameters.items() if name in checked.parameters}
            yield from self._nodes(checked.text, given)
            return
        for table, keys in self._by_label(self._body.start or ()):
            yield from self._nodes(f"{self._keyed(table, 'n')} RETURN n", {"keys": keys})

    def _neighbours(self, frontier: Iterable[str]) -> Iterator[dict[str, Any]]:
        for table, keys in self._by_label(frontier):
            for edge in self._types:
                if table.label == edge.from_node:
                    text = f"{self._keyed(table, 'n')}-[:{quoted(edge.type)}]->(m:{quoted(edge.to_node)})"
                    yield from self._nodes(f"{text} RETURN DISTINCT m", {"keys": keys})
                if table.label == edge.to_node:
                    text = f"{self._keyed(table, 'n')}<-[:{quoted(edge.type)}]-(m:{quoted(edge.from_node)})"
                    yield from self._nodes(f"{text} RETURN DISTINCT m", {"keys": keys})

    def _take(self, nodes: Iterable[dict[str, Any]]) -> list[str]:
        """Keep what is new, up to the limit; the ids of what was kept."""
        taken = []
        for node in nodes:
            if node["_id"] in self._found.nodes:
                continue
            if len(self._found.nodes) >= self._body.limit:
                self._found.truncated = True
                break
            self._found.nodes[node["_id"]] = node
            taken.append(node["_id"])
        return taken

    def _edges_of(self, table: EdgeTable) -> None:
        within = pa.array(list(self._found.nodes), pa.string())
        for start, keys in self._by_label(self._found.nodes):
            if start.label == table.from_node:
                text = f"{self._keyed(start, 'n')}-[e:{quoted(table.type)}]->(m:{quoted(table.to_node)}) RETURN e"
                for edge in self._query(text, {"keys": keys}, within=within):
                    if len(self._found.edges) >= MOST_EDGES:
                        self._found.truncated = True
                        return
                    self._found.edges[edge["_id"]] = edge

    def _nodes(self, text: str, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return (value for value in self._query(text, parameters) if "_label" in value)

    def _query(
        self, text: str, parameters: dict[str, Any], *, within: pa.Array | None = None
    ) -> Iterator[dict[str, Any]]:
        """The nodes and edges in the answer; of edges only those that end `within`."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise QueryInterrupted("The time is up.")
        result = self._graph.engine.query(text, parameters, timeout=left, interrupt=self._cord)
        try:
            for batch in result.batches(JSON_ROWS):
                for column, kind in zip(batch.columns, result.types, strict=True):
                    if kind in ("NODE", "REL"):
                        kept = (
                            column
                            if within is None
                            else column.filter(pc.is_in(column.field("_dst"), value_set=within))
                        )
                        yield from (value for value in values(kept, self._own) if value is not None)
        finally:
            result.close()

    def _keyed(self, table: NodeTable, name: str) -> str:
        key = self._graph.engine.key_of(table, "k")
        return f"UNWIND $keys AS k MATCH ({name}:{quoted(table.label)} {{{quoted(table.key.name)}: {key}}})"

    def _by_label(self, ids: Iterable[str]) -> list[tuple[NodeTable, list[str | int]]]:
        """`Label:key` → the label's table and its keys as the engine takes them."""
        keys: dict[str, list[str | int]] = {}
        for each in ids:
            label, colon, key = each.partition(":")
            table = self._graph.schema.node(label)
            if table is None or not colon:
                raise InvalidInput(f"{each[:80]!r} is not the id of a node.", hint="An id is Label:key.", field="start")
            keys.setdefault(label, []).append(_key(table, key))
        return [(self._table(label), found) for label, found in keys.items()]

    def _table(self, label: str) -> NodeTable:
        table = self._graph.schema.node(label)
        if table is None:
            raise InvalidInput(f"There is no label {label[:80]!r}.")
        return table


def _key(table: NodeTable, text: str) -> str | int:
    if table.key.type != "INT64":
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is not a key of {table.label}, which are whole numbers.") from None
