"""How much of some rows one answer shows: its cells become Python values and JSON in the control
plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CELLS = 200_000
MAX_BYTES = 4 * 1024 * 1024


def is_shown_whole(table: pa.Table) -> bool:
    cells: int = table.num_rows * table.num_columns
    size: int = table.nbytes
    return cells <= MAX_CELLS and size <= MAX_BYTES


def check_shown(table: pa.Table) -> None:
    """Refuses rows that are too many or too large for one answer."""
    if not is_shown_whole(table):
        raise InvalidInput(
            f"The first {table.num_rows:,} rows have more than {MAX_CELLS:,} cells or"
            f" {MAX_BYTES // 1024**2} MB.",
            hint="Ask for fewer rows, or leave wide columns out in a query.",
            max_cells=MAX_CELLS,
            max_bytes=MAX_BYTES,
        )


def first_that_fit(table: pa.Table) -> pa.Table:
    """As many of the first rows as one answer shows; of very wide ones none."""
    while table.num_rows and not is_shown_whole(table):
        table = table.slice(0, table.num_rows // 2)
    return table
