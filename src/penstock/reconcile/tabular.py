"""Files that people bring, as one Parquet file of exact types: CSV, Parquet, Excel.

A CSV column is text, for nothing in the file says more; rules read numbers and dates out of text exactly or refuse.
What cannot be meant is refused here, before it becomes a wrong count: a quote that is never closed swallows the rows
after it, a column without a name cannot be asked for.
"""

from __future__ import annotations

import asyncio
import codecs
import gzip
import zipfile
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit.errors import InvalidInput, PayloadTooLarge, PenstockError
from penstock.sources.contract import Limits
from penstock.sources.files.config import Csv
from penstock.sources.files.separated import delimiter, unclosed
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

MAX_UNPACKED = 10 * 1024**3
"""What a compressed file may become: characters of a CSV, bytes of a workbook."""
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
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PIECE = 1024 * 1024
_SAMPLE = 64 * 1024
_EXACT = 2**53
_OTHER_ENCODING = "Is it another encoding? ?encoding=cp1252 says so."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a file is to be read: by its name, and for a CSV in which encoding and with which delimiter."""

    name: str
    encoding: str = "utf-8"
    delimiter: str | None = None
    most: int = MAX_UNPACKED

    @property
    def form(self) -> str:
        form = _FORMS.get(Path(self.name.lower()).suffix)
        if form is None:
            raise InvalidInput(
                f"{self.name[:80]!r} is not a file that can be read.",
                hint="Upload .csv, .tsv, .csv.gz, .parquet or .xlsx.",
            )
        return form

    @property
    def gzipped(self) -> bool:
        return self.name.lower().endswith(".gz")


async def as_parquet(given: Path, reading: Reading, folder: Path) -> Path:
    """The file itself where it is Parquet already, else one written into the folder."""
    form = reading.form
    if not await asyncio.to_thread(lambda: given.stat().st_size):
        raise InvalidInput("The file is empty.", hint="Upload at least a header.")
    if form == "csv":
        return await _from_csv(given, reading, folder)
    if form == "parquet":
        await asyncio.to_thread(_check_parquet, given)
        return given
    await asyncio.to_thread(_from_sheet, given, folder / "rows.parquet", reading.most)
    return folder / "rows.parquet"


async def _from_csv(given: Path, reading: Reading, folder: Path) -> Path:
    encoding = await asyncio.to_thread(_encoding, given, reading)
    _check_delimiter(reading.delimiter)
    await asyncio.to_thread(_check_text, given, reading, encoding)
    (folder / "in").mkdir()
    (folder / "in" / f"rows.csv{'.gz' if reading.gzipped else ''}").hardlink_to(given)
    options = {"encoding": encoding} | ({"delimiter": reading.delimiter} if reading.delimiter else {})
    config: dict[str, object] = {"url": f"file://{folder / 'in'}", "csv": options}
    path = folder / "rows.parquet"
    try:
        async with await asyncio.to_thread(open_source, "files", config, {}) as source:
            plan = await source.plan("SELECT * FROM rows", Limits(max_chunks=1))
            _check_names(plan.schema.names)
            with pq.ParquetWriter(path, plan.schema, compression="zstd") as writer:
                async with aclosing(source.stream(plan.chunks[0])) as batches:
                    async for batch in batches:
                        writer.write_batch(batch)
    except PenstockError as e:
        raise InvalidInput(f"The CSV cannot be read: {e.message.removeprefix('rows.csv: ')}", hint=e.hint) from None
    return path


def _encoding(given: Path, reading: Reading) -> str:
    try:
        known = codecs.lookup(reading.encoding)
        "".encode(reading.encoding)
    except LookupError:
        raise InvalidInput(
            f"There is no encoding {reading.encoding[:40]!r} of text.", hint="Such as utf-8, cp1252, latin-1, utf-16."
        ) from None
    with given.open("rb") as file:
        return "utf-16" if file.read(2) in _UTF16 else known.name


def _check_delimiter(sign: str | None) -> None:
    if sign is not None and (not sign.isascii() or sign.isalnum() or sign in (QUOTE, "\r", "\n", "\0")):
        raise InvalidInput(f"{sign!r} cannot be a delimiter.", hint="Such as , ; | or a tab.")


def _check_text(given: Path, reading: Reading, encoding: str) -> None:
    """Text, not too long, with quotes that are closed."""
    quotes = length = 0
    try:
        with _opened(given, reading, encoding) as file:
            while piece := file.read(_PIECE):
                length += len(piece)
                quotes += piece.count(QUOTE)
                if length > reading.most:
                    raise PayloadTooLarge(
                        f"The file unpacks to more than {reading.most:,} characters.", limit=reading.most
                    )
                if "\0" in piece:
                    raise InvalidInput("This is no CSV: it holds NUL characters.", hint=_OTHER_ENCODING)
        if quotes % 2:
            with _opened(given, reading, encoding) as file:
                _check_closed(file, reading)
    except UnicodeError as e:
        raise InvalidInput(f"The CSV is not {reading.encoding}: {e}.", hint=_OTHER_ENCODING) from None
    except (OSError, EOFError, gzip.BadGzipFile) as e:
        raise InvalidInput(f"The file cannot be unpacked: {e}.", hint="Is it whole, and gzip?") from None


def _opened(given: Path, reading: Reading, encoding: str) -> TextIO:
    if reading.gzipped:
        return gzip.open(given, "rt", encoding=encoding, newline="")
    return given.open(encoding=encoding, newline="")


def _check_closed(file: TextIO, reading: Reading) -> None:
    sign = delimiter(file.read(_SAMPLE), Csv(delimiter=reading.delimiter))
    file.seek(0)
    if (line := unclosed(file, sign, QUOTE)) is not None:
        raise InvalidInput(
            f"The CSV has a quote that is never closed, in the row that begins in line {line}.",
            hint="Close it, or double a quote that is part of a text.",
            line=line,
        )


def _check_names(names: Sequence[str]) -> None:
    if not names or not all(name.strip() for name in names):
        raise InvalidInput("The first row must name every column.", hint="Remove columns that have no name.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"There is more than one column named {twice[0][:80]}.", hint="Rename one of them.")


def _check_parquet(given: Path) -> None:
    try:
        with pq.ParquetFile(given) as file:
            _check_names(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as e:
        raise InvalidInput(f"This is no Parquet file: {str(e)[:200]}") from None


def _from_sheet(given: Path, path: Path, most: int) -> None:
    """The first sheet: a header, then rows; a column of one kind of value has its type, any other is text."""
    from python_calamine import CalamineWorkbook

    _check_unpacked(given, most)
    try:
        rows = CalamineWorkbook.from_path(str(given)).get_sheet_by_index(0).to_python()
    except Exception as e:
        raise InvalidInput(f"The workbook cannot be read ({type(e).__name__}).") from None
    names = [str(cell).strip() for cell in rows[0]] if rows else []
    _check_names(names)
    columns = [_column([row[place] for row in rows[1:]]) for place in range(len(names))]
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path, compression="zstd")


def _check_unpacked(given: Path, most: int) -> None:
    if zipfile.is_zipfile(given):
        with zipfile.ZipFile(given) as book:
            if sum(entry.file_size for entry in book.infolist()) > most:
                raise PayloadTooLarge(f"The workbook unpacks to more than {most:,} bytes.", limit=most)


def _column(cells: list[Any]) -> pa.Array:
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {float} and all(value is None or _is_whole(value) for value in values):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    if len(kinds) == 1:
        return pa.array(values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and _is_whole(value) else str(value)


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= _EXACT
