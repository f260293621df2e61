"""Plans a load from definitions and a manifest: tables, their files and expected row counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable, Property
from penstock.graphdb.errors import LoadRefused
from penstock.storage.schema import unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from penstock.graphs.mappings.definition import EdgeDocument, NodeDocument, PropertyDocument
    from penstock.storage.manifest import Entity, Manifest
    from penstock.storage.part import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table and the files that fill it."""

    table: NodeTable | EdgeTable
    parts: tuple[Part, ...]
    rows: int

    @property
    def name(self) -> str:
        return self.table.label if isinstance(self.table, NodeTable) else self.table.type

    @property
    def kind(self) -> Literal["node", "edge"]:
        return "node" if isinstance(self.table, NodeTable) else "edge"

    @property
    def counted_as(self) -> str:
        """The name under which the engine counts it."""
        match self.table:
            case NodeTable(label=label):
                return label
            case EdgeTable(type=edge_type, from_node=start, to_node=end):
                return f"{edge_type}:{start}:{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Nodes come before edges."""

    sources: tuple[Source, ...]

    @property
    def schema(self) -> GraphSchema:
        tables = [source.table for source in self.sources]
        return GraphSchema(
            nodes=tuple(t for t in tables if isinstance(t, NodeTable)),
            edges=tuple(t for t in tables if isinstance(t, EdgeTable)),
        )


def make(nodes: Sequence[NodeDocument], edges: Sequence[EdgeDocument], manifest: Manifest) -> Plan:
    return Plan(
        sources=(*(_node(n, manifest) for n in nodes), *(_edge(e, manifest) for e in edges))
    )


def _node(definition: NodeDocument, manifest: Manifest) -> Source:
    entity = _entity(manifest, f"nodes/{definition['label']}")
    columns = _properties([definition["primary_key"], *definition["properties"]], entity)
    table = NodeTable(label=definition["label"], key=columns[0], properties=columns[1:])
    return Source(table=table, parts=entity.parts, rows=entity.rows)


def _edge(definition: EdgeDocument, manifest: Manifest) -> Source:
    name, start, end = definition["type"], definition["from_node"], definition["to_node"]
    entity = _entity(manifest, f"edges/{name}/{start}-{end}", f"edges/{name}")
    table = EdgeTable(
        type=name,
        from_node=start,
        to_node=end,
        properties=_properties(definition["properties"], entity),
    )
    return Source(table=table, parts=entity.parts, rows=entity.rows)


def _entity(manifest: Manifest, *names: str) -> Entity:
    """An edge type between several pairs of labels has the pair in its name, one between two has
    not."""
    for name in names:
        if name in manifest.entities:
            return manifest.entities[name]
    raise LoadRefused(
        f"The snapshot's manifest does not have {names[-1]}.", hint="Create a new snapshot."
    )


def _properties(declared: Sequence[PropertyDocument], entity: Entity) -> tuple[Property, ...]:
    schema: pa.Schema = unpack(entity.arrow_schema)
    types = {field.name: field.type for field in schema}
    return tuple(
        Property(name=p["name"], type=p["type"], arrow=types.get(p["name"])) for p in declared
    )
