"""A bit-exact text for every value of an Arrow table, the same whichever engine produced the table.

Floats are their bits, temporal values their integers, text its bytes; a map is its entries in the
order of their keys. Engines that hand out UUIDs as text get the bytes back by the Iceberg type.
"""

from __future__ import annotations

import decimal
import hashlib
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    JsonType: TypeAlias = str | Mapping[str, object] | None

LONGEST = 80
"""Longer values are written as their length and a hash."""
NULL = "∅"
_EXACT = decimal.Context(prec=80)


def canonical_rows(table: pa.Table, schema: Mapping[str, object] | None = None) -> list[str]:
    """One line a row, sorted: equal lists are equal multisets of rows.

    `schema` is the Iceberg schema as table metadata has it; columns are matched by position.
    """
    fields = _fields(schema, table.num_columns)
    columns = [
        canonical_values(_combined(column), kind)
        for column, kind in zip(table.columns, fields, strict=True)
    ]
    if not columns:
        return [""] * table.num_rows
    return sorted("|".join(row) for row in zip(*columns, strict=True))


def canonical_types(table: pa.Table) -> list[str]:
    """Names and types of the columns as the reader reports them; field ids are no part of it."""
    return [f"{field.name}: {_type_text(field.type)}" for field in table.schema]


def canonical_values(array: pa.Array, kind: JsonType = None) -> list[str]:
    if isinstance(array, pa.ExtensionArray):
        boolean = array.type.extension_name == "arrow.bool8"
        array = array.storage.cast(pa.bool_()) if boolean else array.storage
    if pa.types.is_null(array.type):
        return [NULL] * len(array)
    texts = _texts(array, kind)
    valid = array.is_valid().to_pylist()
    return [text if present else NULL for text, present in zip(texts, valid, strict=True)]


def _combined(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else _empty(column)


def _empty(column: pa.ChunkedArray) -> pa.Array:
    return pa.nulls(0, column.type)


def _texts(array: pa.Array, kind: JsonType) -> list[str]:
    of = array.type
    if pa.types.is_struct(of):
        return _struct(array, kind)
    if pa.types.is_map(of):
        return _map(array, kind)
    if pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of):
        return _list(array, kind)
    if _is_text(of):
        return _text(array, kind)
    if pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_fixed_size_binary(of):
        return ["b" + _long(value) for value in array.to_pylist()]
    return _number(array)


def _number(array: pa.Array) -> list[str]:
    of = array.type
    if pa.types.is_floating(of):
        return _bits(array)
    if pa.types.is_temporal(of):
        return _temporal(array)
    if pa.types.is_decimal(of):
        return [_decimal(value, of.scale) for value in array.to_pylist()]
    if pa.types.is_boolean(of) or pa.types.is_integer(of):
        return [str(value) for value in array.to_pylist()]
    raise TypeError(f"no canonical form for {of}")


def _text(array: pa.Array, kind: JsonType) -> list[str]:
    if kind == "uuid":
        return [_uuid(value) for value in array.to_pylist()]
    return ["t" + _long(value) for value in array.cast(pa.large_binary()).to_pylist()]


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _uuid(value: str | None) -> str:
    return NULL if value is None else "b" + UUID(value).bytes.hex()


def _long(value: bytes | None) -> str:
    if value is None:
        return NULL
    if len(value) > LONGEST:
        return f"{len(value)} bytes {hashlib.sha256(value).hexdigest()}"
    return value.hex()


def _bits(array: pa.Array) -> list[str]:
    width = array.type.bit_width
    whole = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[width]
    return [
        NULL if value is None else f"f{width}:{value:0{width // 4}x}"
        for value in array.view(whole).to_pylist()
    ]


def _temporal(array: pa.Array) -> list[str]:
    of = array.type
    width = pa.int32() if of.bit_width == 32 else pa.int64()
    if pa.types.is_date(of):
        mark = "d"
    elif pa.types.is_time(of):
        mark = f"T{of.unit}"
    else:
        mark = f"{'z' if of.tz else 'l'}{of.unit}"
    return [f"{mark}{value}" for value in array.view(width).to_pylist()]


def _decimal(value: object, scale: int) -> str:
    return NULL if value is None else f"{int(value.scaleb(scale, _EXACT))}e-{scale}"


def _struct(array: pa.StructArray, kind: JsonType) -> list[str]:
    kinds = _fields(kind, array.type.num_fields)
    # `flatten` gives children without the nulls of their parent's slice offset; `field` does not.
    children = [
        canonical_values(child, inner) for child, inner in zip(array.flatten(), kinds, strict=True)
    ]
    return (
        ["{" + ",".join(row) + "}" for row in zip(*children, strict=True)]
        if children
        else ["{}"] * len(array)
    )


def _list(array: pa.ListArray, kind: JsonType) -> list[str]:
    inner = kind.get("element") if isinstance(kind, dict) else None
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    values = canonical_values(array.values, inner)
    return ["[" + ",".join(values[a:b]) + "]" for a, b in _spans(array)]


def _map(array: pa.MapArray, kind: JsonType) -> list[str]:
    key, value = (kind.get("key"), kind.get("value")) if isinstance(kind, dict) else (None, None)
    keys, values = canonical_values(array.keys, key), canonical_values(array.items, value)
    entries = [f"{k}={v}" for k, v in zip(keys, values, strict=True)]
    return ["<" + ",".join(sorted(entries[a:b])) + ">" for a, b in _spans(array)]


def _spans(array: pa.Array) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [(offsets[i], offsets[i + 1]) if valid[i] else (0, 0) for i in range(len(array))]


def _fields(schema: JsonType, count: int) -> Sequence[JsonType]:
    if not isinstance(schema, dict):
        return [None] * count
    fields: list[Mapping[str, object]] = schema["fields"]
    if len(fields) != count:
        raise TypeError(f"{count} columns where the Iceberg schema has {len(fields)}")
    return [field["type"] for field in fields]


def _type_text(of: pa.DataType) -> str:
    if pa.types.is_struct(of):
        return "struct<" + ", ".join(f"{f.name}: {_type_text(f.type)}" for f in of) + ">"
    if pa.types.is_map(of):
        return f"map<{_type_text(of.key_type)}, {_type_text(of.item_type)}>"
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return f"list<{_type_text(of.value_type)}>"
    return str(of).removeprefix("large_")
