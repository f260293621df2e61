"""Projects the columns of a data file to the table's current schema, by field id at every level.

Names are used only for files without ids, through the table's name mapping. List elements and map
keys and values match without an id. Only lossless conversions are done; anything else is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.maintenance.errors import UnreadableFile
from penstock.maintenance.tables.reading.file_schema import field_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.table.name_mapping import MappedField

_ELEMENT, _KEY, _VALUE = "element", "key", "value"
_TEXTS_AND_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)
"""Types that Arrow may choose for a string or binary column, by the file's Arrow schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A field of a file with its Iceberg id; None if the table has no such field."""

    field_id: int | None
    children: tuple[Column, ...] = ()


def identify(
    schema: Iterable[pa.Field], mapping: Iterable[MappedField] | None
) -> tuple[Column, ...]:
    """The fields of a file by their own ids if any, else by the name mapping."""
    fields = list(schema)
    if any(_has_ids(field) for field in fields):
        return tuple(_by_id(field) for field in fields)
    if mapping is None:
        raise UnreadableFile("it has no field ids, and the table has no name mapping.")
    return _by_name(fields, mapping)


def as_written(schema: Iterable[pa.Field]) -> tuple[Column, ...]:
    """The fields of a schema in which every field has an id."""
    return tuple(_by_id(field) for field in schema)


def project(
    arrays: Sequence[pa.Array],
    columns: Sequence[Column],
    target: Iterable[pa.Field],
    *,
    rows: int,
    constants: Mapping[int | None, object],
) -> list[pa.Array]:
    """One array per field of `target`. A field that the file lacks gets its constant, or null."""
    places: dict[int | None, int] = {
        column.field_id: at for at, column in enumerate(columns) if column.field_id is not None
    }
    result = []
    for field in target:
        id_ = field_id(field)
        at = places.get(id_)
        if at is not None:
            result.append(_converted(arrays[at], columns[at], field))
        elif id_ in constants:
            result.append(pa.repeat(_scalar(constants[id_], field.type), rows))
        elif field.nullable:
            result.append(_nulls(rows, field.type))
        else:
            raise UnreadableFile(f"it lacks the required column {field.name[:100]!r}.")
    return result


def _converted(array: pa.Array, column: Column, field: pa.Field) -> pa.Array:
    type_ = field.type
    if pa.types.is_null(array.type):
        return _nulls(len(array), type_)
    if pa.types.is_struct(type_) and pa.types.is_struct(array.type):
        return _struct(array, column, type_)
    if pa.types.is_list(type_) and _is_list(array.type):
        return _list(array, column, type_)
    if pa.types.is_map(type_) and pa.types.is_map(array.type):
        return _map(array, column, type_)
    if pa.types.is_nested(type_) or pa.types.is_nested(array.type):
        raise _differs(array.type, field)
    return _leaf(array, field)


def _struct(array: pa.StructArray, column: Column, type_: pa.StructType) -> pa.Array:
    fields = [array.field(at) for at in range(array.type.num_fields)]
    children = project(fields, column.children, list(type_), rows=len(array), constants={})
    mask = array.is_null() if array.null_count else None
    return _struct_of(children, type_, mask)


def _struct_of(
    children: Sequence[pa.Array], type_: pa.StructType, mask: pa.Array | None
) -> pa.Array:
    """A required field gets an arbitrary value in rows where the whole struct is null."""
    filled = [
        child if field.nullable or not child.null_count else _filled(child, field, mask)
        for child, field in zip(children, type_, strict=True)
    ]
    return pa.StructArray.from_arrays(filled, fields=list(type_), mask=mask)


def _nulls(rows: int, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(type_):
        return pa.nulls(rows, type_)
    children = [_nulls(rows, field.type) for field in type_]
    return _struct_of(children, type_, pa.repeat(pa.scalar(True), rows))


def _filled(array: pa.Array, field: pa.Field, mask: pa.Array | None) -> pa.Array:
    """The array without its null bitmap; any value will do in rows where the struct is null."""
    if mask is None or pc.any(pc.and_not(array.is_null(), mask)).as_py():
        raise missing_values(field)
    if isinstance(array, pa.ExtensionArray):
        storage = pa.field(field.name, array.type.storage_type)
        return pa.ExtensionArray.from_storage(array.type, _filled(array.storage, storage, mask))
    if pa.types.is_struct(array.type):
        fields = [array.field(at) for at in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(array.type))
    children = [array.values] if pa.types.is_list(array.type) else []
    if pa.types.is_map(array.type):
        entries = [array.type.key_field, array.type.item_field]
        children = [pa.StructArray.from_arrays([array.keys, array.items], fields=entries)]
    buffers = array.buffers()[: 2 if children else None]
    return pa.Array.from_buffers(
        array.type, len(array), [None, *buffers[1:]], 0, array.offset, children
    )


def _list(array: pa.Array, column: Column, type_: pa.ListType) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = _converted(array.values, column.children[0], type_.value_field)
    if not type_.value_field.nullable and values.null_count:
        raise missing_values(type_.value_field)
    return _nested(array, type_, values)


def _map(array: pa.MapArray, column: Column, type_: pa.MapType) -> pa.Array:
    key, value = column.children
    keys = _converted(array.keys, key, type_.key_field)
    values = _converted(array.items, value, type_.item_field)
    if not type_.item_field.nullable and values.null_count:
        raise missing_values(type_.item_field)
    entries = pa.StructArray.from_arrays(
        [keys, values],
        fields=[type_.key_field, type_.item_field],
    )
    return _nested(array, type_, entries)


def _nested(array: pa.Array, type_: pa.DataType, child: pa.Array) -> pa.Array:
    """The array with the same offsets and nulls, and another child."""
    own = array.buffers()[:2]
    return pa.Array.from_buffers(type_, len(array), own, array.null_count, array.offset, [child])


def _leaf(array: pa.Array, field: pa.Field) -> pa.Array:
    type_ = field.type
    if array.type == type_:
        return array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    if not _fits(array.type, storage):
        raise _differs(array.type, field)
    try:
        if pa.types.is_timestamp(storage):
            # A zone affects display only: the stored number counts from 1970 in UTC either way.
            array = array.cast(pa.timestamp(storage.unit, array.type.tz)).view(storage)
        else:
            array = array.cast(storage)
    except pa.ArrowInvalid as e:
        raise UnreadableFile(
            f"a value of {field.name[:100]!r} does not fit {type_}: {str(e)[:200]}"
        ) from e
    return pa.ExtensionArray.from_storage(type_, array) if storage is not type_ else array


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the types can be converted, possibly with Arrow's checked cast."""
    types = pa.types
    if types.is_integer(target):
        return bool(types.is_integer(source) and source.bit_width <= target.bit_width)
    if types.is_floating(target):
        return bool(types.is_floating(source) and source.bit_width <= target.bit_width)
    if types.is_decimal(target):
        return bool(
            types.is_decimal(source)
            and source.scale == target.scale
            and source.precision <= target.precision
        )
    if types.is_timestamp(target):
        return bool(types.is_timestamp(source))
    if types.is_time(target):
        return bool(types.is_time(source))
    if types.is_string(target) or types.is_binary(target):
        return any(is_it(source) for is_it in _TEXTS_AND_BYTES)
    if types.is_fixed_size_binary(target):
        fixed = types.is_fixed_size_binary(source) and source.byte_width == target.byte_width
        return bool(fixed or types.is_binary(source))
    return bool(source == target)


def _scalar(value: object, type_: pa.DataType) -> pa.Scalar:
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionScalar.from_storage(
            type_, pa.scalar(getattr(value, "bytes", value), type_.storage_type)
        )
    return pa.scalar(value, type_)


def _is_list(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)
    )


def missing_values(field: pa.Field) -> UnreadableFile:
    return UnreadableFile(f"the required field {field.name[:100]!r} holds nulls.")


def _differs(source: pa.DataType, field: pa.Field) -> UnreadableFile:
    return UnreadableFile(
        f"its column {field.name[:100]!r} is of the type {str(source)[:100]}, "
        f"which the table's {str(field.type)[:100]} cannot hold."
    )


def _children(field: pa.Field) -> list[pa.Field]:
    type_ = field.type
    if pa.types.is_struct(type_):
        return list(type_)
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    return [type_.value_field] if _is_list(type_) else []


def _has_ids(field: pa.Field) -> bool:
    return field_id(field) is not None or any(_has_ids(child) for child in _children(field))


def _by_id(field: pa.Field) -> Column:
    children = tuple(_by_id(child) for child in _children(field))
    return Column(field_id=field_id(field), children=children)


def _by_name(fields: Iterable[pa.Field], mapping: Iterable[MappedField]) -> tuple[Column, ...]:
    by_name = {name: mapped for mapped in mapping for name in mapped.names}
    return tuple(_named(field, by_name.get(field.name)) for field in fields)


def _named(field: pa.Field, mapped: MappedField | None) -> Column:
    inner = mapped.fields if mapped is not None else []
    children = _children(field)
    if pa.types.is_struct(field.type):
        columns = _by_name(children, inner)
    else:  # list elements and map keys and values match by role, whatever the file names them
        names = (_KEY, _VALUE) if pa.types.is_map(field.type) else (_ELEMENT,)
        by_name = {name: entry for entry in inner for name in entry.names}
        columns = tuple(
            _named(child, by_name.get(name)) for child, name in zip(children, names, strict=False)
        )
    return Column(field_id=None if mapped is None else mapped.field_id, children=columns)
