"""The part of a graph that an algorithm looks at, checked against the schema."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`labels` take part; `results` of them, those that were asked for, get the results."""

    labels: tuple[str, ...]
    results: tuple[str, ...]
    edges: tuple[EdgeChoice, ...]
    weight: str | None = None
    node_properties: tuple[str, ...] = ()
    edge_properties: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Selection:
        edges = tuple(EdgeChoice(**edge) for edge in said["edges"])
        lists = {
            name: tuple(said[name])
            for name in ("labels", "results", "node_properties", "edge_properties")
        }
        return cls(edges=edges, weight=said["weight"], **lists)

    def fingerprint(self) -> str:
        """The same for selections that need the same data."""
        said = asdict(self)
        del said["results"]
        return blake2b(orjson.dumps(said), digest_size=12).hexdigest()


def select(
    schema: GraphSchema,
    *,
    labels: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    weight: str | None = None,
    node_properties: Sequence[str] = (),
    edge_properties: Sequence[str] = (),
) -> Selection:
    """No labels are all labels. No types are all types between the labels; a type that is named
    brings in the labels at its ends, which take part and get no results."""
    asked = _known(labels, [n.label for n in schema.nodes], "node_labels", "label")
    named = _known(types, schema.edge_types, "relationship_types", "relationship type")
    tables = [e for e in schema.edges if e.type in named]
    if types is None:
        tables = [e for e in tables if e.from_node in asked and e.to_node in asked]
    ends = {label for table in tables for label in (table.from_node, table.to_node)}
    joined = tuple(n.label for n in schema.nodes if n.label in asked or n.label in ends)
    _check_edge_properties(tables, [*([weight] if weight else []), *edge_properties], weight)
    _check_node_properties(schema, joined, node_properties)
    return Selection(
        labels=joined,
        results=asked,
        edges=tuple(
            EdgeChoice(type=t.type, from_label=t.from_node, to_label=t.to_node) for t in tables
        ),
        weight=weight,
        node_properties=tuple(dict.fromkeys(node_properties)),
        edge_properties=tuple(dict.fromkeys(edge_properties)),
    )


def _known(
    asked: Sequence[str] | None, known: Sequence[str], parameter: str, what: str
) -> tuple[str, ...]:
    if asked is None:
        return tuple(known)
    if strangers := [name for name in asked if name not in known]:
        raise InvalidInput(
            f"{parameter}: there is no {what} {strangers[0][:80]!r} in this graph.",
            hint=f"There are: {', '.join(known) or 'none'}.",
            parameter=parameter,
            known=list(known),
        )
    if not asked:
        raise InvalidInput(f"{parameter} names none; leave it out for all.", parameter=parameter)
    return tuple(dict.fromkeys(asked))


_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "SERIAL", "NUMBER")


def _check_edge_properties(
    tables: Sequence[EdgeTable], names: Sequence[str], weight: str | None
) -> None:
    for table in tables:
        known = {p.name: p.type for p in table.properties}
        for name in names:
            if name not in known:
                raise InvalidInput(
                    f"weight_property: edges of type {table.type} have no property {name[:80]!r}.",
                    hint=f"They have: {', '.join(known) or 'none'}.",
                    parameter="weight_property",
                )
        if weight and not any(part in known[weight].upper() for part in _NUMBERS):
            raise InvalidInput(
                f"weight_property: {weight} of {table.type} is {known[weight]}, not a number.",
                parameter="weight_property",
            )


def _check_node_properties(
    schema: GraphSchema, labels: Sequence[str], names: Sequence[str]
) -> None:
    tables = [table for table in schema.nodes if table.label in labels]
    for name in names:
        if not any(name == p.name for table in tables for p in table.columns):
            raise InvalidInput(
                f"No chosen label has a property {name[:80]!r}.", parameter="parameters"
            )
