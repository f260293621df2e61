"""The contract that every SQL engine implements.

An engine reads Parquet files as relations and nothing else: no network, no other file, no setting
changes. Every row of a relation has `_id`, its position in the files in their order, so the same
files give the same ids on every engine and every ordering can end in a unique column. The columns
of the files are `f0`, `f1`, … by position, because file columns may have any name (see
`column_names`).

All methods block and belong to one thread; only `cancel` may be called from another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

Unit = Literal["us", "ns"]
Row: TypeAlias = tuple[Any, ...]
"""A row of a short result, in Python's values."""
ROW_BITS = 40
"""A row's `_id` is its file's position, shifted by this, plus its position in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    memory_bytes: int = 2 * 1024**3
    threads: int = 2
    spill_bytes: int = 50 * 1000**3
    """Temporary disk space; less if the disk has less."""


class Dialect(Protocol):
    """Expressions that SQL dialects write differently. Arguments and results are SQL; null in, null
    out."""

    def day(self, date: str) -> str:
        """A date as its number of days since 1970-01-01."""
        ...

    def date(self, day: str) -> str:
        """The date this many days after 1970-01-01."""
        ...

    def date_text(self, date: str) -> str:
        """A date as `2024-01-31`; years outside 0 to 9999 have a sign."""
        ...

    def stamp(self, micros: str) -> str:
        """Microseconds since 1970 as `2024-01-31T12:00:00.000000`; years outside 0 to 9999 have a
        sign."""
        ...

    def ticks(self, moment: str, unit: Unit) -> str:
        """A timestamp as microseconds or nanoseconds since 1970; one with a zone in UTC."""
        ...

    def clock_ticks(self, time: str, unit: Unit) -> str:
        """A time of day as microseconds or nanoseconds since midnight."""
        ...

    def hexadecimals(self, data: str) -> str:
        """Bytes as text, two lower-case hexadecimal digits each."""
        ...

    def shortest(self, number: str) -> str:
        """A double as text: its shortest round-trip digits, without an exponent."""
        ...

    def rounded(self, number: str, decimals: int) -> str:
        """A double as text with this many decimals, rounded half away from zero from its shortest
        digits."""
        ...

    def is_float(self, number: str) -> str:
        """Whether an expression of any type is a floating-point number."""
        ...

    def floor_div(self, number: str, by: int) -> str:
        """The quotient of integers, rounded down also for negative numbers."""
        ...

    def whole_quotient(self, number: str, by: str) -> str:
        """The integer part of a quotient of non-negative decimals without scale, of at most 33
        digits."""
        ...

    def zone_offset(self, zone: str, seconds: str) -> str:
        """The UTC offset of a zone in seconds, at this number of seconds since 1970 in UTC."""
        ...

    def lower(self, text: str) -> str:
        """Lower case, character by character: a final sigma is a sigma, a dotted capital I is an
        i."""
        ...

    def upper(self, text: str) -> str:
        """Upper case, character by character: ß becomes ẞ, a ligature stays."""
        ...

    def letters(self, text: str) -> str:
        """The letters, numbers and spaces of a text."""
        ...

    def like(self, text: str, pattern: str) -> str:
        """Whether a text matches a LIKE pattern with % and _, escaped by a backslash; the pattern
        is plain text, not SQL."""
        ...

    def fail(self, reason: str) -> str:
        """A text expression that fails the query with this reason on every row that evaluates it;
        the reason must depend on a column."""
        ...

    def replace(self, text: str, pattern: str, to: str) -> str:
        """With every piece like the pattern replaced. The classes of patterns (`\\d`, `\\w`,
        `\\s`) are those of ASCII; the pattern and what replaces it are plain text, not SQL."""
        ...

    def matches(self, text: str, pattern: str) -> str:
        """Whether a text contains a match of the pattern; the pattern is plain text, not SQL."""
        ...

    def edits(self, a: str, b: str) -> str:
        """The Levenshtein distance in characters."""
        ...

    def shared(self, a: str, b: str) -> str:
        """The number of distinct words that two texts share."""
        ...

    def words(self, a: str) -> str:
        """The number of distinct words in a text."""
        ...

    def marks(self, values: Sequence[str]) -> str:
        """A cheap expression to count in place of the values: equal values give equal marks."""
        ...


class Engine(Protocol):
    name: str
    dialect: Dialect
    scratch: Path

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """Register Parquet files of one schema as a relation; returns their schema with the file's
        names."""
        ...

    def table(self, name: str, sql: str) -> int:
        """Create a table from a query; returns its number of rows."""
        ...

    def load(self, name: str, rows: pa.Table) -> None:
        """Create a table from Arrow rows."""
        ...

    def load_file(self, name: str, file: Path) -> None:
        """Create a table from a Parquet file in the scratch folder, which may be larger than
        memory."""
        ...

    def drop(self, name: str) -> None: ...

    def rows(self, sql: str) -> list[Row]:
        """All rows of a short result."""
        ...

    def stream(self, sql: str) -> pa.RecordBatchReader:
        """A long result as a stream, with plain types: no dictionaries, no views."""
        ...

    def cancel(self) -> None:
        """Cancel the running query; it ends with an error."""
        ...
