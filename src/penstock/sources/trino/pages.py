"""Decode JSON pages to Arrow: with `csvpage` where it is exact, otherwise with `jsonpage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.errors import SourceError
from penstock.sources.trino import jsonpage, types
from penstock.sources.trino.csvpage import CsvReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


class PageDecoder:
    """Decodes `[[…],[…]]` to record batches of one schema; thread-safe."""

    def __init__(self, columns: Sequence[types.Column]) -> None:
        self.schema = types.schema(columns)
        self._columns = columns
        self._csv = None if any(column.type.nested for column in columns) else CsvReader(columns)

    def decode(self, page: bytes, *, rows: int | None = None) -> pa.RecordBatch:
        """The rows of the page; `rows` is the expected count, if the server announced one."""
        batch = self._csv.read(page) if self._csv is not None else None
        if batch is None:
            batch = jsonpage.read(page, self._columns)
        if rows is not None and batch.num_rows != rows:
            raise SourceError(f"Trino announced {rows} rows and sent {batch.num_rows}.")
        return batch

    def empty(self) -> pa.RecordBatch:
        return jsonpage.read(b"[]", self._columns)
