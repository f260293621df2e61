"""Values of every type, the awkward ones first. All of a case follow from its seed.

They are Python values that Arrow takes for the type: temporal ones are integers, because Python's
own classes end before the types do.
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
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
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

FIRST_DAY, LAST_DAY = -719162, 2932896
"""0001-01-01 and 9999-12-31."""
DAY = 86_400_000_000
_NUMBERS = (0, 1, -1)
_FLOATS = (math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5)
_TEXTS = (
    *(
        "",
        "a",
        "\x00",
        "a\x00b",
        "ends\ud7ff",
        "\ud7ff",
        "\U0010ffff",
        "\uffff",
        "x" * 16 + "\ud7ff",
    ),
    *("y" * 15 + "\U0010ffff", "\U0010ffff" * 17, "tail\x00", " ", "null", "NULL", "%2F", "a/b=c"),
    *("é", "e\u0301", "__HIVE_DEFAULT_PARTITION__", "..", "日本語", "line\nbreak", "a" * 40),
)
_BYTES = (b"", b"\x00", b"\xff", b"\xff" * 20, b"\x00\x01", b"a" * 17, b"\xc3\x28")
BIG_TEXT = "m" * 10_000_000
NULLS = 0.2
_EXACT = Context(prec=80)


class Values:
    """Draws values; a column of one type always has the same few, so that rows repeat."""

    def __init__(self, seed: int, *, big_text: bool = False) -> None:
        self._seed = seed
        self._big_text = big_text

    def rows(
        self, schema: Schema, rows: int | tuple[tuple[object, ...], ...], salt: str
    ) -> pa.Table:
        """So many rows, or these, in the Arrow schema that PyIceberg has for this one."""
        if isinstance(rows, tuple):
            names = [field.name for field in schema.fields]
            return as_table({n: [row[at] for row in rows] for at, n in enumerate(names)}, schema)
        random = Random(f"{self._seed}/{salt}")
        columns = {
            field.name: [self._pick(field, random) for _ in range(rows)] for field in schema.fields
        }
        return as_table(columns, schema)

    def _pick(self, field: NestedField, random: Random) -> object:
        if not field.required and random.random() < NULLS:
            return None
        return random.choice(self.pool(field))

    def pool(self, field: NestedField) -> list[object]:
        if field.name == NUMBER:
            return list(range(10))
        random = Random(f"{self._seed}/{field.field_id}")
        return [self._value(field.field_type, random) for _ in range(random.choice((1, 2, 3, 4)))]

    def _value(self, of: IcebergType, random: Random) -> object:
        match of:
            case StructType():
                return {f.name: self._optional(f.field_type, f.required, random) for f in of.fields}
            case ListType():
                return [
                    self._optional(of.element_type, of.element_required, random)
                    for _ in range(random.choice((0, 1, 3)))
                ]
            case MapType():
                keys = [self._value(of.key_type, random) for _ in range(random.choice((0, 1, 2)))]
                return [
                    (key, self._optional(of.value_type, of.value_required, random))
                    for key in _distinct(keys)
                ]
            case StringType() if self._big_text and random.random() < 0.3:
                return BIG_TEXT
        return primitive(of, random)

    def _optional(self, of: IcebergType, required: bool, random: Random) -> object:
        return None if not required and random.random() < NULLS else self._value(of, random)


NUMBER = "n"
"""A column of small whole numbers that most tables begin with, for deletes and filters."""


def primitive(of: IcebergType, random: Random) -> object:
    return random.choice(_CHOICES[type(of)](of, random))


def _whole(bits: int, random: Random) -> tuple[int, ...]:
    low, high = -(2**bits), 2**bits - 1
    return (*_NUMBERS, low, high, random.randint(low, high))


def _float32(random: Random) -> float:
    [value] = struct.unpack("<f", struct.pack("<f", random.gauss(0, 1e6)))
    return value


def _decimals(of: DecimalType, random: Random) -> tuple[Decimal, ...]:
    most = 10**of.precision - 1
    whole = (*_NUMBERS, most, -most, random.randint(-most, most))
    return tuple(Decimal(number).scaleb(-of.scale, context=_EXACT) for number in whole)


def _moments(_: IcebergType, random: Random) -> tuple[int, ...]:
    ends = (FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)
    return (*_NUMBERS, *ends, random.randrange(-(10**15), 2 * 10**15))


_CHOICES: dict[type[IcebergType], Callable[[IcebergType, Random], Sequence[object]]] = {
    BooleanType: lambda _, random: (True, False),
    IntegerType: lambda _, random: _whole(31, random),
    LongType: lambda _, random: _whole(63, random),
    FloatType: lambda _, random: (*_FLOATS, 1.4e-45, 3.4028234663852886e38, _float32(random)),
    DoubleType: lambda _, random: (*_FLOATS, 5e-324, 1.7976931348623157e308, random.gauss(0, 1e6)),
    DecimalType: _decimals,
    DateType: lambda _, random: (
        *_NUMBERS,
        FIRST_DAY,
        LAST_DAY,
        -141428,
        random.randint(-9999, 30000),
    ),
    TimeType: lambda _, random: (0, 1, DAY - 1, random.randrange(DAY)),
    TimestampType: _moments,
    TimestamptzType: _moments,
    StringType: lambda _, random: _TEXTS,
    BinaryType: lambda _, random: (*_BYTES, random.randbytes(8)),
    UUIDType: lambda _, random: (
        *(bytes(16), b"\xff" * 16, b"\x80" + bytes(15), random.randbytes(16)),
    ),
    FixedType: lambda of, random: (bytes(len(of)), b"\xff" * len(of), random.randbytes(len(of))),
}


def as_table(columns: dict[str, Sequence[object]], schema: Schema) -> pa.Table:
    """Python values as Arrow of the types that PyIceberg writes."""
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    plain = without_extensions(arrow)
    arrays = [pa.array(columns[field.name], field.type) for field in plain]
    return pa.table(arrays, schema=plain).cast(arrow)


def without_extensions(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_storage(field.type)) for field in schema])


def _storage(of: pa.DataType) -> pa.DataType:
    """The type without extensions, which Arrow cannot fill from Python values when nested."""
    if isinstance(of, pa.BaseExtensionType):
        return of.storage_type
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_storage(field.type)) for field in of])
    if pa.types.is_map(of):
        key, item = of.key_field, of.item_field
        return pa.map_(key.with_type(_storage(key.type)), item.with_type(_storage(item.type)))
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        value = of.value_field.with_type(_storage(of.value_type))
        return pa.list_(value) if pa.types.is_list(of) else pa.large_list(value)
    return of


def _distinct(keys: list[object]) -> list[object]:
    """Keys of one map, told apart as readers do, to whom 0.0 and -0.0 may be one."""
    result: dict[str, object] = {}
    for key in keys:
        result.setdefault(repr(0.0 if key == 0.0 else key), key)
    return list(result.values())


def for_spark(table: pa.Table) -> pa.Table:
    """The same rows as Spark takes them: UUIDs as text, everything nullable."""
    return pa.table([_for_spark(_whole_column(c)) for c in table.columns], names=table.column_names)


def _whole_column(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.chunks else pa.nulls(0, column.type)


def _for_spark(array: pa.Array) -> pa.Array:
    of, missing = array.type, array.is_null()
    if isinstance(array, pa.ExtensionArray):
        values = array.storage.to_pylist()
        return pa.array([v if v is None else str(UUID(bytes=v)) for v in values], pa.string())
    if pa.types.is_struct(of):
        children = [_for_spark(child) for child in array.flatten()]
        fields = [pa.field(f.name, c.type) for f, c in zip(of, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=missing)
    if pa.types.is_map(of):
        keys, items = _for_spark(array.keys), _for_spark(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=missing)
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        kind = pa.LargeListArray if pa.types.is_large_list(of) else pa.ListArray
        return kind.from_arrays(array.offsets, _for_spark(array.values), mask=missing)
    return array
