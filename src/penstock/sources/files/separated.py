"""Read CSV files. Every column has a declared type or is text; types are never inferred.

An unquoted empty field is null; a quoted one is an empty string. Quoted fields may contain
newlines. An unclosed quote is an error, because it would swallow the following rows, and so is text
after a closing quote. In a file of one column a blank line is an error, because it may be a record
or not. A byte order mark is skipped, gzip is decompressed. If the delimiter is not declared, the
candidate that splits the first rows most evenly is used.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa
from pyarrow import csv as arrow_csv

from penstock.sources import batch_checks
from penstock.sources.errors import SourceQueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.sources.files.config import Csv
    from penstock.sources.files.place import ObjectFile

_SAMPLE = 256 * 1024
_SAMPLED_ROWS = 100
_DELIMITERS = (",", ";", "\t", "|")
_LARGEST_FIELD = 2**31 - 1


def sample(file: ObjectFile, path: str, options: Csv) -> str:
    """The beginning of a file, decoded."""
    with _bytes(file, path) as stream:
        decoder = codecs.getincrementaldecoder(options.encoding)(errors="replace")
        return decoder.decode(stream.read(_SAMPLE)).removeprefix("\ufeff")


def delimiter(text: str, options: Csv) -> str:
    return options.delimiter or max(
        _DELIMITERS, key=lambda sign: _evenness(text, sign, options.quote)
    )


def schema(
    text: str, options: Csv, sign: str, declared: Mapping[str, pa.DataType], table: str
) -> pa.Schema:
    names = next(_rows(text, sign, options.quote), []) if options.header else list(declared)
    if not names:
        raise SourceQueryError(
            f"The files of {table} have no header, and types.{table} declares no columns."
        )
    batch_checks.distinct(names)
    if unknown := declared.keys() - set(names):
        raise SourceQueryError(
            f"types.{table} declares {', '.join(sorted(unknown))}, which the files do not have."
        )
    return pa.schema([(name, declared.get(name, pa.string())) for name in names])


def batches(
    file: ObjectFile, path: str, options: Csv, sign: str, schema: pa.Schema, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with _bytes(file, path) as stream:
        watcher = _QuoteWatcher(stream, options.quote, sign)
        # An unclosed reader leaves an Arrow thread on the file, which blocks the process's exit.
        with closing(
            _reader(pa.PythonFile(watcher, mode="r"), options, sign, schema, columns)
        ) as reader:
            yield from reader
        if watcher.is_suspicious or len(schema) == 1:
            file.seek(0)
            with _bytes(file, path) as again:
                text = io.TextIOWrapper(again, without_mark(options.encoding), newline="")
                if (wrong := misread(text, sign, options.quote)) is not None:
                    raise SourceQueryError(f"{path} {wrong.what}.", hint=wrong.hint)


class _QuoteWatcher:
    """A stream that inspects the quotes in what is read; closing it leaves the inner stream open.

    `is_suspicious` is false if every opening quote is at the beginning of a field and every closing
    quote at its end: then nothing is misread. That check is cheap; the other cases need a parser.
    """

    def __init__(self, stream: pa.NativeFile, quote: str, sign: str) -> None:
        self._stream = stream
        self._quote = quote.encode()
        self._ends = frozenset(f"{sign}\r\n".encode())
        self._within = False
        self._edges = b"\n"
        """The first and the last byte since the last closing quote."""
        self._misplaced = False
        self._started = False
        self.closed = False

    @property
    def is_suspicious(self) -> bool:
        ends_badly = self._edges != b"" and self._edges[0] not in self._ends
        return self._misplaced or self._within or ends_badly

    def read(self, size: int = -1) -> bytes:
        piece: bytes = self._stream.read(None if size < 0 else size)
        self._inspect(piece if self._started else piece.removeprefix(codecs.BOM_UTF8))
        self._started = True
        return piece

    def _inspect(self, piece: bytes) -> None:
        parts = piece.split(self._quote)
        if not self._within:
            parts[0] = self._edges + parts[0]
        outside = parts[1::2] if self._within else parts[::2]
        self._within ^= len(parts) % 2 == 0
        last = b"" if self._within or not outside else outside.pop()
        self._edges = last[:1] + last[-1:] if len(last) > 1 else last
        ends = self._ends
        parts = [part for part in outside if part]
        self._misplaced |= any(part[0] not in ends or part[-1] not in ends for part in parts)

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """A row that would be misread, and the line in which it begins."""

    what: str
    hint: str
    line: int


def misread(text: TextIO, sign: str, quote: str) -> Misread | None:
    """The first row that would be misread: text after a closing quote, an unclosed quote, which
    swallows the following rows, or a blank line in a file of one column."""
    csv.field_size_limit(_LARGEST_FIELD)
    rows = csv.reader(text, delimiter=sign, quotechar=quote, strict=True)
    begun = 1
    width = 0
    try:
        for row in rows:
            if not row and width == 1:
                return _blank(begun)
            width = width or len(row)
            begun = rows.line_num + 1
    except csv.Error as e:
        return _wrong_quote(str(e), begun)
    return None


def _blank(line: int) -> Misread:
    may_be = "in a file of one column it may be a record without a value, or none"
    return Misread(
        what=f"has a blank line, {line}: {may_be}",
        hint='Write "" for a record without a value, or remove the line.',
        line=line,
    )


def _wrong_quote(why: str, line: int) -> Misread:
    row = f"in the row that begins in line {line}"
    if "unexpected end of data" in why:
        what = f"has a quote that is never closed, {row}"
        return Misread(
            what=what, hint="Close it, or double a quote that is part of a text.", line=line
        )
    if "expected after" in why:
        what = f"has text behind a closing quote, {row}"
        return Misread(
            what=what, hint='Double a quote that is part of a text: "5"" pipe".', line=line
        )
    return Misread(what=f"cannot be read, {row}: {why}", hint="Correct that row.", line=line)


def without_mark(encoding: str) -> str:
    """The encoding, skipping a byte order mark."""
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _reader(
    stream: pa.NativeFile, options: Csv, sign: str, schema: pa.Schema, columns: Sequence[str]
) -> pa.RecordBatchReader:
    try:
        return arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=options.block_bytes,
                encoding=options.encoding,
                column_names=None if options.header else schema.names,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=sign, quote_char=options.quote, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=schema,
                include_columns=list(columns),
                null_values=list(options.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as e:
        if "Empty CSV file" not in str(e):
            raise
        return pa.RecordBatchReader.from_batches(
            pa.schema([schema.field(name) for name in columns]), []
        )


def _bytes(file: ObjectFile, path: str) -> pa.NativeFile:
    raw = pa.PythonFile(file, mode="r")
    return pa.CompressedInputStream(raw, "gzip") if path.endswith(".gz") else raw


def _evenness(text: str, sign: str, quote: str) -> tuple[bool, float, int]:
    """The score of a delimiter: the share of rows with the most common width, then that width."""
    widths = Counter(len(row) for row in islice(_rows(text, sign, quote), _SAMPLED_ROWS))
    if not widths:
        return False, 0.0, 0
    [(width, times)] = widths.most_common(1)
    return width > 1, times / widths.total(), width


def _rows(text: str, sign: str, quote: str) -> Iterator[list[str]]:
    """The rows of a sample, without the last one, which may be truncated."""
    whole = text if len(text) < _SAMPLE // 4 else text[: text.rfind("\n") + 1] or text
    try:
        yield from (
            row
            for row in csv.reader(io.StringIO(whole, newline=""), delimiter=sign, quotechar=quote)
            if row
        )
    except csv.Error:
        return
