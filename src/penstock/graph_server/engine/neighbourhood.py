"""Neighborhood search: the nodes around some start nodes, and every edge between them.

Hop by hop, each a few queries by primary key, so its cost is that of the neighborhood and not of
the graph.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph_server.queries.results import JSON_ROWS, Own, values
from penstock.graphdb.errors import CypherError, QueryInterrupted
from penstock.graphdb.typenames import quoted
from penstock.guard.cypher import check_cypher
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.graph_server.queries.results import Entity
    from penstock.graphdb.contract import EdgeTable, GraphEngine, Interrupt, NodeTable
    from penstock.kit.json_value import JsonValue

MOST_EDGES = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighborhood:
    """A request: start from these ids, or from the nodes that a query returns."""

    start: tuple[str, ...] | None
    cypher: str | None
    parameters: Mapping[str, JsonValue]
    hops: int
    relationship_types: tuple[str, ...] | None
    limit: int
    format: Literal["json", "arrow", "graphml", "gexf"]
    timeout: float


def search(
    engine: GraphEngine, own: Own, wish: Neighborhood, cord: Interrupt
) -> tuple[list[Entity], list[Entity], bool]:
    """Nodes, edges, and whether there was more."""
    subgraph = _Search(engine, own, wish, cord).run()
    return list(subgraph.nodes.values()), list(subgraph.edges.values()), subgraph.truncated


@dataclass(slots=True)
class _Found:
    """Nodes and edges by id, in the order in which they were met."""

    nodes: dict[str, Entity] = field(default_factory=dict)
    edges: dict[str, Entity] = field(default_factory=dict)
    truncated: bool = False


class _Search:
    def __init__(self, engine: GraphEngine, own: Own, wish: Neighborhood, cord: Interrupt) -> None:
        self._engine = engine
        self._wish = wish
        self._until = time.monotonic() + wish.timeout
        self._cord = cord
        self._own = own
        self._found = _Found()
        self._types = self._wanted_types()

    def run(self) -> _Found:
        frontier = self._take(self._start())
        for _ in range(self._wish.hops):
            if not frontier or self._found.truncated:
                break
            frontier = self._take(self._neighbors(frontier))
        for table in self._types:
            self._edges_of(table)
        return self._found

    def _wanted_types(self) -> tuple[EdgeTable, ...]:
        types, schema = self._wish.relationship_types, self._engine.schema
        if types is None:
            return schema.edges
        if unknown := sorted(set(types) - set(schema.edge_types)):
            raise InvalidInput(
                f"There is no relationship type {unknown[0][:80]!r}.", field="relationship_types"
            )
        return tuple(table for table in schema.edges if table.type in types)

    def _start(self) -> Iterator[Entity]:
        if self._wish.cypher is not None:
            checked = check_cypher(self._wish.cypher)
            if missing := sorted(checked.parameters - self._wish.parameters.keys()):
                raise CypherError(
                    f"The query names ${missing[0]}, which is not among its parameters."
                )
            parameters = {
                name: value
                for name, value in self._wish.parameters.items()
                if name in checked.parameters
            }
            yield from self._nodes(checked.text, parameters)
            return
        for table, keys in self._by_label(self._wish.start or ()):
            yield from self._nodes(f"{self._keyed(table, 'n')} RETURN n", {"keys": keys})

    def _neighbors(self, frontier: Iterable[str]) -> Iterator[Entity]:
        # As many as could be new and one more, which says that there are more.
        more = f"RETURN DISTINCT m LIMIT {self._wish.limit + 1}"
        for table, keys in self._by_label(frontier):
            for edge in self._types:
                if table.label == edge.from_node:
                    matched = self._keyed(table, "n")
                    text = f"{matched}-[:{quoted(edge.type)}]->(m:{quoted(edge.to_node)})"
                    yield from self._nodes(f"{text} {more}", {"keys": keys})
                if table.label == edge.to_node:
                    matched = self._keyed(table, "n")
                    text = f"{matched}<-[:{quoted(edge.type)}]-(m:{quoted(edge.from_node)})"
                    yield from self._nodes(f"{text} {more}", {"keys": keys})

    def _take(self, nodes: Iterable[Entity]) -> list[str]:
        """Add new nodes, up to the limit; return their ids."""
        taken = []
        for node in nodes:
            if node["_id"] in self._found.nodes:
                continue
            if len(self._found.nodes) >= self._wish.limit:
                self._found.truncated = True
                break
            self._found.nodes[node["_id"]] = node
            taken.append(node["_id"])
        return taken

    def _edges_of(self, table: EdgeTable) -> None:
        within = pa.array(list(self._found.nodes), pa.string())
        for start, keys in self._by_label(self._found.nodes):
            if start.label == table.from_node:
                matched = self._keyed(start, "n")
                text = f"{matched}-[e:{quoted(table.type)}]->(m:{quoted(table.to_node)}) RETURN e"
                for edge in self._query(text, {"keys": keys}, within=within):
                    if len(self._found.edges) >= MOST_EDGES:
                        self._found.truncated = True
                        return
                    self._found.edges[edge["_id"]] = edge

    def _nodes(self, text: str, parameters: Mapping[str, JsonValue]) -> Iterator[Entity]:
        return (value for value in self._query(text, parameters) if "_label" in value)

    def _query(
        self, text: str, parameters: Mapping[str, JsonValue], *, within: pa.Array | None = None
    ) -> Iterator[Entity]:
        """The nodes and edges in the answer; of edges only those that end `within`."""
        left = self._until - time.monotonic()
        if left <= 0 or self._cord.pulled:
            raise QueryInterrupted("The time is up.")
        result = self._engine.query(text, parameters, timeout=left, interrupt=self._cord)
        try:
            for batch in result.batches(JSON_ROWS):
                for column, kind in zip(batch.columns, result.types, strict=True):
                    if kind in ("NODE", "REL"):
                        elements = column if within is None else _to(column, within)
                        yield from (
                            value for value in values(elements, self._own) if value is not None
                        )
        finally:
            result.close()

    def _keyed(self, table: NodeTable, name: str) -> str:
        key = self._engine.key_of(table, "k")
        return (
            f"UNWIND $keys AS k MATCH ({name}:{quoted(table.label)} {{{quoted(table.key.name)}: "
            f"{key}}})"
        )

    def _by_label(self, ids: Iterable[str]) -> list[tuple[NodeTable, list[JsonValue]]]:
        """`Label:key` → the label's table and its keys as the engine takes them."""
        keys: dict[str, list[JsonValue]] = {}
        for node_id in ids:
            label, colon, key = node_id.partition(":")
            table = self._engine.schema.node(label)
            if table is None or not colon:
                raise InvalidInput(
                    f"{node_id[:80]!r} is not the id of a node.",
                    hint="An id is Label:key.",
                    field="start",
                )
            keys.setdefault(label, []).append(_key(table, key))
        return [(self._table(label), values) for label, values in keys.items()]

    def _table(self, label: str) -> NodeTable:
        table = self._engine.schema.node(label)
        if table is None:
            raise InvalidInput(f"There is no label {label[:80]!r}.")
        return table


def _key(table: NodeTable, text: str) -> str | int:
    if table.key.type != "INT64":
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:80]!r} is not a key of {table.label}, which are whole numbers."
        ) from None


def _to(column: pa.Array, nodes: pa.Array) -> pa.Array:
    """The relationships that end at one of the nodes."""
    return column.filter(pc.is_in(column.field("_dst"), value_set=nodes))
