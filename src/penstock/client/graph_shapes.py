"""What graph servers answer, as far as it is the same for every graph.

A node is an object with `_id`, `_label` and its properties, an edge one with `_id`, `_type`, `_src`
and `_dst`.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

from penstock.client.json_value import JsonObject, JsonValue  # noqa: TC001 - tests read the types

Cell: TypeAlias = Any
"""One value of a query's result. Only whoever wrote the query knows its type, and they should not
have to convert it before they can use it."""
Element: TypeAlias = dict[str, Cell]
"""A row by its columns, a node or an edge."""


class Queried(TypedDict):
    columns: list[str]
    column_types: list[str]
    rows: list[list[Cell]]
    execution_time_ms: int
    truncated: bool


class Subgraph(TypedDict):
    nodes: list[Element]
    edges: list[Element]
    truncated: bool


class NodeTable(TypedDict):
    label: str
    primary_key: str
    primary_key_type: str
    properties: dict[str, str]
    node_count: int


class EdgeTable(TypedDict):
    type: str
    from_node: str
    to_node: str
    properties: dict[str, str]
    edge_count: int


class GraphSchema(TypedDict):
    node_tables: list[NodeTable]
    edge_tables: list[EdgeTable]
    total_nodes: int
    total_edges: int


class Lock(TypedDict):
    """Which algorithm writes; without one, `locked` is false and all else null."""

    locked: bool
    holder_id: str | None
    holder_username: str | None
    algorithm_name: str | None
    algorithm_type: str | None
    execution_id: str | None
    acquired_at: str | None


class GraphServerStatus(TypedDict):
    status: str
    ready: bool
    instance_id: int
    snapshot_id: int | None
    mapping_id: int | None
    owner_id: str | None
    backend: str
    isolation: str
    isolation_missing: list[str]
    engine: JsonObject
    started_at: str
    uptime_seconds: float
    node_count: int | None
    edge_count: int | None
    node_tables: list[str]
    edge_tables: list[str]
    memory_usage_bytes: int | None
    disk_usage_bytes: int | None
    lock: Lock


class AlgorithmListed(TypedDict):
    """An algorithm; `parameters` says what it takes."""

    name: str
    category: str
    description: str
    parameters: JsonValue
