"""Converts the embedded engines' structs to nodes, edges and paths in wire format, by column.

An engine identifies a node by table and offset; a client by label and key: `Person:42`. So a node
struct gets `_id` and `_label`, an edge `_id`, `_type`, `_src` and `_dst`, a path `_nodes` and
`_rels`, at any depth of a value. Keys of endpoints are looked up in one array per label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from penstock.graphdb.errors import CypherError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Names: TypeAlias = Callable[[int], pa.Array | None]
    """Returns the ids (`Label:key`) of a table's nodes by offset."""


class Shapes:
    def __init__(self, keys: Mapping[str, str], names: Names) -> None:
        """`keys` maps each label to the name of its key column."""
        self._keys = keys
        self._names = names

    def batch(self, batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [self.array(column) for column in batch.columns], names=list(columns)
        )

    def array(self, values: pa.Array) -> pa.Array:
        kind = values.type
        if types.is_struct(kind):
            return self._struct(values)
        if types.is_list(kind) and not _is_plain(kind.value_type):
            inner = self.array(values.values)
            return pa.ListArray.from_arrays(values.offsets, inner, mask=_mask(values))
        return values

    def _struct(self, values: pa.Array) -> pa.Array:
        fields = {field.name: _field(values, i) for i, field in enumerate(values.type)}
        if fields.keys() >= {"_SRC", "_DST", "_LABEL"}:
            return self._edges(values, fields)
        if fields.keys() >= {"_ID", "_LABEL"}:
            return self._nodes(values, fields)
        if fields.keys() == {"_NODES", "_RELS"}:
            shaped = {"_nodes": self.array(fields["_NODES"]), "_rels": self.array(fields["_RELS"])}
            return _build(shaped, _mask(values))
        if fields.keys() == {"offset", "table"}:
            return _joined(fields["table"], fields["offset"])
        if _is_plain(values.type):
            return values
        return _build({name: self.array(field) for name, field in fields.items()}, _mask(values))

    def _nodes(self, values: pa.Array, fields: dict[str, pa.Array]) -> pa.Array:
        labels = fields.pop("_LABEL")
        fields.pop("_ID")
        ids = pa.nulls(len(values), pa.string())
        for label in labels.unique().to_pylist():
            if label is not None and (key := self._keys.get(label)) in fields:
                here = pc.fill_null(pc.equal(labels, label), False)
                ids = pc.if_else(here, named(label, fields[key]), ids)
        return _build({"_id": ids, "_label": labels} | fields, _missing(values, labels))

    def _edges(self, values: pa.Array, fields: dict[str, pa.Array]) -> pa.Array:
        labels, own = fields.pop("_LABEL"), fields.pop("_ID")
        if pc.any(pc.equal(labels, "")).as_py():
            raise CypherError(
                "The engine lost a relationship of the result: it has no type.",
                hint="This happens where a query groups by a relationship. Group by id(e), or"
                " return its properties.",
            )
        ends = {"_src": self._ends(fields.pop("_SRC")), "_dst": self._ends(fields.pop("_DST"))}
        ids = pc.binary_join_element_wise(labels, _joined(_field(own, 1), _field(own, 0)), ":")
        return _build({"_id": ids, "_type": labels} | ends | fields, _missing(values, labels))

    def _ends(self, internal: pa.Array) -> pa.Array:
        offsets, tables = _field(internal, 0), _field(internal, 1)
        ends = pa.nulls(len(internal), pa.string())
        for table in tables.unique().to_pylist():
            names = None if table is None else self._names(table)
            if names is not None:
                here = pc.fill_null(pc.equal(tables, table), False)
                ids = names.take(pc.if_else(here, offsets, None))
                ends = pc.if_else(here, ids, ends)
        return ends


def named(label: str, keys: pa.Array) -> pa.Array:
    """`Label:key` of each key."""
    return pc.binary_join_element_wise(pa.scalar(label), keys.cast(pa.string()), ":")


def _is_plain(kind: pa.DataType) -> bool:
    """Whether the type contains none of the engine's own structs."""
    if types.is_struct(kind):
        return not any(
            f.name in ("_ID", "_SRC", "_NODES", "offset") or not _is_plain(f.type) for f in kind
        )
    return _is_plain(kind.value_type) if types.is_list(kind) else True


def _field(values: pa.Array, index: int) -> pa.Array:
    """A field that is null where its struct is; the raw child array is undefined there."""
    return pc.struct_field(values, [index])


def _joined(tables: pa.Array, offsets: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(tables.cast(pa.string()), offsets.cast(pa.string()), ":")


def _mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _missing(values: pa.Array, labels: pa.Array) -> pa.Array | None:
    """The mask of nulls. For an OPTIONAL MATCH without a match some engines return a struct of
    nulls."""
    return (
        pc.or_(values.is_null(), labels.is_null())
        if labels.null_count or values.null_count
        else None
    )


def _build(fields: dict[str, pa.Array], mask: pa.Array | None) -> pa.Array:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=mask)
