"""CSV. Every column's type is declared or text, so no value is guessed and no late block can change a type.

An unquoted empty field is null; a quoted one is an empty string. Quoted fields may hold newlines; one that is never
closed is an error, for the rows behind it would be its text. A byte order mark is passed over, gzip is undone. The
delimiter, if it is not declared, is the sign that cuts the first rows most evenly.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa
from pyarrow import csv as arrow_csv

from penstock.sources import exact
from penstock.sources.errors import SourceQueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.sources.files.config import Csv
    from penstock.sources.files.place import ObjectFile

_SAMPLE = 256 * 1024
_SAMPLED_ROWS = 100
_DELIMITERS = (",", ";", "\t", "|")


def sample(file: ObjectFile, path: str, options: Csv) -> str:
    """The beginning of a file, as text."""
    with _bytes(file, path) as stream:
        decoder = codecs.getincrementaldecoder(options.encoding)(errors="replace")
        return decoder.decode(stream.read(_SAMPLE)).removeprefix("\ufeff")


def delimiter(text: str, options: Csv) -> str:
    return options.delimiter or max(_DELIMITERS, key=lambda sign: _evenness(text, sign, options.quote))


def schema(text: str, options: Csv, sign: str, declared: Mapping[str, pa.DataType], table: str) -> pa.Schema:
    names = next(_rows(text, sign, options.quote), []) if options.header else list(declared)
    if not names:
        raise SourceQueryError(f"The files of {table} have no header, and types.{table} declares no columns.")
    exact.distinct(names)
    if unknown := declared.keys() - set(names):
        raise SourceQueryError(f"types.{table} declares {', '.join(sorted(unknown))}, which the files do not have.")
    return pa.schema([(name, declared.get(name, pa.string())) for name in names])


def batches(
    file: ObjectFile, path: str, options: Csv, sign: str, found: pa.Schema, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with _bytes(file, path) as stream:
        counted = _Counted(stream, options.quote.encode())
        # A reader that is left open keeps a thread of Arrow's on the file, and the process from ending.
        with closing(_reader(pa.PythonFile(counted, mode="r"), options, sign, found, columns)) as reader:
            yield from reader
        if counted.quotes % 2:
            file.seek(0)
            with _bytes(file, path) as again:
                _check_closed(again, path, options, sign)


class _Counted:
    """A stream that counts its quotes as they pass; who closes it leaves the stream open."""

    def __init__(self, stream: pa.NativeFile, quote: bytes) -> None:
        self._stream = stream
        self._quote = quote
        self.quotes = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        piece: bytes = self._stream.read(None if size < 0 else size)
        self.quotes += piece.count(self._quote)
        return piece

    def close(self) -> None:
        self.closed = True


def _check_closed(stream: pa.NativeFile, path: str, options: Csv, sign: str) -> None:
    text = io.TextIOWrapper(stream, options.encoding, newline="")
    if (line := unclosed(text, sign, options.quote)) is not None:
        raise SourceQueryError(
            f"{path} has a quote that is never closed, in the row that begins in line {line}.",
            hint="Close it, or double a quote that is part of a text.",
        )


def unclosed(text: TextIO, sign: str, quote: str) -> int | None:
    """The line in which the row begins whose quote is never closed, and swallows the rows behind it.

    Worth asking where the quotes are odd in number; else one may stand within a field, which is fine.
    """
    rows = csv.reader(text, delimiter=sign, quotechar=quote, strict=True)
    begun = 1
    try:
        for _ in rows:
            begun = rows.line_num + 1
    except csv.Error as e:
        return begun if "unexpected end of data" in str(e) else None
    return None


def _reader(
    stream: pa.NativeFile, options: Csv, sign: str, found: pa.Schema, columns: Sequence[str]
) -> pa.RecordBatchReader:
    try:
        return arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=options.block_bytes,
                encoding=options.encoding,
                column_names=None if options.header else found.names,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=sign, quote_char=options.quote, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=found,
                include_columns=list(columns),
                null_values=list(options.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as e:
        if "Empty CSV file" not in str(e):
            raise
        return pa.RecordBatchReader.from_batches(pa.schema([found.field(name) for name in columns]), [])


def _bytes(file: ObjectFile, path: str) -> pa.NativeFile:
    raw = pa.PythonFile(file, mode="r")
    return pa.CompressedInputStream(raw, "gzip") if path.endswith(".gz") else raw


def _evenness(text: str, sign: str, quote: str) -> tuple[bool, float, int]:
    """How much like a delimiter a sign looks: most rows of one width, and that wide."""
    widths = Counter(len(row) for row in islice(_rows(text, sign, quote), _SAMPLED_ROWS))
    if not widths:
        return False, 0.0, 0
    [(width, times)] = widths.most_common(1)
    return width > 1, times / widths.total(), width


def _rows(text: str, sign: str, quote: str) -> Iterator[list[str]]:
    """Without the last row of a sample, which may be half a row."""
    whole = text if len(text) < _SAMPLE // 4 else text[: text.rfind("\n") + 1] or text
    try:
        yield from (row for row in csv.reader(io.StringIO(whole, newline=""), delimiter=sign, quotechar=quote) if row)
    except csv.Error:
        return
