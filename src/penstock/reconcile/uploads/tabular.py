"""Converts uploaded CSV, Parquet and Excel files to one Parquet file of exact types.

This runs in the process that `parsing` starts for one file, within its limits.

A CSV column is text, because the file does not declare more; rules parse numbers and dates from
text exactly or refuse. Likely mistakes are refused here, before they become a wrong count: an
unclosed quote swallows the rows after it, and a column without a name cannot be referenced.
"""

from __future__ import annotations

import asyncio
import codecs
import gzip
import io
import zlib
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit.errors import InvalidInput, PayloadTooLarge, PenstockError
from penstock.reconcile.uploads import workbooks
from penstock.reconcile.uploads.parsing.limits import TableLimits
from penstock.reconcile.uploads.parsing.row_groups import RowGroupWriter, rewrite
from penstock.sources.contract import Limits
from penstock.sources.files.config import Csv
from penstock.sources.files.separated import delimiter, misread, without_mark
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

ROWS_FILE = "rows.parquet"
QUOTE = '"'
_FORMS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".gz": "csv",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".xls": "xlsx",
}
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""What the first bytes of a file say of its encoding. Longer marks are before those that they begin
with."""
_NO_ENCODINGS = frozenset({"idna", "punycode", "undefined", "raw-unicode-escape", "unicode-escape"})
"""Python codecs for names and literals, not for files."""
_PIECE = 1024 * 1024
_SAMPLE = 64 * 1024
_OTHER_ENCODING = "Is it another encoding? ?encoding=cp1252 says so."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a file: its name, and for a CSV its encoding and delimiter."""

    name: str
    encoding: str = "utf-8"
    delimiter: str | None = None
    limits: TableLimits = field(default_factory=TableLimits)

    @property
    def form(self) -> str:
        form = _FORMS.get(Path(self.name.lower()).suffix)
        if form is None:
            raise InvalidInput(
                f"{self.name[:80]!r} is not a file that can be read.",
                hint="Upload .csv, .tsv, .csv.gz, .parquet or .xlsx.",
            )
        return form

    def check(self) -> None:
        """Checks that do not need the content of the file."""
        if self.form == "csv":
            _check_delimiter(self.delimiter)
            text_encoding(self.encoding)

    @property
    def gzipped(self) -> bool:
        return self.name.lower().endswith(".gz")


async def as_parquet(source: Path, reading: Reading, folder: Path) -> Path:
    """Write the rows of the uploaded file to a new Parquet file in the folder."""
    form, path = reading.form, folder / ROWS_FILE
    if not await asyncio.to_thread(lambda: source.stat().st_size):
        raise InvalidInput("The file is empty.", hint="Upload at least a header.")
    if form == "csv":
        return await _from_csv(source, reading, folder)
    if form == "parquet":
        await asyncio.to_thread(_check_parquet, source)
        await asyncio.to_thread(rewrite, source, path, reading.limits)
    else:
        await asyncio.to_thread(_from_sheet, source, path, reading.limits)
    return path


async def _from_csv(upload: Path, reading: Reading, folder: Path) -> Path:
    _check_delimiter(reading.delimiter)
    encoding = await asyncio.to_thread(_encoding, upload, reading)
    sign = await asyncio.to_thread(_checked_text, upload, reading, encoding)
    (folder / "in").mkdir()
    (folder / "in" / f"rows.csv{'.gz' if reading.gzipped else ''}").hardlink_to(upload)
    options = {"encoding": encoding, "delimiter": sign}
    config: dict[str, object] = {"url": f"file://{folder / 'in'}", "csv": options}
    path = folder / ROWS_FILE
    try:
        async with await asyncio.to_thread(open_source, "files", config, {}) as source:
            plan = await source.plan("SELECT * FROM rows", Limits(max_chunks=1))
            _check_names(plan.schema.names)
            with RowGroupWriter(path, plan.schema, reading.limits) as writer:
                async with aclosing(source.stream(plan.chunks[0])) as batches:
                    async for batch in batches:
                        writer.write(batch)
                writer.finish()
    except PayloadTooLarge:
        raise
    except PenstockError as e:
        raise InvalidInput(
            f"The CSV cannot be read: {e.message.removeprefix('rows.csv: ')}", hint=e.hint
        ) from None
    return path


def text_encoding(name: str) -> codecs.CodecInfo:
    """The codec of that name, if it is a text encoding that files use."""
    try:
        codec = codecs.lookup(name)
        if codec.name in _NO_ENCODINGS or "a,b\n".encode(name).decode(name) != "a,b\n":
            raise LookupError
    except (LookupError, ValueError):
        raise InvalidInput(
            f"There is no encoding {name[:40]!r} of text.",
            hint="Such as utf-8, cp1252, latin-1, utf-16.",
        ) from None
    return codec


def _encoding(source: Path, reading: Reading) -> str:
    """The encoding of the byte order mark, if there is one; otherwise the caller's."""
    named = text_encoding(reading.encoding)
    with _unpacking(), _bytes(source, reading) as file:
        first = file.read(max(map(len, _MARKS)))
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), named.name)


@contextmanager
def _unpacking() -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as e:
        raise InvalidInput(
            f"The file cannot be unpacked: {e}.", hint="Is it whole, and gzip?"
        ) from None


def _check_delimiter(sign: str | None) -> None:
    if sign and (
        len(sign) > 1 or not sign.isascii() or sign.isalnum() or sign in (QUOTE, "\r", "\n", "\0")
    ):
        raise InvalidInput(f"{sign!r} cannot be a delimiter.", hint="Such as , ; | or a tab.")


def _checked_text(source: Path, reading: Reading, encoding: str) -> str:
    """The delimiter of a file that is valid text, within limits, and has no row that would be
    misread."""
    quotes = length = 0
    packed = source.stat().st_size
    sign = None
    try:
        with _unpacking(), _opened(source, reading, encoding) as file:
            while piece := file.read(_PIECE):
                sign = sign or delimiter(piece[:_SAMPLE], Csv(delimiter=reading.delimiter))
                length += len(piece)
                quotes += piece.count(QUOTE)
                reading.limits.check_unpacked(length, packed, "file", "characters")
                if "\0" in piece:
                    raise InvalidInput(
                        "This is not a CSV file: it contains NUL characters.", hint=_OTHER_ENCODING
                    )
        sign = sign or ","
        with _opened(source, reading, encoding) as file:
            wrong = misread(file, sign, QUOTE) if quotes or _has_one_column(file, sign) else None
    except UnicodeError as e:
        marked = encoding != codecs.lookup(reading.encoding).name
        why = f"begins with the mark of {encoding}, but is not" if marked else "is not"
        raise InvalidInput(f"The CSV {why} {encoding}: {e}.", hint=_OTHER_ENCODING) from None
    if wrong is not None:
        raise InvalidInput(f"The CSV {wrong.what}.", hint=wrong.hint, line=wrong.line)
    return sign


def _has_one_column(file: TextIO, sign: str) -> bool:
    """For a file without quotes; rewinds it afterwards."""
    header = next((line for line in file if line.strip("\r\n")), "")
    file.seek(0)
    return sign not in header


def _bytes(source: Path, reading: Reading) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(source, "rb") if reading.gzipped else source.open("rb")


def _opened(source: Path, reading: Reading, encoding: str) -> TextIO:
    return io.TextIOWrapper(_bytes(source, reading), encoding=without_mark(encoding), newline="")


def _check_names(names: Sequence[str]) -> None:
    if not names or not all(name.strip() for name in names):
        raise InvalidInput(
            "The first row must name every column.", hint="Remove columns that have no name."
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(
            f"There is more than one column named {twice[0][:80]}.", hint="Rename one of them."
        )


def _check_parquet(source: Path) -> None:
    try:
        with pq.ParquetFile(source) as file:
            _check_names(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as e:
        raise InvalidInput(f"This is not a Parquet file: {str(e)[:200]}") from None


def _from_sheet(source: Path, path: Path, limits: TableLimits) -> None:
    names, columns = workbooks.read(source, limits)
    _check_names(names)
    table = pa.table(dict(zip(names, columns, strict=True)))
    with RowGroupWriter(path, table.schema, limits) as writer:
        for batch in table.to_batches():
            writer.write(batch)
        writer.finish()
