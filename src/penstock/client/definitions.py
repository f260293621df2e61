"""Definitions of mappings as people write them: node labels, edge types and their properties."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node label and the query that gives its rows.

    `primary_key` and `properties` are `(name, type)` pairs or `Property`; see `node()` for the
    short way.
    """

    label: str
    sql: str
    primary_key: Property
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge type between two labels and the query that gives its rows."""

    type: str
    from_node: str
    to_node: str
    sql: str
    from_key: str
    to_key: str
    properties: tuple[Property, ...] = ()


def definition(value: Node | Edge) -> dict[str, object]:
    """A definition as the API takes it."""
    return asdict(value) | {"properties": [asdict(item) for item in value.properties]}


def node(label: str, sql: str, key: str, key_type: str = "STRING", **properties: str) -> Node:
    """`node("Person", "SELECT id, name FROM people", "id", "INT64", name="STRING")`."""
    return Node(
        label=label,
        sql=sql,
        primary_key=Property(name=key, type=key_type),
        properties=_typed(properties),
    )


def edge(
    type_: str, between: tuple[str, str], sql: str, keys: tuple[str, str], **properties: str
) -> Edge:
    """`edge("KNOWS", ("Person", "Person"), "SELECT a, b, since FROM knows", ("a", "b"),
    since="DATE")`."""
    return Edge(
        type=type_,
        from_node=between[0],
        to_node=between[1],
        sql=sql,
        from_key=keys[0],
        to_key=keys[1],
        properties=_typed(properties),
    )


def _typed(properties: dict[str, str]) -> tuple[Property, ...]:
    return tuple(Property(name=name, type=kind) for name, kind in properties.items())
