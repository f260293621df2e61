"""The part of a graph that an algorithm reads, validated against the schema."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypedDict

import orjson

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.graphdb.contract import EdgeTable, GraphSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChoice:
    type: str
    from_label: str
    to_label: str


class _Edge(TypedDict):
    type: str
    from_label: str
    to_label: str


class Content(TypedDict):
    """A selection in an order's file."""

    labels: list[str]
    results: list[str]
    edges: list[_Edge]
    weight: str | None
    node_properties: list[str]
    edge_properties: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`labels` take part in the computation; `results`, the requested ones, get the results."""

    labels: tuple[str, ...]
    results: tuple[str, ...]
    edges: tuple[EdgeChoice, ...]
    weight: str | None = None
    node_properties: tuple[str, ...] = ()
    edge_properties: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, content: Content) -> Selection:
        edges = tuple(EdgeChoice(**edge) for edge in content["edges"])
        return cls(
            labels=tuple(content["labels"]),
            results=tuple(content["results"]),
            edges=edges,
            weight=content["weight"],
            node_properties=tuple(content["node_properties"]),
            edge_properties=tuple(content["edge_properties"]),
        )

    def fingerprint(self) -> str:
        """A hash that is equal for selections that need the same data."""
        content = asdict(self)
        del content["results"]
        return blake2b(orjson.dumps(content), digest_size=12).hexdigest()


def select(
    schema: GraphSchema,
    *,
    labels: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    weight: str | None = None,
    node_properties: Sequence[str] = (),
    edge_properties: Sequence[str] = (),
) -> Selection:
    """`labels=None` selects all labels, `types=None` all types between the labels. A named type
    adds the labels at its ends, which take part but get no results."""
    requested = _checked_names(labels, [n.label for n in schema.nodes], "node_labels", "label")
    named = _checked_names(types, schema.edge_types, "relationship_types", "relationship type")
    tables = [e for e in schema.edges if e.type in named]
    if types is None:
        tables = [e for e in tables if e.from_node in requested and e.to_node in requested]
    ends = {label for table in tables for label in (table.from_node, table.to_node)}
    participating = tuple(n.label for n in schema.nodes if n.label in requested or n.label in ends)
    _check_edge_properties(tables, [*([weight] if weight else []), *edge_properties], weight)
    _check_node_properties(schema, participating, node_properties)
    return Selection(
        labels=participating,
        results=requested,
        edges=tuple(
            EdgeChoice(type=t.type, from_label=t.from_node, to_label=t.to_node) for t in tables
        ),
        weight=weight,
        node_properties=tuple(dict.fromkeys(node_properties)),
        edge_properties=tuple(dict.fromkeys(edge_properties)),
    )


def _checked_names(
    requested: Sequence[str] | None, existing: Sequence[str], parameter: str, what: str
) -> tuple[str, ...]:
    if requested is None:
        return tuple(existing)
    if unknown := [name for name in requested if name not in existing]:
        raise InvalidInput(
            f"{parameter}: there is no {what} {unknown[0][:80]!r} in this graph.",
            hint=f"The graph has: {', '.join(existing) or 'none'}.",
            parameter=parameter,
            known=list(existing),
        )
    if not requested:
        raise InvalidInput(f"{parameter} is empty; leave it out for all.", parameter=parameter)
    return tuple(dict.fromkeys(requested))


_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "SERIAL", "NUMBER")


def _check_edge_properties(
    tables: Sequence[EdgeTable], names: Sequence[str], weight: str | None
) -> None:
    for table in tables:
        types = {p.name: p.type for p in table.properties}
        for name in names:
            if name not in types:
                raise InvalidInput(
                    f"weight_property: edges of type {table.type} have no property {name[:80]!r}.",
                    hint=f"They have: {', '.join(types) or 'none'}.",
                    parameter="weight_property",
                )
        if weight and not any(part in types[weight].upper() for part in _NUMBERS):
            raise InvalidInput(
                f"weight_property: {weight} of {table.type} is {types[weight]}, not a number.",
                parameter="weight_property",
            )


def _check_node_properties(
    schema: GraphSchema, labels: Sequence[str], names: Sequence[str]
) -> None:
    tables = [table for table in schema.nodes if table.label in labels]
    for name in names:
        if not any(name == p.name for table in tables for p in table.columns):
            raise InvalidInput(
                f"No selected label has a property {name[:80]!r}.", parameter="parameters"
            )
