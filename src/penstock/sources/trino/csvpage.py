"""Rows as CSV: a JSON page of scalar columns is CSV once its brackets are gone, and Arrow reads CSV
without Python.

`[[1,"a",null],[2,"b",true]]` loses `[[` and `]]`, and `],[` becomes a line break. What makes that
exact:

- A line break, a carriage return or `], [` means that the JSON was not written compactly: not ours.
- Only the escapes `\\"`, `\\\\` and `\\/` mean the same in both languages; any other is not ours.
- A string that holds `],[` gets a line break inside its quotes, which makes fewer rows than separators: not ours.
- An unquoted null is null; a quoted "null" and an empty string are values.

Whatever is not ours is left to `jsonpage`, which is slower and right about everything.
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
    newlines_in_values=True,  # cut blocks with an eye on quotes; otherwise a `],[` in a string could split its value
    ignore_empty_lines=False,
)


class CsvReader:
    """Reads pages of these columns; every one of them must be a scalar."""

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
        """The rows, or None when the page is not CSV in disguise."""
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
    """From what the text was parsed as to the column's own type."""
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
