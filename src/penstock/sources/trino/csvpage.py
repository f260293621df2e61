"""Parse a JSON page of scalar columns as CSV: without its brackets it is CSV, which Arrow reads
without Python.

`[[1,"a",null],[2,"b",true]]` loses `[[` and `]]`, and `],[` becomes a line break. These checks make
that exact:

- A page with a line break, a carriage return or `], [` is not compact JSON: rejected.
- Only the escapes `\\"`, `\\\\` and `\\/` mean the same in JSON and CSV; any other is rejected.
- A string that contains `],[` gets a line break inside its quotes, so there are fewer rows than
  separators: rejected.
- An unquoted null is null; a quoted "null" and an empty string are values.

A rejected page is read by `jsonpage`, which is slower and handles every page.
"""

from __future__ import annotations

from binascii import a2b_base64
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

from penstock.sources.trino import types

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARSE = csv.ParseOptions(
    delimiter=",",
    quote_char='"',
    double_quote=False,
    escape_char="\\",
    # Split blocks outside of quotes only; otherwise a `],[` in a string could split its value.
    newlines_in_values=True,
    ignore_empty_lines=False,
)


class CsvReader:
    """Reads pages of the given columns, which must all be scalars."""

    def __init__(self, columns: Sequence[types.Column]) -> None:
        self._schema = types.schema(columns)
        self._names = [str(number) for number in range(len(columns))]
        self._convert = csv.ConvertOptions(
            column_types={
                n: types.read_type(c.arrow) for n, c in zip(self._names, columns, strict=True)
            },
            null_values=["null"],
            true_values=["true"],
            false_values=["false"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def read(self, page: bytes) -> pa.RecordBatch | None:
        """The rows, or None if the page cannot be read as CSV."""
        if not _looks_like_csv(page):
            return None
        lines = page.replace(b"],[", b"\n")
        separators = (len(page) - len(lines)) // 2
        if not separators and b"], [" in page:
            return None
        try:
            table = csv.read_csv(
                pa.BufferReader(pa.py_buffer(lines).slice(2, len(lines) - 4)),
                read_options=csv.ReadOptions(
                    column_names=self._names,
                    use_threads=False,
                    block_size=max(len(lines) + 1, 4096),
                ),
                parse_options=_PARSE,
                convert_options=self._convert,
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != separators + 1:
            return None
        return self._batch(table)

    def _batch(self, table: pa.Table) -> pa.RecordBatch:
        parsed = (_one_array(column) for column in table.columns)
        return pa.RecordBatch.from_arrays(
            [finish(array, field.type) for array, field in zip(parsed, self._schema, strict=True)],
            schema=self._schema,
        )


def finish(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Convert the parsed array to the column's type."""
    if pa.types.is_binary(arrow):
        return pa.array(
            [None if text is None else a2b_base64(text) for text in array.to_pylist()], arrow
        )
    return array if array.type == arrow else array.view(arrow)


def _looks_like_csv(page: bytes) -> bool:
    return (
        page.startswith(b"[[")
        and page.endswith(b"]]")
        and b"\n" not in page
        and b"\r" not in page
        and _escapes_are_shared(page)
    )


def _escapes_are_shared(page: bytes) -> bool:
    if b"\\" not in page:
        return True
    single = page.replace(b"\\\\", b"")
    return single.count(b"\\") == single.count(b'\\"') + single.count(b"\\/")


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
