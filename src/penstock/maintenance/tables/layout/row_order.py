"""Parses the `sort_order` option: sort by columns, or along a Z-curve over several columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform

from penstock.kit.errors import InvalidInput
from penstock.maintenance.tables.layout.z_curve import MAX_COLUMNS, can_be_placed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table
    from pyiceberg.table.sorting import SortField

_CURVE = re.compile(r"z_?order\s*\((.*)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A column by its position in the schema, and its direction in DuckDB's syntax."""

    column: int
    way: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrder:
    """Sort by `terms`, or along a Z-curve over the columns of `curve`."""

    terms: tuple[Term, ...] = ()
    curve: tuple[int, ...] = ()
    order_id: int | None = None
    """The id of the table's own sort order, if that is used."""


def read_order(table: Table, schema: pa.Schema, requested: str | None) -> RowOrder | None:
    """Parse `amount desc, id`, `zorder(day, customer)`, or `table` for the table's own order;
    `schema` is that of written files."""
    if requested is None:
        return None
    if requested.strip().lower() == "table":
        return _of_table(table)
    if curve := _CURVE.fullmatch(requested.strip()):
        return RowOrder(curve=_curve(table, schema, curve[1]))
    return RowOrder(terms=tuple(_term(table, piece.strip()) for piece in requested.split(",")))


def _of_table(table: Table) -> RowOrder:
    order = table.sort_order()
    if not order.fields:
        raise _unfit("The table has no sort order.")
    return RowOrder(
        terms=tuple(_field_term(table, field) for field in order.fields), order_id=order.order_id
    )


def _field_term(table: Table, field: SortField) -> Term:
    if not isinstance(field.transform, IdentityTransform):
        raise _unfit(
            f"The table sorts by {field.transform}, which the embedded engine does not support."
        )
    at = _column(table, table.schema().find_column_name(field.source_id) or "")
    down = "DESC" if field.direction is SortDirection.DESC else "ASC"
    nulls = "FIRST" if field.null_order is NullOrder.NULLS_FIRST else "LAST"
    return Term(column=at, way=f"{down} NULLS {nulls}")


def _term(table: Table, piece: str) -> Term:
    name, _, direction = (
        piece.rpartition(" ") if piece.lower().endswith((" asc", " desc")) else (piece, "", "asc")
    )
    return Term(column=_column(table, name.strip()), way=direction.upper())


def _curve(table: Table, schema: pa.Schema, inside: str) -> tuple[int, ...]:
    columns = tuple(_column(table, name.strip()) for name in inside.split(","))
    if not 2 <= len(set(columns)) == len(columns) <= MAX_COLUMNS:
        raise _unfit(f"zorder takes 2 to {MAX_COLUMNS} different columns.")
    for at in columns:
        if not can_be_placed(schema.types[at]):
            raise _unfit(f"zorder: {schema.names[at][:80]!r} is a nested column.")
    return columns


def _column(table: Table, name: str) -> int:
    names = [field.name for field in table.schema().fields]
    if name not in names:
        raise _unfit(f"{name[:80]!r} is not a column, optionally followed by asc or desc.")
    return names.index(name)


def _unfit(why: str) -> InvalidInput:
    return InvalidInput(f"sort_order: {why}", field="sort_order")
