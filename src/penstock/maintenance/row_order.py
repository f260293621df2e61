"""In which order the rows of a group are written: by columns, or along a Z-curve over several of them.

DuckDB sorts and spills what does not fit, so a group takes as much memory as its limit whatever its size.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform

from penstock.kit.errors import InvalidInput
from penstock.maintenance.z_curve import MAX_COLUMNS, ZCurve, can_be_placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table
    from pyiceberg.table.sorting import SortField

SORT_MEMORY = "160MB"
BATCH_ROWS = 20_000
PLACE = "penstock place"
_CURVE = re.compile(r"z_?order\s*\((.*)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrder:
    terms: str = ""
    """As DuckDB is told."""
    curve: tuple[int, ...] = ()
    """The columns that a Z-curve goes through, by where they are in the schema."""
    order_id: int | None = None
    """The table's own sort order, when it is that one."""


def read_order(table: Table, schema: pa.Schema, given: str | None) -> RowOrder | None:
    """`amount desc, id`, `zorder(day, customer)`, or `table` for its own; `schema` is how files name the columns."""
    if given is None:
        return None
    if given.strip().lower() == "table":
        return _of_table(table, schema)
    if curve := _CURVE.fullmatch(given.strip()):
        return RowOrder(curve=_curve(table, schema, curve[1]))
    return RowOrder(terms=", ".join(_term(table, schema, piece.strip()) for piece in given.split(",")))


def _of_table(table: Table, schema: pa.Schema) -> RowOrder:
    order = table.sort_order()
    if not order.fields:
        raise _unfit("The table has no sort order of its own.")
    return RowOrder(terms=", ".join(_field_term(table, schema, f) for f in order.fields), order_id=order.order_id)


def _field_term(table: Table, schema: pa.Schema, field: SortField) -> str:
    if not isinstance(field.transform, IdentityTransform):
        raise _unfit(f"The table sorts by {field.transform}, which the embedded engine does not.")
    at = _column(table, table.schema().find_column_name(field.source_id) or "")
    down = " DESC" if field.direction is SortDirection.DESC else ""
    nulls = "FIRST" if field.null_order is NullOrder.NULLS_FIRST else "LAST"
    return f"{_quoted(schema.names[at])}{down} NULLS {nulls}"


def _term(table: Table, schema: pa.Schema, piece: str) -> str:
    name, _, direction = piece.rpartition(" ") if piece.lower().endswith((" asc", " desc")) else (piece, "", "asc")
    return f"{_quoted(schema.names[_column(table, name.strip())])} {direction.upper()}"


def _curve(table: Table, schema: pa.Schema, inside: str) -> tuple[int, ...]:
    found = tuple(_column(table, name.strip()) for name in inside.split(","))
    if not 2 <= len(set(found)) == len(found) <= MAX_COLUMNS:
        raise _unfit(f"zorder takes 2 to {MAX_COLUMNS} different columns.")
    for at in found:
        if not can_be_placed(schema.types[at]):
            raise _unfit(f"zorder: {schema.names[at][:80]!r} is a nested column.")
    return found


def _column(table: Table, name: str) -> int:
    names = [field.name for field in table.schema().fields]
    if name not in names:
        raise _unfit(f"{name[:80]!r} is not a column, with asc or desc after it or nothing.")
    return names.index(name)


def _unfit(why: str) -> InvalidInput:
    return InvalidInput(f"sort_order: {why}", field="sort_order")


def in_order(batches: Iterator[pa.RecordBatch], schema: pa.Schema, terms: str) -> Iterator[pa.RecordBatch]:
    with _engine() as engine:
        engine.register("rows", pa.RecordBatchReader.from_batches(schema, batches))
        for batch in engine.sql(f"SELECT * FROM rows ORDER BY {terms}").to_arrow_reader(BATCH_ROWS):
            yield batch.cast(schema)


def along_curve(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, columns: tuple[int, ...], curve: ZCurve
) -> Iterator[pa.RecordBatch]:
    wide = schema.append(pa.field(PLACE, pa.uint64()))
    placed = (
        pa.RecordBatch.from_arrays([*batch.columns, curve.places([batch.column(at) for at in columns])], schema=wide)
        for batch in batches
    )
    for batch in in_order(placed, wide, _quoted(PLACE)):
        yield pa.RecordBatch.from_arrays(batch.columns[:-1], schema=schema)


@contextmanager
def _engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-sort-") as folder,
        duckdb.connect(config={"memory_limit": SORT_MEMORY, "temp_directory": folder, "threads": 1}) as engine,
    ):
        yield engine


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
