"""Definitions of a mapping: one query per node label and per edge type between two labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

import orjson

from penstock.graphs.snapshots.payloads import Column, Entity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.kit.json_value import JsonObject


class PropertyDocument(TypedDict):
    name: str
    type: str


class NodeDocument(TypedDict):
    """A node definition as JSON; graph servers get it without its SQL."""

    label: str
    sql: NotRequired[str]
    primary_key: PropertyDocument
    properties: list[PropertyDocument]


class EdgeDocument(TypedDict):
    type: str
    from_node: str
    to_node: str
    sql: NotRequired[str]
    from_key: str
    to_key: str
    properties: list[PropertyDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDefinition:
    label: str
    sql: str
    primary_key: Property
    properties: tuple[Property, ...] = ()

    @property
    def columns(self) -> tuple[Property, ...]:
        """The columns that its query returns, in this order."""
        return (self.primary_key, *self.properties)

    @classmethod
    def read(cls, document: NodeDocument) -> NodeDefinition:
        return cls(
            label=document["label"],
            sql=document["sql"],
            primary_key=Property(**document["primary_key"]),
            properties=_properties(document["properties"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDefinition:
    """`from_key` and `to_key` name the columns with the primary keys of the two nodes."""

    type: str
    from_node: str
    to_node: str
    sql: str
    from_key: str
    to_key: str
    properties: tuple[Property, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.type, self.from_node, self.to_node

    @classmethod
    def read(cls, document: EdgeDocument) -> EdgeDefinition:
        return cls(
            type=document["type"],
            from_node=document["from_node"],
            to_node=document["to_node"],
            sql=document["sql"],
            from_key=document["from_key"],
            to_key=document["to_key"],
            properties=_properties(document["properties"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One entity, and the query that fills it with these columns."""

    entity: Entity
    sql: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    nodes: tuple[NodeDefinition, ...]
    edges: tuple[EdgeDefinition, ...] = ()

    @property
    def edge_type_count(self) -> int:
        return len({edge.type for edge in self.edges})

    def queries(self) -> list[Query]:
        """One query per entity, named as in the manifest; the definitions must be valid."""
        return [*self._node_queries(), *self._edge_queries()]

    def entity(self, edge: EdgeDefinition) -> Entity:
        """The entity of an edge; it names the pair of labels only if its type has several."""
        several = Counter(other.type for other in self.edges)[edge.type] > 1
        pair = {"from_node": edge.from_node, "to_node": edge.to_node} if several else {}
        return Entity(job_type="edge", name=edge.type, **pair)

    def _node_queries(self) -> Iterator[Query]:
        for node in self.nodes:
            columns = tuple(Column(name=column.name, type=column.type) for column in node.columns)
            yield Query(
                entity=Entity(job_type="node", name=node.label), sql=node.sql, columns=columns
            )

    def _edge_queries(self) -> Iterator[Query]:
        keys = {node.label: node.primary_key.type for node in self.nodes}
        for edge in self.edges:
            columns = (
                Column(name=edge.from_key, type=keys[edge.from_node]),
                Column(name=edge.to_key, type=keys[edge.to_node]),
                *(Column(name=column.name, type=column.type) for column in edge.properties),
            )
            yield Query(entity=self.entity(edge), sql=edge.sql, columns=columns)


def documents(
    definitions: Sequence[NodeDefinition | EdgeDefinition], *, sql: bool = True
) -> list[JsonObject]:
    """Definitions as JSON; graph servers get them without their SQL."""
    rows = [asdict(definition) for definition in definitions]
    return (
        rows
        if sql
        else [{name: value for name, value in row.items() if name != "sql"} for row in rows]
    )


def dumped(definitions: Sequence[NodeDefinition | EdgeDefinition]) -> str:
    return orjson.dumps(documents(definitions)).decode()


def loaded(nodes: str, edges: str) -> Definitions:
    return Definitions(
        nodes=tuple(NodeDefinition.read(document) for document in orjson.loads(nodes)),
        edges=tuple(EdgeDefinition.read(document) for document in orjson.loads(edges)),
    )


def _properties(documents: Sequence[PropertyDocument]) -> tuple[Property, ...]:
    return tuple(Property(name=document["name"], type=document["type"]) for document in documents)
