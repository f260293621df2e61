"""The first sheet of an Excel workbook (.xlsx) as a table: a header, then rows.

A column of one kind of value has its type, any other is text. Cells that hold an error, and
formulas that were never calculated, are refused: the reader would take them for empty ones.
"""

from __future__ import annotations

import html
import re
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.kit.errors import InvalidInput, PayloadTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

_WORKBOOK, _RELATIONS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_PIECE = 1024 * 1024
_EXACT = 2**53
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s([^>]*)>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s([^>]*)>")
_ROW_END = re.compile(rb"</(?:\w+:)?row\s*>")
_ERROR = re.compile(
    rb"<(?:\w+:)?c\s(?=[^>]*\bt\s*=\s*[\"']e[\"'])(?P<cell>[^>]*)>(?P<inner>.*?)</(?:\w+:)?c>", re.DOTALL
)
_FORMULA = re.compile(
    rb"<(?:\w+:)?c\b(?P<cell>[^>]*)>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_PLACE = re.compile(rb"\br\s*=\s*[\"']([A-Z]+[0-9]+)[\"']")
_TEXT_TYPE = re.compile(rb"\bt\s*=\s*[\"']str[\"']")
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]*)<")


def read(file: Path, most: int) -> tuple[list[str], list[pa.Array]]:
    """The names in the first row, and a column for each; `most` is what it may unpack to."""
    from python_calamine import CalamineWorkbook

    _check(file, most)
    try:
        rows = CalamineWorkbook.from_path(str(file)).get_sheet_by_index(0).to_python()
    except Exception as e:
        raise _unreadable(type(e).__name__) from None
    names = [_text(cell).strip() for cell in rows[0]] if rows else []
    return names, [_column([row[place] for row in rows[1:]]) for place in range(len(names))]


def _unreadable(why: str) -> InvalidInput:
    return InvalidInput(
        f"The workbook cannot be read ({why}).",
        hint="Save it as .xlsx; the formats .xls, .xlsb and .ods are not read.",
    )


def _check(file: Path, most: int) -> None:
    if not zipfile.is_zipfile(file):
        raise _unreadable("it is no .xlsx file")
    try:
        with zipfile.ZipFile(file) as book:
            if sum(entry.file_size for entry in book.infolist()) > most:
                message = f"The workbook unpacks to more than {most:,} bytes."
                raise PayloadTooLarge(message, limit=most)
            with book.open(_first_sheet(book)) as sheet:
                _check_cells(sheet)
    except (KeyError, zipfile.BadZipFile, zlib.error, StopIteration, UnicodeError, OSError) as e:
        raise _unreadable(type(e).__name__) from None


def _first_sheet(book: zipfile.ZipFile) -> str:
    """Where the first sheet is."""
    relation = _attribute(next(_SHEET.finditer(book.read(_WORKBOOK)))[1], rb"\w+:id")
    relations = (one[1] for one in _RELATION.finditer(book.read(_RELATIONS)))
    entry = next(one for one in relations if _attribute(one, rb"Id") == relation)
    target = _attribute(entry, rb"Target")
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _attribute(attributes: bytes, name: bytes) -> str:
    value = next(re.finditer(rb"(?:^|\s)" + name + rb"\s*=\s*[\"']([^\"']*)[\"']", attributes))
    return html.unescape(value[1].decode())


def _check_cells(sheet: IO[bytes]) -> None:
    for rows in _rows(sheet):
        if error := _ERROR.search(rows):
            value = _VALUE.search(error["inner"])
            shown = value[1].decode(errors="replace") if value else "an error"
            hint = "Correct it, or clear it if it is meant to be empty."
            raise _refused(f"holds {shown}", error["cell"], hint)
        for formula in _FORMULA.finditer(rows):
            if _TEXT_TYPE.search(formula["cell"]) is None:
                hint = "Open the workbook in a spreadsheet program and save it, or paste values."
                raise _refused("has a formula that was never calculated", formula["cell"], hint)


def _refused(what: str, attributes: bytes, hint: str) -> InvalidInput:
    place = _PLACE.search(attributes)
    cell = place[1].decode() if place else "?"
    return InvalidInput(f"Cell {cell} of the first sheet {what}.", hint=hint, cell=cell)


def _rows(sheet: IO[bytes]) -> Iterator[bytes]:
    """Whole rows of the sheet's XML, many at once."""
    rest = b""
    while piece := sheet.read(_PIECE):
        rest += piece
        ends = [end.end() for end in _ROW_END.finditer(rest)]
        if ends:
            yield rest[: ends[-1]]
            rest = rest[ends[-1] :]
    yield rest


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
