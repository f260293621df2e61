"""How a column of a source is carried into a graph: as what it is, or cast to a type that a graph
has."""

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

_AS_IT_IS = (
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
"""The narrowest first."""
_IN_SQL = {"INT64": "BIGINT", "STRING": "VARCHAR", "DOUBLE": "DOUBLE"}
_MOST_DIGITS = 18
_BETWEEN = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    type: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySelection:
    """A table's key as one value: its column, or its columns joined into a text."""

    name: str
    type: str
    columns: tuple[str, ...]
    schema: pa.Schema = field(repr=False)

    @property
    def plain(self) -> tuple[str, ...]:
        """What need not be a property besides."""
        return self.columns if len(self.columns) == 1 else ()

    def over(
        self, table: str, names: Mapping[str, str] | None = None, schema: pa.Schema | None = None
    ) -> exp.Expr:
        """The key out of its own columns, or out of those that another table has in their place."""
        mine, found = names or {}, schema or self.schema
        columns = [mine.get(column, column) for column in self.columns]
        if len(columns) == 1:
            return _as_type(found.field(columns[0]), self.type, table)
        texts = [_cast(exp.column(name, table=table, quoted=True), "STRING") for name in columns]
        pieces: list[exp.Expr] = [texts[0]]
        for text in texts[1:]:
            pieces += [exp.Literal.string(_BETWEEN), text]
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
    fitting = next((each for each in ("INT64", "DATE", "STRING", "UUID") if fits(each, kind)), None)
    assert fitting is None or fitting in KEY_TYPES
    return KeySelection(
        name=name, type=fitting or _key_cast(kind), columns=facts.key, schema=facts.columns
    )


def property_of(column: pa.Field, table: str) -> Carried | None:
    """None for what has parts: which of them are wanted, nobody can guess."""
    kind = column.type
    if types.is_nested(kind):
        return None
    fitting = next((each for each in _AS_IT_IS if fits(each, kind)), None)
    wanted = fitting or ("DOUBLE" if types.is_decimal(kind) else "STRING")
    return Carried(type=wanted, expression=_as_type(column, wanted, table))


def _as_type(column: pa.Field, wanted: str, table: str) -> exp.Expr:
    bare = exp.column(column.name, table=table, quoted=True)
    return bare if fits(wanted, column.type) else _cast(bare, wanted)


def _cast(expression: exp.Expr, wanted: str) -> exp.Expr:
    return exp.cast(expression, _IN_SQL.get(wanted, wanted))


def _key_cast(kind: pa.DataType) -> str:
    whole = types.is_decimal(kind) and kind.scale == 0 and kind.precision <= _MOST_DIGITS
    return "INT64" if whole else "STRING"
