"""Why a bulk load failed, in numbers and examples: the engines name one value and stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.graphdb.errors import LoadRefused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.graphdb.contract import EdgeTable, NodeTable

EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Edges whose endpoint on one side is not there."""

    label: str
    column: str
    edges: int
    examples: tuple[str, ...]


def of_nodes(table: NodeTable, files: Sequence[Path], said: str) -> LoadRefused:
    """Null and repeated keys, counted from the files."""
    found = keys(table, files)
    counted = found.drop_null().value_counts()
    often = counted.filter(pc.greater(counted.field(1), 1)) if len(counted) else counted
    if found.null_count:
        return LoadRefused(
            f"Node {table.label}: {found.null_count} rows have no {table.key.name}, which is the primary key.",
            hint="Leave them out in the node's SQL.",
            label=table.label,
            null_keys=found.null_count,
        )
    if len(often):
        examples = _text(often.field(0).slice(0, EXAMPLES)).to_pylist()
        return LoadRefused(
            f"Node {table.label}: {len(often)} values of the primary key {table.key.name} are there more than once,"
            f" for example {', '.join(examples)}.",
            hint="Make the node's SQL give each key once (SELECT DISTINCT, or GROUP BY the key).",
            label=table.label,
            duplicate_keys=len(often),
            examples=examples,
        )
    return LoadRefused(f"Node {table.label} could not be loaded: {said}", label=table.label)


def keys(table: NodeTable, files: Sequence[Path]) -> pa.Array:
    return _column(files, table.key.name)


def missing_ends(table: EdgeTable, files: Sequence[Path], starts: pa.Array, ends: pa.Array) -> list[Missing]:
    """What the edges name and the nodes, whose keys are `starts` and `ends`, do not have."""
    columns = pq.read_schema(files[0]).names[:2]
    sides = ((table.from_node, columns[0], starts), (table.to_node, columns[1], ends))
    found = (_missing(label, column, _text(_column(files, column)), _text(keys)) for label, column, keys in sides)
    return [missing for missing in found if missing.edges]


def of_edges(table: EdgeTable, missing: Sequence[Missing], said: str) -> LoadRefused:
    name = f"Edge {table.type} ({table.from_node} to {table.to_node})"
    if not missing:
        return LoadRefused(f"{name} could not be loaded: {said}", type=table.type)
    told = "; ".join(
        f"{m.edges} rows name a {m.label} in {m.column} that is not there, for example {', '.join(m.examples)}"
        for m in missing
    )
    return LoadRefused(
        f"{name}: {told}.",
        hint="Join the edge's SQL with the nodes' tables, or let such edges be dropped (dangling_edges=drop).",
        type=table.type,
        missing=[{"label": m.label, "column": m.column, "edges": m.edges, "examples": m.examples} for m in missing],
    )


def _missing(label: str, column: str, used: pa.Array, keys: pa.Array) -> Missing:
    absent = used.filter(pc.invert(pc.is_in(used, value_set=keys)))
    examples = tuple(str(key) for key in absent.unique()[:EXAMPLES].to_pylist())
    return Missing(label=label, column=column, edges=len(absent), examples=examples)


def _column(files: Sequence[Path], name: str) -> pa.Array:
    chunks = [chunk for file in files for chunk in pq.read_table(file, columns=[name]).column(0).chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _text(keys: pa.Array) -> pa.Array:
    if keys.type in (pa.uuid(), pa.binary(16)):
        return pa.array([None if key is None else str(UUID(bytes=bytes(key))) for key in _bytes(keys)], pa.string())
    return keys.cast(pa.string())


def _bytes(keys: pa.Array) -> list[bytes | None]:
    plain = keys.storage if isinstance(keys.type, pa.BaseExtensionType) else keys
    found: list[bytes | None] = plain.to_pylist()
    return found
