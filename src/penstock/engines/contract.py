"""What an engine must do.

An engine sees Parquet files as relations and nothing else: no network, no other file, no setting
changed. Every row of a relation has `_id`, which is its place in the files in their order, so that
the same files give the same ids on every engine and every ordering can end in something unique. The
columns of the files are `f0`, `f1`, … by their places, for names may be anything (see `border`).

All of it blocks and belongs to one thread; `cancel` alone may come from another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

Unit = Literal["us", "ns"]
ROW_BITS = 40
"""A row's `_id` is its file's place in the list, shifted by this, and its place in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    memory_bytes: int = 2 * 1024**3
    threads: int = 2
    spill_bytes: int = 50 * 1000**3
    """Temporary disk; less is used where the disk has less."""


class Words(Protocol):
    """What SQL dialects say in different words. Arguments and results are SQL; null in, null out."""

    def day(self, date: str) -> str:
        """A date as its number of days since 1970."""
        ...

    def date(self, day: str) -> str:
        """The date so many days after the first of 1970."""
        ...

    def date_text(self, date: str) -> str:
        """A date as `2024-01-31`; years outside 0 to 9999 have a sign."""
        ...

    def stamp(self, micros: str) -> str:
        """So many microseconds after the beginning of 1970 as `2024-01-31T12:00:00.000000`; years
        outside 0 to 9999 have a sign."""
        ...

    def ticks(self, moment: str, unit: Unit) -> str:
        """A timestamp as its number of microseconds or nanoseconds since 1970; one with a zone
        in UTC."""
        ...

    def clock_ticks(self, time: str, unit: Unit) -> str:
        """A time of day as its number of microseconds or nanoseconds since midnight."""
        ...

    def hexadecimals(self, data: str) -> str:
        """Bytes as text, two lower-case digits each."""
        ...

    def shortest(self, number: str) -> str:
        """A double as text: the fewest digits that no other double has, without an exponent."""
        ...

    def rounded(self, number: str, decimals: int) -> str:
        """A double as text with so many decimals, rounded half away from zero from its shortest
        digits."""
        ...

    def is_float(self, number: str) -> str:
        """Whether an expression of any type is a float."""
        ...

    def floor_div(self, number: str, by: int) -> str:
        """The whole part of a quotient of integers, rounded down also below zero."""
        ...

    def whole_quotient(self, number: str, by: str) -> str:
        """The whole part of a quotient of decimals without scale, of at most 33 digits and not
        below zero."""
        ...

    def zone_offset(self, zone: str, seconds: str) -> str:
        """By how many seconds a zone's clock is ahead of UTC, at so many seconds since 1970 in
        UTC."""
        ...

    def lower(self, text: str) -> str:
        """In lower case, character by character: a final sigma is a sigma, a dotted capital I is
        an i."""
        ...

    def upper(self, text: str) -> str:
        """In upper case, character by character: ß is ẞ, a ligature stays."""
        ...

    def letters(self, text: str) -> str:
        """The letters, numbers and spaces of a text."""
        ...

    def like(self, text: str, pattern: str) -> str:
        """Whether a text is like a pattern with % and _, before which a backslash takes their
        meaning away; the pattern is plain text, not SQL."""
        ...

    def fail(self, reason: str) -> str:
        """A text that cannot be computed: where a row asks for it the query ends with the reason,
        which must depend on a column."""
        ...

    def replace(self, text: str, pattern: str, to: str) -> str:
        """With every piece like the pattern replaced. The classes of patterns (`\\d`, `\\w`,
        `\\s`) are those of ASCII; the pattern and what replaces it are plain text, not SQL."""
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
        """What to count instead of rows of values, as cheaply as can be: if any value differs it
        may differ, if none does it does not."""
        ...


class Engine(Protocol):
    name: str
    words: Words
    scratch: Path

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def relation(self, name: str, files: Sequence[Path]) -> pa.Schema:
        """Let Parquet files of one schema be read by a name; the schema is that of the files,
        with their names."""
        ...

    def table(self, name: str, sql: str) -> int:
        """Keep what a query gives; how many rows that are."""
        ...

    def load(self, name: str, rows: pa.Table) -> None:
        """Keep rows that were made outside."""
        ...

    def load_file(self, name: str, file: Path) -> None:
        """Keep the rows of a Parquet file in the scratch folder, which may be more than memory
        holds."""
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
