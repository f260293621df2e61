"""The first sheet of an Excel workbook (.xlsx) as a table: a header, then rows.

A column with values of one kind has its type, any other is text. Error cells, and formulas that
were never calculated, are refused: the reader would treat them as empty.
"""

from __future__ import annotations

import html
import re
import zipfile
import zlib
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.kit.errors import InvalidInput, PayloadTooLarge
from penstock.reconcile.uploads.parsing.archive import check_archive
from penstock.reconcile.uploads.parsing.limits import MAX_SHEET_ROW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from penstock.reconcile.uploads.parsing.limits import TableLimits

_WORKBOOK, _RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_PIECE = 1024 * 1024
_EXACT = 2**53
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s([^>]*)>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s([^>]*)>")
_ROW_END = re.compile(rb"</(?:\w+:)?row\s*>")
_ERROR = re.compile(
    rb"<(?:\w+:)?c\s(?=[^>]*\bt\s*=\s*[\"']e[\"'])(?P<cell>[^>]*)>(?P<inner>.*?)</(?:\w+:)?c>",
    re.DOTALL,
)
_FORMULA = re.compile(
    rb"<(?:\w+:)?c\b(?P<cell>[^>]*)>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_PLACE = re.compile(rb"\br\s*=\s*[\"']([A-Z]+[0-9]+)[\"']")
_TEXT_TYPE = re.compile(rb"\bt\s*=\s*[\"']str[\"']")
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\b[^>]*?\bref\s*=\s*[\"']([^\"']{1,60})[\"']")
_REFERENCE = re.compile(rb"([A-Za-z]{1,9})([0-9]{1,18})")
_ROW = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_ROW_NUMBER = re.compile(rb"\br\s*=\s*[\"']([0-9]{1,18})[\"']")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
_CELL_PLACE = re.compile(rb"<(?:\w+:)?c\b[^>]*?\br\s*=\s*[\"']([A-Za-z]{1,9})([0-9]{1,18})[\"']")
_UNREADABLE = (
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    StopIteration,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]*)<")


def read(file: Path, limits: TableLimits) -> tuple[list[str], list[pa.Array]]:
    """The names in the first row, and the values of each column."""
    from python_calamine import CalamineWorkbook

    _check(file, limits)
    try:
        rows = CalamineWorkbook.from_path(str(file)).get_sheet_by_index(0).to_python()
    except MemoryError:
        raise
    except Exception as e:
        raise _unreadable(type(e).__name__) from None
    names = [_text(cell).strip() for cell in rows[0]] if rows else []
    return names, [_column([row[place] for row in rows[1:]]) for place in range(len(names))]


def _unreadable(why: str) -> InvalidInput:
    return InvalidInput(
        f"The workbook cannot be read ({why}).",
        hint="Save it as .xlsx; the formats .xls, .xlsb and .ods are not read.",
    )


def _check(file: Path, limits: TableLimits) -> None:
    if not zipfile.is_zipfile(file):
        raise _unreadable("it is no .xlsx file")
    try:
        with zipfile.ZipFile(file) as book:
            check_archive(book, limits)
            with book.open(_first_sheet(book)) as sheet:
                _check_cells(sheet, limits)
    except _UNREADABLE as e:
        raise _unreadable(type(e).__name__) from None


def _first_sheet(book: zipfile.ZipFile) -> str:
    """The archive path of the first sheet."""
    relation = _attribute(next(_SHEET.finditer(book.read(_WORKBOOK)))[1], rb"\w+:id")
    relations = (one[1] for one in _RELATION.finditer(book.read(_RELATIONS)))
    entry = next(one for one in relations if _attribute(one, rb"Id") == relation)
    target = _attribute(entry, rb"Target")
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _attribute(attributes: bytes, name: bytes) -> str:
    value = next(re.finditer(rb"(?:^|\s)" + name + rb"\s*=\s*[\"']([^\"']*)[\"']", attributes))
    return html.unescape(value[1].decode())


def _check_cells(sheet: IO[bytes], limits: TableLimits) -> None:
    extent = Extent()
    for rows in _rows(sheet):
        extent.add(rows)
        limits.check_columns(extent.columns)
        limits.check_cells(extent.rows, extent.columns)
        if error := _ERROR.search(rows):
            value = _VALUE.search(error["inner"])
            shown = value[1].decode(errors="replace") if value else "an error"
            hint = "Correct it, or clear it if it is meant to be empty."
            raise _refused(f"holds {shown}", error["cell"], hint)
        for formula in _FORMULA.finditer(rows):
            if _TEXT_TYPE.search(formula["cell"]) is None:
                hint = "Open the workbook in a spreadsheet program and save it, or paste values."
                raise _refused("has a formula that was never calculated", formula["cell"], hint)


class Extent:
    """The extent of a sheet, from its declaration and from the positions of its rows and cells."""

    def __init__(self) -> None:
        self.rows = self.columns = 0
        self._row_count = 0

    def add(self, xml: bytes) -> None:
        for reference in _DIMENSION.findall(xml):
            self._reach(*_place(reference.rpartition(b":")[2]))
        starts = _ROW.findall(xml)
        self._row_count += len(starts)
        numbers = [int(number) for row in starts for number in _ROW_NUMBER.findall(row)]
        self._reach(max([self._row_count, *numbers]), 0)
        for columns, row in set(_CELL_PLACE.findall(xml)):
            self._reach(int(row), _column_number(columns))
        self._reach(0, max(len(_CELL.findall(row)) for row in _ROW_END.split(xml)))

    def _reach(self, row: int, column: int) -> None:
        self.rows, self.columns = max(self.rows, row), max(self.columns, column)


def _place(reference: bytes) -> tuple[int, int]:
    parts = _REFERENCE.fullmatch(reference.replace(b"$", b""))
    return (0, 0) if parts is None else (int(parts[2]), _column_number(parts[1]))


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - ord("A") + 1
    return number


def _refused(what: str, attributes: bytes, hint: str) -> InvalidInput:
    place = _PLACE.search(attributes)
    cell = place[1].decode() if place else "?"
    return InvalidInput(f"Cell {cell} of the first sheet {what}.", hint=hint, cell=cell)


def _rows(sheet: IO[bytes]) -> Iterator[bytes]:
    """Complete rows of the sheet's XML, many at a time."""
    rest = b""
    while piece := sheet.read(_PIECE):
        rest += piece
        if len(rest) > MAX_SHEET_ROW_BYTES:
            message = f"A row of the sheet is larger than {MAX_SHEET_ROW_BYTES:,} bytes."
            raise PayloadTooLarge(message, hint="Save it as .csv.", limit=MAX_SHEET_ROW_BYTES)
        ends = [end.end() for end in _ROW_END.finditer(rest)]
        if ends:
            yield rest[: ends[-1]]
            rest = rest[ends[-1] :]
    yield rest


def _column(cells: list[object]) -> pa.Array:
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    whole = [int(v) if isinstance(v, float) and _is_whole(v) else None for v in values]
    if kinds == {float} and [v is None for v in whole] == [v is None for v in values]:
        return pa.array(whole, pa.int64())
    if len(kinds) == 1:
        return pa.array(values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and _is_whole(value) else str(value)


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= _EXACT
