"""The statements that create and fill an embedded engine's tables; `engine.py` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from penstock.graphdb.errors import LoadRefused, SchemaRefused
from penstock.graphdb.typenames import engine_type, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.graphdb.contract import EdgeTable, GraphSchema, NodeTable, Property


def create_node(table: NodeTable) -> str:
    columns = ", ".join(f"{quoted(p.name)} {_type(p)}" for p in table.columns)
    return (
        f"CREATE NODE TABLE {quoted(table.label)}({columns}, PRIMARY KEY({quoted(table.key.name)}))"
    )


def create_edge(edge_type: str, schema: GraphSchema) -> str:
    pairs = schema.pairs(edge_type)
    ends = [f"FROM {quoted(pair.from_node)} TO {quoted(pair.to_node)}" for pair in pairs]
    columns = [f"{quoted(p.name)} {_type(p)}" for p in _union(edge_type, pairs)]
    return f"CREATE REL TABLE {quoted(edge_type)}({', '.join([*ends, *columns])})"


def copy_nodes(table: NodeTable, files: Sequence[Path]) -> str:
    columns = _columns(files, table.columns, f"Node {table.label}")
    return f"COPY {quoted(table.label)}({columns}) FROM {_list(files)}"


def copy_edges(table: EdgeTable, schema: GraphSchema, files: Sequence[Path], *, drop: bool) -> str:
    pairs = schema.pairs(table.type)
    options = [f"from='{table.from_node}', to='{table.to_node}'"] if len(pairs) > 1 else []
    options += ["ignore_errors=true"] if drop else []
    chosen = f" ({', '.join(options)})" if options else ""
    return (
        f"COPY {quoted(table.type)}{_edge_source(table, _union(table.type, pairs), files)}{chosen}"
    )


def match_edges(table: EdgeTable) -> str:
    start, end = quoted(table.from_node), quoted(table.to_node)
    return f"MATCH (a:{start})-[e:{quoted(table.type)}]->(b:{end}) RETURN "


def _edge_source(table: EdgeTable, properties: Sequence[Property], files: Sequence[Path]) -> str:
    columns = _columns(files, table.properties, f"Edge {table.type}", skip=2)
    names = pq.read_schema(files[0]).names
    if {p.name for p in properties} == set(names[2:]):
        return f"({columns}) FROM {_list(files)}" if columns else f" FROM {_list(files)}"
    # A column list cannot be empty, so columns that only other pairs of labels have are null.
    values = [
        quoted(p.name) if p.name in names[2:] else f"CAST(NULL AS {_type(p)})" for p in properties
    ]
    return (
        f" FROM (LOAD FROM {_list(files)} RETURN {', '.join([*map(quoted, names[:2]), *values])})"
    )


def _type(column: Property) -> str:
    return engine_type(column.type, column.arrow, column.name)


def _union(edge_type: str, pairs: Sequence[EdgeTable]) -> list[Property]:
    """The columns of an edge type: the union over its pairs of labels, which must agree on a
    column's type."""
    columns: dict[str, Property] = {}
    for pair in pairs:
        for column in pair.properties:
            first = columns.setdefault(column.name, column)
            if _type(first) != _type(column):
                raise SchemaRefused(
                    f"Edge {edge_type}: {column.name} is {first.type} for one pair and"
                    f" {column.type} for another.",
                    hint="Declare one type for all pairs.",
                )
    return list(columns.values())


def _columns(
    files: Sequence[Path], properties: Sequence[Property], what: str, *, skip: int = 0
) -> str:
    """The files' columns in order: the engine assigns them by position."""
    names = pq.read_schema(files[0]).names[skip:]
    if mismatched := sorted(set(names) ^ {p.name for p in properties}):
        raise LoadRefused(
            f"{what}: the files and the definition differ in {', '.join(mismatched)}."
        )
    return ", ".join(quoted(name) for name in names)


def _list(files: Sequence[Path]) -> str:
    escaped = (str(file).replace("\\", "\\\\").replace("'", "\\'") for file in files)
    return "['" + "', '".join(escaped) + "']"
