"""Whether manifests tell the truth of rewritten files, computed anew from the files' own values.

Slow and obvious: every value of every field is taken out of the file by its field id, and counts,
bounds and partition values are compared with what the values give.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Context
from typing import TYPE_CHECKING, TypeAlias

import mmh3
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tests.maintenance.differential.manifests import live_data_files, partition_values
from tests.maintenance.differential.tables import local_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType

    Value: TypeAlias = bool | int | float | bytes
    """Raw: text as UTF-8, decimals without their scale, temporal values as integers."""

FIELD_ID = b"PARQUET:field_id"
_EXACT = Context(prec=80)
HOUR = 3_600_000_000
DAY = 24 * HOUR


class NotTrue(AssertionError):
    """Metadata says something that a file does not bear out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """All values of one primitive field in a file."""

    field_id: int
    type: PrimitiveType
    values: list[Value | None]
    repeated: bool
    """Inside a list or a map, where a row has none or many."""


def doubtful_partitions(table: Table, files: Iterable[DataFile]) -> frozenset[str]:
    """Partitions of which PyIceberg wrote what is not so. To maintain such a table is to leave its
    rows in the partitions that they have.

    `add_files` derives partitions from statistics and takes them for null where there are none;
    its files lie in no table's folder. And nulls of a void field become False or 0 where the
    source is required.
    """
    folder, specs = local_path(table.location()), table.metadata.specs()
    return frozenset(
        _partition(file)
        for file in files
        if file.content == DataFileContent.DATA
        and (
            not local_path(file.file_path).is_relative_to(folder)
            or any(
                isinstance(field.transform, VoidTransform) and value is not None
                for field, value in zip(
                    specs[file.spec_id].fields, partition_values(file), strict=True
                )
            )
        )
    )


def _partition(file: DataFile) -> str:
    return repr((file.spec_id, partition_values(file)))


def check_metadata(table: Table, before: Collection[Path], doubtful: Collection[str]) -> int:
    """Of all files in the table's folder that are not in `before`, but not whether the rows of
    `doubtful` partitions are in the right ones; returns how many files these were."""
    checked: set[Path] = set()
    folder = local_path(table.location())
    for snapshot in table.metadata.snapshots:
        schema = table.metadata.schema_by_id(snapshot.schema_id) or table.schema()
        for file in live_data_files(table, snapshot):
            path = local_path(file.file_path)
            if path in before or path in checked or not path.is_relative_to(folder):
                continue
            checked.add(path)
            leaves = _check_file(file, schema)
            if _partition(file) not in doubtful:
                _check_partition(table, file, leaves)
    return len(checked)


def _check_file(file: DataFile, schema: Schema) -> dict[int, Leaf]:
    path = local_path(file.file_path)
    with pq.ParquetFile(path) as parquet:
        rows = parquet.read()
        starts = [_first_byte(parquet.metadata.row_group(i)) for i in range(parquet.num_row_groups)]
    _must(file.record_count, rows.num_rows, f"record count of {path}")
    _must(file.file_size_in_bytes, path.stat().st_size, f"size of {path}")
    if file.split_offsets is not None:
        _must(list(file.split_offsets), starts, f"split offsets of {path}")
    leaves = {leaf.field_id: leaf for leaf in _leaves(rows, schema)}
    for leaf in leaves.values():
        _check_counts(file, leaf)
        _check_bounds(file, leaf)
    return leaves


def _first_byte(group: pq.RowGroupMetaData) -> int:
    column = group.column(0)
    dictionary = column.dictionary_page_offset
    return min(column.data_page_offset, dictionary or column.data_page_offset)


def _must(claimed: object, true: object, what: str) -> None:
    if claimed != true:
        raise NotTrue(f"{what}: metadata has {claimed}, the file {true}")


def _check_counts(file: DataFile, leaf: Leaf) -> None:
    where = f"of field {leaf.field_id} ({leaf.type}) in {file.file_path}"
    nan = sum(isinstance(value, float) and math.isnan(value) for value in leaf.values)
    if (claimed := (file.nan_value_counts or {}).get(leaf.field_id)) is not None:
        _must(claimed, nan, f"NaN count {where}")
    if leaf.repeated:
        return
    if (claimed := (file.null_value_counts or {}).get(leaf.field_id)) is not None:
        _must(claimed, leaf.values.count(None), f"null count {where}")
    if (claimed := (file.value_counts or {}).get(leaf.field_id)) is not None:
        _must(claimed, len(leaf.values), f"value count {where}")


def _check_bounds(file: DataFile, leaf: Leaf) -> None:
    where = f"of field {leaf.field_id} ({leaf.type}) in {file.file_path}"
    keys = [_key(value) for value in leaf.values if value is not None and not _is_nan(value)]
    for bounds, name, inside in (
        (file.lower_bounds, "lower", lambda bound, key: bound <= key),
        (file.upper_bounds, "upper", lambda bound, key: key <= bound),
    ):
        if (stored := (bounds or {}).get(leaf.field_id)) is None:
            continue
        bound = _stored(leaf.type, stored)
        if _is_nan(bound):
            raise NotTrue(f"{name} bound {where} is NaN")
        for key in keys:
            if not inside(_key(bound), key):
                raise NotTrue(f"{name} bound {where} is {bound!r}, and the file has {key!r}")


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _key(value: Value) -> object:
    """In the order of the specification, in which -0.0 comes before 0.0."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


def _stored(of: PrimitiveType, stored: bytes) -> Value:
    """A bound, as the specification serializes single values."""
    match of:
        case BooleanType():
            return stored != b"\x00"
        case IntegerType() | DateType():
            return struct.unpack("<i", stored)[0]
        case LongType() | TimeType() | TimestampType() | TimestamptzType():
            return struct.unpack("<q", stored)[0]
        case FloatType():
            return struct.unpack("<f", stored)[0]
        case DoubleType():
            return struct.unpack("<d", stored)[0]
        case DecimalType():
            return int.from_bytes(stored, "big", signed=True)
        case StringType():
            stored.decode()
            return stored
        case UUIDType() | FixedType() | BinaryType():
            return stored
    raise TypeError(f"no bounds of {of}")


def _leaves(rows: pa.Table, schema: Schema) -> Iterator[Leaf]:
    by_id = {_id_of(field): (rows.column(at), field.type) for at, field in enumerate(rows.schema)}
    for field in schema.fields:
        if field.field_id not in by_id:
            raise NotTrue(f"a rewritten file has no column with the id of {field.name}")
        column, arrow = by_id[field.field_id]
        array = pa.concat_arrays(column.chunks) if column.chunks else pa.nulls(0, column.type)
        yield from _walk(array, arrow, field.field_id, field.field_type, repeated=False)


def _id_of(field: pa.Field) -> int:
    text = (field.metadata or {}).get(FIELD_ID)
    if text is None:
        raise NotTrue(f"a rewritten file has no field id for {field.name}")
    return int(text)


def _walk(
    array: pa.Array, arrow: pa.DataType, number: int, of: IcebergType, *, repeated: bool
) -> Iterator[Leaf]:
    """`arrow` is the type as the file's schema has it: arrays lose field ids on the way."""
    match of:
        case StructType():
            children = {
                _id_of(f): (child, f.type) for f, child in zip(arrow, array.flatten(), strict=True)
            }
            for field in of.fields:
                if field.field_id not in children:
                    raise NotTrue(f"a rewritten file has no field with the id of {field.name}")
                child = children[field.field_id]
                yield from _walk(*child, field.field_id, field.field_type, repeated=repeated)
        case ListType():
            inner = arrow.value_field
            _must(_id_of(inner), of.element_id, "id of an element in a file")
            elements = _inside(array, array.values)
            yield from _walk(elements, inner.type, of.element_id, of.element_type, repeated=True)
        case MapType():
            key, item = arrow.key_field, arrow.item_field
            _must(_id_of(key), of.key_id, "id of a key in a file")
            _must(_id_of(item), of.value_id, "id of a value in a file")
            keys, values = _inside(array, array.keys), _inside(array, array.items)
            yield from _walk(keys, key.type, of.key_id, of.key_type, repeated=True)
            yield from _walk(values, item.type, of.value_id, of.value_type, repeated=True)
        case _:
            values = list(_raw(array))
            yield Leaf(field_id=number, type=of, values=values, repeated=repeated)


def _inside(array: pa.ListArray | pa.MapArray, values: pa.Array) -> pa.Array:
    """The values of all lists; `flatten` does not know extension types. Lists that are null have
    none in what is read from Parquet."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return values.slice(first, last - first)


def _raw(array: pa.Array) -> Iterator[Value | None]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    of = array.type
    if pa.types.is_temporal(of):
        array = array.view(pa.int32() if of.bit_width == 32 else pa.int64())
    elif pa.types.is_string(of) or pa.types.is_large_string(of):
        array = array.cast(pa.large_binary())
    values = array.to_pylist()
    if pa.types.is_decimal(of):
        return (None if v is None else int(v.scaleb(of.scale, _EXACT)) for v in values)
    return iter(values)


def _check_partition(table: Table, file: DataFile, leaves: dict[int, Leaf]) -> None:
    for at, field in enumerate(table.metadata.specs()[file.spec_id].fields):
        leaf = leaves.get(field.source_id)
        if leaf is None:
            continue
        claimed = file.partition[at]
        for value in leaf.values:
            true = transformed(field.transform, leaf.type, value)
            if not _same(claimed, true, leaf.type):
                raise NotTrue(
                    f"partition value {field.name} of {file.file_path} is {claimed!r}, "
                    f"and {field.transform} of {value!r} is {true!r}"
                )


def _same(claimed: object, true: object, of: PrimitiveType) -> bool:
    if isinstance(claimed, str):
        claimed = claimed.encode()
    if claimed is None or true is None:
        return claimed is true
    if hasattr(claimed, "as_tuple"):
        claimed = int(claimed.scaleb(of.scale, _EXACT))
    if hasattr(claimed, "bytes"):
        claimed = claimed.bytes
    if isinstance(claimed, float) and isinstance(true, float) and math.isnan(claimed):
        return math.isnan(true)
    return bool(claimed == true)


def transformed(transform: Transform, of: PrimitiveType, value: Value | None) -> Value | None:
    """The transforms of the specification, on raw values."""
    if value is None or isinstance(transform, VoidTransform):
        return None
    match transform:
        case IdentityTransform():
            return value
        case TruncateTransform():
            return _truncated(of, value, transform.width)
        case BucketTransform():
            return (mmh3.hash(_hashed(of, value)) & 0x7FFFFFFF) % transform.num_buckets
    days = value if isinstance(of, DateType) else value // DAY
    match transform:
        case DayTransform():
            return days
        case HourTransform():
            return value // HOUR
        case YearTransform():
            return _civil(days)[0] - 1970
        case MonthTransform():
            year, month = _civil(days)
            return (year - 1970) * 12 + month - 1
    raise TypeError(f"no transform {transform}")


def _truncated(of: PrimitiveType, value: Value, width: int) -> Value:
    match of:
        case StringType():
            return value.decode()[:width].encode()
        case BinaryType():
            return value[:width]
    return value - value % width


def _hashed(of: PrimitiveType, value: Value) -> bytes:
    match of:
        case (
            IntegerType()
            | LongType()
            | DateType()
            | TimeType()
            | TimestampType()
            | TimestamptzType()
        ):
            return struct.pack("<q", value)
        case DecimalType():
            size = (value if value >= 0 else ~value).bit_length() // 8 + 1
            return value.to_bytes(size, "big", signed=True)
    return bytes(value)


def _civil(days: int) -> tuple[int, int]:
    """Year and month of a day, counted from 1970-01-01 in the Gregorian calendar of all times."""
    era, day = divmod(days + 719468, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    return era * 400 + year + (month >= 10), month + 3 if month < 10 else month - 9
