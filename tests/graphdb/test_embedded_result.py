"""Memory that results of the embedded engines hold while they are read."""

from __future__ import annotations

import weakref

import numpy as np
import pyarrow as pa

from penstock.graphdb.embedded.result import EmbeddedResult
from penstock.graphdb.embedded.shapes import Shapes


class LibraryResult:
    """A fake library result of two batches; `owners` references their memory."""

    def __init__(self) -> None:
        values = [np.arange(4), np.arange(4, 8)]
        self.owners = [weakref.ref(value) for value in values]
        self.closed = False
        self._table: pa.Table | None = pa.table(
            {"x": pa.chunked_array([pa.array(value) for value in values])}
        )

    def get_column_names(self) -> list[str]:
        return ["x"]

    def get_column_data_types(self) -> list[str]:
        return ["INT64"]

    def get_num_tuples(self) -> int:
        return 8

    def get_as_arrow(self, size: int, *, fallbackExtensionTypes: bool) -> pa.Table:  # noqa: N803 - the library's word
        assert (size, fallbackExtensionTypes) == (4, True)
        table, self._table = self._table, None
        return table

    def close(self) -> None:
        self.closed = True


def test_a_batch_that_was_taken_is_held_no_longer_and_the_engines_copy_not_at_all() -> None:
    result = LibraryResult()
    batches = EmbeddedResult(result, Shapes({}, lambda _: None), nested_arrow=True).batches(4)
    assert next(batches).column(0).to_pylist() == [0, 1, 2, 3]
    assert result.closed
    second = next(batches)
    assert [owner() is None for owner in result.owners] == [True, False]
    assert second.column(0).to_pylist() == [4, 5, 6, 7]
