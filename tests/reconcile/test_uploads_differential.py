"""Generated hostile files: read as Python's csv module and openpyxl read them, or refused."""

from __future__ import annotations

import csv
import gzip
import io
import random
import zipfile
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from xlsxwriter import Workbook

from penstock.kit.errors import InvalidInput
from penstock.reconcile.uploads.tabular import Reading, as_parquet

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

PIECES = [
    "a",
    "b",
    '"',
    '"',
    '""',
    ",",
    ",",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    ";",
    "\\",
    "'",
    "\u00e9",
    "x,y",
]
FILES = 400


async def upload(folder: Path, name: str, data: bytes, **options: Any) -> pa.Table:
    folder.mkdir(parents=True)
    (folder / "given").write_bytes(data)
    (folder / "work").mkdir()
    reading = Reading(name=name, **options)
    return pq.read_table(await as_parquet(folder / "given", reading, folder / "work"))


def by_csv_module(text: str) -> list[list[str]] | None:
    """The rows of a file, strictly; None where it has no table of one width."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None
    while rows and not rows[0]:
        rows.pop(0)
    if not rows or len({len(row) for row in rows if row}) != 1:
        return None
    names = rows[0]
    if not all(name.strip() for name in names) or len(set(names)) < len(names):
        return None
    if len(names) == 1:
        return None if [] in rows else rows
    return [row for row in rows if row]


def generated(dice: random.Random) -> str:
    width = dice.choice([1, 2, 2, 3])
    header = ",".join(["id", "ref", "note"][:width])
    if dice.random() < 0.3:
        return header + "\n" + "".join(dice.choice(PIECES) for _ in range(dice.randrange(12)))
    lines = [header]
    for _ in range(dice.randrange(5)):
        cells = ["".join(dice.choices(PIECES, k=dice.randrange(4))) for _ in range(width)]
        quoted = [
            '"' + cell.replace('"', '""') + '"' if dice.random() < 0.7 else cell for cell in cells
        ]
        lines.append(",".join(quoted))
    if dice.random() < 0.2:
        lines.insert(dice.randrange(len(lines) + 1), "")
    if dice.random() < 0.2:
        lines[-1] += dice.choice(PIECES)
    return dice.choice(["\n", "\r\n"]).join(lines) + dice.choice(["", "\n"])


@pytest.mark.parametrize("first", range(0, FILES, 100))
async def test_a_csv_is_read_as_pythons_strict_reader_reads_it(tmp_path: Path, first: int) -> None:
    read = refused = 0
    for seed in range(first, first + 100):
        text = generated(random.Random(seed))
        rows = by_csv_module(text)
        try:
            table = await upload(tmp_path / str(seed), "x.csv", text.encode(), delimiter=",")
        except InvalidInput:
            assert rows is None, (seed, text)
            refused += 1
            continue
        assert rows is not None, (seed, text, table.to_pylist())
        assert table.schema.names == rows[0], (seed, text)
        values = [[value or "" for value in row.values()] for row in table.to_pylist()]
        assert values == rows[1:], (seed, text)
        read += 1
    assert read > 20
    assert refused > 20


SHAPES: dict[str, tuple[bytes, str]] = {
    "text behind a closing quote": (
        b'id,a\n1,"b"c\n',
        "text behind a closing quote, in the row that begins in line 2",
    ),
    "a backslash before a quote": (b'id,a\n1,"a\\"b"\n', "text behind a closing quote"),
    "a quote over two rows": (b'id,a\n1,"5 pipe\n2,6" pipe\n', "text behind a closing quote"),
    "an empty quoted field with text": (b'id,a\n1,""c\n', "text behind a closing quote"),
    "a blank line": (b"id\n1\n\n2\n", "blank line, 3: in a file of one column"),
    "a blank line at the end": (b"id\n1\n\n", "blank line, 3"),
    "a blank line after a quoted newline": (b'id\n"1\n2"\n\n3\n', "blank line, 4"),
    "an unclosed quote before much text": (
        b'id,a\n1,"' + b"x" * 200_000 + b"\n2,y\n",
        "never closed.* line 2",
    ),
    "bytes that the mark does not mean": (
        b"\xef\xbb\xbfid,a\n1,\xe9\n",
        "begins with the mark of utf-8",
    ),
}


@pytest.mark.parametrize("what", SHAPES)
@pytest.mark.parametrize("packed", [False, True])
async def test_what_would_be_misread_is_refused_with_its_line(
    tmp_path: Path, what: str, packed: bool
) -> None:
    data, says = SHAPES[what]
    name, data = ("x.csv.gz", gzip.compress(data)) if packed else ("x.csv", data)
    with pytest.raises(InvalidInput, match=says):
        await upload(tmp_path / "x", name, data, encoding="cp1252")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("declared", ["utf-8", "cp1252", "latin-1"])
@pytest.mark.parametrize("packed", [False, True])
async def test_a_byte_order_mark_says_the_encoding(
    tmp_path: Path, encoding: str, declared: str, packed: bool
) -> None:
    data = '"i,d",b\n"J\u00fcrgen",2\n'.encode(encoding)
    name, data = ("x.csv.gz", gzip.compress(data)) if packed else ("x.csv", data)
    table = await upload(tmp_path / "x", name, data, encoding=declared)
    assert table.to_pylist() == [{"i,d": "J\u00fcrgen", "b": "2"}]


# workbooks


def workbook(rows: list[list[Any]]) -> bytes:
    out = io.BytesIO()
    with Workbook(out, {"strings_to_numbers": False, "strings_to_formulas": False}) as book:
        sheet = book.add_worksheet()
        styles = {
            date: book.add_format({"num_format": "yyyy-mm-dd"}),
            datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
            time: book.add_format({"num_format": "hh:mm:ss"}),
        }
        for number, row in enumerate(rows):
            for place, value in enumerate(row):
                if value is not None:
                    sheet.write(number, place, value, styles.get(type(value)))
    return out.getvalue()


KINDS: list[list[Any]] = [
    [1, 2, -3, 10**14],
    [0.1, 2.5, -1e-7, 1e300],
    ["x", "=1+1", "0001", "1.0", "_x0041_", "a\nb", " y ", "#N/A"],
    [True, False],
    [date(2024, 1, 31), date(1999, 12, 31)],
    [datetime.fromisoformat("2024-01-31T12:30:00"), datetime.fromisoformat("2024-01-31T23:59:59")],
    [time(1, 2, 3), time(23, 59)],
]


def alike(value: Any) -> Any:
    """What openpyxl and an upload call by different types, as one."""
    if isinstance(value, datetime) and value.time() == time(0):
        return value.date()
    if isinstance(value, str):
        return value.replace("_x005F_", "_")
    return value


@pytest.mark.parametrize("seed", range(40))
async def test_a_sheet_is_read_as_openpyxl_reads_it(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    kinds = [dice.choice(KINDS) for _ in range(dice.randrange(1, 5))]
    header: list[Any] = dice.sample(["id", 1, 2.0, 3.5, True, " a ", "1.0", "\u00e9"], len(kinds))
    rows = [[dice.choice([*kind, None]) for kind in kinds] for _ in range(dice.randrange(1, 8))]
    rows.append([kind[0] for kind in kinds])
    data = workbook([header, *rows])
    table = await upload(tmp_path / "x", "x.xlsx", data)
    sheet = openpyxl.load_workbook(io.BytesIO(data), data_only=True).active
    assert sheet is not None
    names, *values = sheet.iter_rows(values_only=True)
    assert table.schema.names == [str(name).strip() for name in names]
    shown = [[alike(value) for value in row.values()] for row in table.to_pylist()]
    assert shown == [[alike(value) for value in row] for row in values]


ERRORS = ["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"]


@pytest.mark.parametrize("error", ERRORS)
async def test_a_cell_with_an_error_is_refused_with_its_place(tmp_path: Path, error: str) -> None:
    out = io.BytesIO()
    with Workbook(out) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "a"])
        for number in range(1, 5_000):
            sheet.write_row(number, 0, [number, "x"])
        sheet.write_formula(5_000, 1, "=1/0", None, error)
    with pytest.raises(
        InvalidInput, match=f"Cell B5001 of the first sheet holds {error[:4]}"
    ) as caught:
        await upload(tmp_path / "x", "x.xlsx", out.getvalue())
    assert caught.value.details["cell"] == "B5001"


async def test_a_formula_that_was_never_calculated_is_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["id", "total"])
    sheet.append([1, "=SUM(A1:A1)"])
    out = io.BytesIO()
    book.save(out)
    with pytest.raises(
        InvalidInput, match="Cell B2 of the first sheet has a formula that was never calculated"
    ):
        await upload(tmp_path / "x", "x.xlsx", out.getvalue())


async def test_formulas_that_were_calculated_are_their_values(tmp_path: Path) -> None:
    """An empty text among them; errors in other sheets do not matter."""
    out = io.BytesIO()
    with Workbook(out) as book:
        sheet, other = book.add_worksheet(), book.add_worksheet()
        sheet.write_row(0, 0, ["id", "sum", "text"])
        sheet.write(1, 0, 1)
        sheet.write_formula(1, 1, "=A2+1", None, 2)
        sheet.write_formula(1, 2, '=""', None, "nothing")
        other.write_formula(0, 0, "=1/0", None, "#DIV/0!")
    data = replaced(out.getvalue(), b"<v>nothing</v>", b"<v></v>")
    table = await upload(tmp_path / "x", "x.xlsx", data)
    assert table.to_pylist() == [{"id": 1, "sum": 2, "text": None}]


def replaced(workbook: bytes, old: bytes, new: bytes) -> bytes:
    """A workbook with other XML in its first sheet."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("sheet1.xml"):
                assert old in data
                data = data.replace(old, new)
            target.writestr(name, data)
    return out.getvalue()


async def test_a_workbook_of_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """Its errors could not be told from empty cells."""
    with pytest.raises(InvalidInput, match=r"cannot be read \(it is no .xlsx file\)") as caught:
        await upload(tmp_path / "x", "x.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 1000)
    assert "Save it as .xlsx" in (caught.value.hint or "")


async def test_durations_of_a_sheet_are_kept(tmp_path: Path) -> None:
    out = io.BytesIO()
    with Workbook(out) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "took"])
        sheet.write(1, 0, 1)
        sheet.write_number(1, 1, 1.5, book.add_format({"num_format": "[h]:mm:ss"}))
    table = await upload(tmp_path / "x", "x.xlsx", out.getvalue())
    assert table.to_pylist() == [{"id": 1, "took": timedelta(hours=36)}]
