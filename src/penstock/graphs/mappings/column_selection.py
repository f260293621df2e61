"""SQL expressions for the columns of a proposed mapping: as they are, or cast to a graph type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from penstock.graphs.mappings.columns import fits
from penstock.graphs.mappings.rules import KEY_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.graphs.mappings.catalog import TableFacts

_NATIVE_TYPES = (
    "BOOL",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
    "STRING",
    "UUID",
    "BLOB",
)
"""Narrowest first."""
_SQL_TYPES = {"INT64": "BIGINT", "STRING": "VARCHAR", "DOUBLE": "DOUBLE"}
_MAX_DIGITS = 18
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertySelection:
    type: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySelection:
    """A table's key as one value: its column, or its columns concatenated to a string."""

    name: str
    type: str
    columns: tuple[str, ...]
    schema: pa.Schema = field(repr=False)

    @property
    def plain(self) -> tuple[str, ...]:
        """Columns that need no property, because the key is the column itself."""
        return self.columns if len(self.columns) == 1 else ()

    def over(
        self, table: str, names: Mapping[str, str] | None = None, schema: pa.Schema | None = None
    ) -> exp.Expr:
        """The key from its own columns, or from the columns of another table that refer to them."""
        mine, columns_schema = names or {}, schema or self.schema
        columns = [mine.get(column, column) for column in self.columns]
        if len(columns) == 1:
            return _as_type(columns_schema.field(columns[0]), self.type, table)
        texts = [_cast(exp.column(name, table=table, quoted=True), "STRING") for name in columns]
        pieces: list[exp.Expr] = [texts[0]]
        for text in texts[1:]:
            pieces += [exp.Literal.string(_SEPARATOR), text]
        return exp.func("CONCAT", *pieces)


def key_of(facts: TableFacts) -> KeySelection:
    if len(facts.key) > 1:
        return KeySelection(
            name="_".join((*facts.key, "key")),
            type="STRING",
            columns=facts.key,
            schema=facts.columns,
        )
    [name] = facts.key
    kind = facts.columns.field(name).type
    fitting = next(
        (type_name for type_name in ("INT64", "DATE", "STRING", "UUID") if fits(type_name, kind)),
        None,
    )
    assert fitting is None or fitting in KEY_TYPES
    return KeySelection(
        name=name, type=fitting or _key_cast(kind), columns=facts.key, schema=facts.columns
    )


def property_of(column: pa.Field, table: str) -> PropertySelection | None:
    """None for nested types: which of their fields to use cannot be guessed."""
    kind = column.type
    if types.is_nested(kind):
        return None
    fitting = next((candidate for candidate in _NATIVE_TYPES if fits(candidate, kind)), None)
    type_name = fitting or ("DOUBLE" if types.is_decimal(kind) else "STRING")
    return PropertySelection(type=type_name, expression=_as_type(column, type_name, table))


def _as_type(column: pa.Field, type_name: str, table: str) -> exp.Expr:
    bare = exp.column(column.name, table=table, quoted=True)
    return bare if fits(type_name, column.type) else _cast(bare, type_name)


def _cast(expression: exp.Expr, type_name: str) -> exp.Expr:
    return exp.cast(expression, _SQL_TYPES.get(type_name, type_name))


def _key_cast(kind: pa.DataType) -> str:
    whole = types.is_decimal(kind) and kind.scale == 0 and kind.precision <= _MAX_DIGITS
    return "INT64" if whole else "STRING"
