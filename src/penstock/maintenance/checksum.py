"""The content of many rows as one number that does not depend on their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    rows: int = 0
    total: int = 0
    """The sum of a hash of each row, over all its columns."""

    def __add__(self, other: Digest) -> Digest:
        return Digest(rows=self.rows + other.rows, total=self.total + other.total)


class Checksum:
    def __init__(self, columns: Iterable[str]) -> None:
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        self._sql = f"SELECT count(*), coalesce(sum(hash({names})::HUGEINT), 0) FROM batch"
        self._engine = duckdb.connect(":memory:", config={"threads": 1})

    def of(self, batch: pa.Table) -> Digest:
        self._engine.register("batch", batch)
        [(rows, total)] = self._engine.execute(self._sql).fetchall()
        self._engine.unregister("batch")
        return Digest(rows=rows, total=int(total))

    def close(self) -> None:
        self._engine.close()
