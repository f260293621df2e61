"""PyIceberg's own file access, with a count of what it opened for reading."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyiceberg.io.pyarrow import PyArrowFileIO

if TYPE_CHECKING:
    from pyiceberg.io.pyarrow import PyArrowFile

READS: Counter[str] = Counter()
"""By ending: `avro` are manifests and their lists, `json` is the table's metadata."""


class CountingFileIO(PyArrowFileIO):
    def new_input(self, location: str) -> PyArrowFile:
        READS[location.rpartition(".")[2]] += 1
        return super().new_input(location)
