"""What an engine must do.

An engine sees Parquet files as relations and nothing else: no network, no other file, no setting changed. Every row of
a relation has `_id`, which is its place in the files in their order, so that the same files give the same ids on every
engine and every ordering can end in something unique.

All of it blocks and belongs to one thread; `cancel` alone may come from another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

ROW_BITS = 40
"""A row's `_id` is its file's place in the list, shifted by this, and its place in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    memory_bytes: int = 2 * 1024**3
    threads: int = 2


class Words(Protocol):
    """What SQL dialects say in different words. Arguments and results are SQL; null in, null out."""

    def day(self, value: str) -> str:
        """A date, moment or ISO text as its number of days since 1970."""
        ...

    def micros(self, value: str) -> str:
        """A moment as its number of microseconds since 1970, in UTC."""
        ...

    def matches(self, text: str, pattern: str) -> str:
        """Whether a text has a piece like the pattern; the pattern is plain text, not SQL."""
        ...

    def edits(self, a: str, b: str) -> str:
        """The edit distance in characters."""
        ...

    def shared(self, a: str, b: str) -> str:
        """How many words two texts have in common, each counted once."""
        ...

    def words(self, a: str) -> str:
        """How many different words a text has."""
        ...

    def marks(self, values: Sequence[str]) -> str:
        """What to count instead of rows of values, as cheaply as can be: if any value differs it may differ, if none
        does it does not."""
        ...


class Engine(Protocol):
    name: str
    words: Words

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """Let Parquet files of one schema be read by a name; the schema is that of the files, without `_id`."""
        ...

    def table(self, name: str, sql: str) -> int:
        """Keep what a query gives; how many rows that are."""
        ...

    def load(self, name: str, rows: pa.Table) -> None:
        """Keep rows that were made outside."""
        ...

    def drop(self, name: str) -> None: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """A short answer."""
        ...

    def stream(self, sql: str) -> pa.RecordBatchReader:
        """A long one, with plain types: no dictionaries, no views."""
        ...

    def cancel(self) -> None:
        """Stop what runs; it ends with an error."""
        ...
