"""Explains why a bulk load failed, with counts and examples: the engines report one value only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from penstock.graphdb.contract import NodeTable
from penstock.graphdb.errors import LoadRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from penstock.graphdb.contract import EdgeTable

EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Edges whose endpoint on one side is missing."""

    label: str
    column: str
    edges: int
    examples: tuple[str, ...]


def of_nodes(table: NodeTable, files: Sequence[Path], message: str) -> LoadRefused:
    """Null and repeated keys, counted from the files."""
    key_column = keys(table, files)
    counted = key_column.drop_null().value_counts()
    duplicates = counted.filter(pc.greater(counted.field(1), 1)) if len(counted) else counted
    if key_column.null_count:
        return LoadRefused(
            f"Node {table.label}: {key_column.null_count} rows have no {table.key.name}, which is"
            " the primary key.",
            hint="Leave them out in the node's SQL.",
            label=table.label,
            null_keys=key_column.null_count,
        )
    if len(duplicates):
        examples = texts(duplicates.field(0).slice(0, EXAMPLES)).to_pylist()
        return LoadRefused(
            f"Node {table.label}: {len(duplicates)} values of the primary key {table.key.name} are"
            f" duplicates, for example {', '.join(examples)}.",
            hint="Return each key once from the node's SQL (SELECT DISTINCT, or GROUP BY the key).",
            label=table.label,
            duplicate_keys=len(duplicates),
            examples=examples,
        )
    return _nil_uuid(f"Node {table.label}", message) or LoadRefused(
        f"Node {table.label} could not be loaded: {message}", label=table.label
    )


def keys(table: NodeTable, files: Sequence[Path]) -> pa.Array:
    return _column(files, table.key.name)


def missing_ends(
    table: EdgeTable, files: Sequence[Path], starts: pa.Array, ends: pa.Array
) -> list[Missing]:
    """The endpoints of edges that are not among the nodes' keys `starts` and `ends`."""
    columns = pq.read_schema(files[0]).names[:2]
    sides = ((table.from_node, columns[0], starts), (table.to_node, columns[1], ends))
    results = (
        _missing(label, column, texts(_column(files, column)), texts(keys))
        for label, column, keys in sides
    )
    return [missing for missing in results if missing.edges]


def of_edges(table: EdgeTable, missing: Sequence[Missing], message: str) -> LoadRefused:
    name = f"Edge {table.type} ({table.from_node} to {table.to_node})"
    if not missing:
        return _nil_uuid(name, message) or LoadRefused(
            f"{name} could not be loaded: {message}", type=table.type
        )
    summary = "; ".join(
        f"{m.edges} rows refer to a missing {m.label} in {m.column},"
        f" for example {', '.join(m.examples)}"
        for m in missing
    )
    return LoadRefused(
        f"{name}: {summary}.",
        hint="Join the edge's SQL with the nodes' tables, or drop such edges"
        " (PENSTOCK_INSTANCE_DANGLING_EDGES=drop).",
        type=table.type,
        missing=[
            {"label": m.label, "column": m.column, "edges": m.edges, "examples": m.examples}
            for m in missing
        ],
    )


def _nil_uuid(what: str, message: str) -> LoadRefused | None:
    """To Ryugraph the UUID of zeros is the least 128-bit integer, which it cannot negate."""
    if "cannot negate INT128_MIN" not in message:
        return None
    return LoadRefused(
        f"{what} has the UUID 00000000-0000-0000-0000-000000000000, which this engine cannot"
        " store.",
        hint="Make it null in the SQL, declare the column STRING, or use another wrapper_type.",
    )


def refuse_nan(table: NodeTable | EdgeTable, files: Sequence[Path]) -> None:
    """Refuse NaN for an engine that would store another number instead."""
    for name, values in _columns(files, partial(_has, types.is_floating)):
        if any(
            pc.any(pc.is_nan(leaf)).as_py()
            for leaf in _leaves(values)
            if types.is_floating(leaf.type)
        ):
            raise LoadRefused(
                f"{_what(table)}: {name} has NaN, which this engine cannot store.",
                hint="Make it null in the SQL, or use another wrapper_type.",
                column=name,
            )


def refuse_least_integers(table: NodeTable | EdgeTable, files: Sequence[Path]) -> None:
    """Refuse the least integer of a type for an engine that then loses the sign of other numbers:
    it packs them by the greatest absolute value, and that of the least does not fit the type."""
    for name, values in _columns(files, partial(_has, types.is_signed_integer)):
        for leaf in _leaves(values):
            if (
                types.is_signed_integer(leaf.type)
                and (least := _least(leaf.type)) == pc.min(leaf).as_py()
            ):
                raise LoadRefused(
                    f"{_what(table)}: {name} has {least}, which this engine cannot store in"
                    f" {leaf.type}.",
                    hint="Declare a wider integer, make it null in the SQL, or use another"
                    " wrapper_type.",
                    column=name,
                )


def _least(kind: pa.DataType) -> int:
    bits: int = kind.bit_width
    return -(1 << bits - 1)


def refuse_list_items(table: NodeTable | EdgeTable, files: Sequence[Path]) -> None:
    """Refuse nulls and NaNs in lists for an engine that cannot store them there."""
    for name, values in _columns(files, _is_list):
        if word := _missing_item(values):
            raise LoadRefused(
                f"{_what(table)}: {name} has {word} in a list, which this engine cannot store.",
                hint="Leave such items out of the list in the SQL, or use another wrapper_type.",
                column=name,
            )


def _missing_item(values: pa.Array) -> str:
    items = values.flatten()
    if items.null_count:
        return "null"
    if _is_list(items.type):
        return _missing_item(items)
    return "NaN" if types.is_floating(items.type) and pc.any(pc.is_nan(items)).as_py() else ""


def _columns(
    files: Sequence[Path], chosen: Callable[[pa.DataType], bool]
) -> Iterator[tuple[str, pa.Array]]:
    """The columns whose type is `chosen`, a chunk at a time."""
    names = [field.name for field in pq.read_schema(files[0]) if chosen(field.type)]
    for name in names:
        for file in files:
            for chunk in pq.read_table(file, columns=[name]).column(0).chunks:
                yield name, chunk


def _has(matches: Callable[[pa.DataType], bool], kind: pa.DataType) -> bool:
    """Whether a column has values of such a type at any depth."""
    if types.is_nested(kind):
        return any(_has(matches, kind.field(i).type) for i in range(kind.num_fields))
    return matches(kind)


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if types.is_map(kind):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif types.is_struct(kind):
        for field in values.flatten():
            yield from _leaves(field)
    elif _is_list(kind):
        yield from _leaves(values.flatten())
    else:
        yield values


def _what(table: NodeTable | EdgeTable) -> str:
    return f"Node {table.label}" if isinstance(table, NodeTable) else f"Edge {table.type}"


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def too_large(what: str, cache_bytes: int) -> LoadRefused:
    return LoadRefused(
        f"{what} could not be loaded: the engine's cache of {cache_bytes // 2**20} MiB is too"
        " small.",
        hint="Give the instance more memory.",
        cache_bytes=cache_bytes,
    )


def _missing(label: str, column: str, used: pa.Array, keys: pa.Array) -> Missing:
    absent = used.filter(pc.invert(pc.is_in(used, value_set=keys)))
    examples = tuple(str(key) for key in absent.unique()[:EXAMPLES].to_pylist())
    return Missing(label=label, column=column, edges=len(absent), examples=examples)


def _column(files: Sequence[Path], name: str) -> pa.Array:
    chunks = [
        chunk for file in files for chunk in pq.read_table(file, columns=[name]).column(0).chunks
    ]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def texts(keys: pa.Array) -> pa.Array:
    """Keys of any type as text; equal keys have equal texts."""
    if keys.type in (pa.uuid(), pa.binary(16)):
        return pa.array(
            [None if key is None else str(UUID(bytes=bytes(key))) for key in _bytes(keys)],
            pa.string(),
        )
    return keys.cast(pa.string())


def _bytes(keys: pa.Array) -> list[bytes | None]:
    plain = keys.storage if isinstance(keys.type, pa.BaseExtensionType) else keys
    values: list[bytes | None] = plain.to_pylist()
    return values
