"""Types of match_sql expressions, and how engines represent them.

Numbers are exact: integers are BIGINT as far as they fit, all others DECIMAL of a precision that is
known before the run, so no sum or product overflows. Timestamps are ticks since 1970 and times of
day ticks since midnight, as BIGINT: engines differ in their arithmetic on anything else.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.reconcile.matching.amounts import FULL
from penstock.reconcile.matching.column import Kind

if TYPE_CHECKING:
    from penstock.engines.contract import Dialect, Unit
    from penstock.reconcile.matching.column import Column

WHOLE_DIGITS = 18
"""Any integer of this many digits fits a BIGINT."""
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


class Sort(enum.StrEnum):
    NUMBER = "number"
    DOUBLE = "double"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIME = "time"
    BYTES = "bytes"
    NULL = "null"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """A number has `digits` before and `scale` after the point; a `whole` one is a BIGINT. `name`
    is shown in error messages for a type without values here."""

    sort: Sort
    digits: int = 0
    scale: int = 0
    whole: bool = False
    zoned: bool = False
    unit: Unit = "us"
    name: str = ""

    @property
    def sql(self) -> str:
        """The SQL type that represents it in engines."""
        match self.sort:
            case Sort.NUMBER if self.whole:
                return "BIGINT"
            case Sort.NUMBER:
                return f"DECIMAL({max(1, self.digits + self.scale)}, {self.scale})"
            case Sort.TIMESTAMP | Sort.TIME:
                return "BIGINT"
            case Sort.DOUBLE | Sort.BOOLEAN | Sort.DATE:
                return self.sort.value.upper()
        return "VARCHAR"

    def __str__(self) -> str:
        match self.sort:
            case Sort.NUMBER if self.scale == 0 and self.whole:
                return "a whole number"
            case Sort.NUMBER:
                return f"a decimal({self.digits + self.scale}, {self.scale})"
            case Sort.TIMESTAMP:
                return f"a timestamp {'with' if self.zoned else 'without'} a zone"
            case Sort.TEXT | Sort.NULL:
                return self.sort.value
            case Sort.BYTES:
                return "binary data"
            case Sort.TIME:
                return "a time of day"
            case Sort.OTHER:
                return f"a {self.name}"
        return f"a {self.sort.value}"


TEXT = SqlType(sort=Sort.TEXT)
BOOLEAN = SqlType(sort=Sort.BOOLEAN)
DATE = SqlType(sort=Sort.DATE)
DOUBLE = SqlType(sort=Sort.DOUBLE)
NULL = SqlType(sort=Sort.NULL)


def whole(digits: int) -> SqlType:
    return SqlType(sort=Sort.NUMBER, digits=digits, whole=True)


def decimal(digits: int, scale: int) -> SqlType:
    return SqlType(sort=Sort.NUMBER, digits=digits, scale=scale)


def timestamp(unit: Unit, *, zoned: bool) -> SqlType:
    return SqlType(sort=Sort.TIMESTAMP, unit=unit, zoned=zoned)


def type_of(column: Column) -> SqlType:
    """The match_sql type of a source column."""
    match column.kind:
        case Kind.NUMBER if pa.types.is_uint64(column.type):
            return decimal(20, 0)
        case Kind.NUMBER if pa.types.is_integer(column.type):
            return whole(_INTEGER_DIGITS[column.type.bit_width])
        case Kind.NUMBER if column.is_float:
            return DOUBLE
        case Kind.NUMBER if column.is_text:
            return decimal(FULL - min(FULL, column.scale), min(FULL, column.scale))
        case Kind.NUMBER:
            return decimal(column.digits, column.scale)
        case Kind.TEXT:
            return TEXT
        case Kind.DATE:
            return DATE
        case Kind.MOMENT:
            return timestamp(column.unit, zoned=column.zoned)
    return _other_type(column)


def _other_type(column: Column) -> SqlType:
    if pa.types.is_boolean(column.type):
        return BOOLEAN
    if column.is_time:
        return SqlType(sort=Sort.TIME, unit=column.unit)
    if column.is_binary:
        return SqlType(sort=Sort.BYTES)
    if pa.types.is_null(column.type):
        return TEXT
    return SqlType(sort=Sort.OTHER, name=str(column.type))


def carried(column: Column, sql: str, dialect: Dialect) -> str:
    """SQL that casts a column to its match_sql type; `sql` names the column."""
    kind = type_of(column)
    match kind.sort:
        case Sort.NUMBER if column.is_text or not kind.whole:
            return f"CAST({sql} AS {kind.sql})"
        case Sort.NUMBER:
            return sql if pa.types.is_int64(column.type) else f"CAST({sql} AS BIGINT)"
        case Sort.DOUBLE:
            return one_zero(sql if pa.types.is_float64(column.type) else f"CAST({sql} AS DOUBLE)")
        case Sort.TIMESTAMP:
            return dialect.ticks(sql, column.unit)
        case Sort.TIME:
            return dialect.clock_ticks(sql, column.unit)
        case Sort.DATE:
            return sql if pa.types.is_date32(column.type) else f"CAST({sql} AS DATE)"
        case Sort.TEXT if pa.types.is_null(column.type):
            return f"CAST({sql} AS VARCHAR)"
    return sql


def one_zero(double: str) -> str:
    """A double with a single zero and a single NaN; engines order and join the others
    differently."""
    nan = "CAST('NaN' AS DOUBLE)"
    return f"CASE WHEN isnan({double}) THEN {nan} ELSE {double} + CAST('0' AS DOUBLE) END"
