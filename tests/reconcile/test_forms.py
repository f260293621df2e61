"""Downloads and the report."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

from penstock.kit.errors import InvalidInput
from penstock.reconcile.evidence import download
from penstock.reconcile.evidence.manifest import manifest
from penstock.reconcile.evidence.report import report
from penstock.reconcile.recipes import validation
from tests.reconcile.match_run import recipe
from tests.reconcile.test_evidence import LEFT, RIGHT, RULE, execute

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.table(
    {
        "key": ["a", '=HYPERLINK("x")', None],
        "amount": pa.array([Decimal("1.10"), Decimal("-2.00"), None], pa.decimal128(12, 2)),
        "day": pa.array([date(2024, 1, 1), None, date(2024, 1, 2)]),
    }
)


def written(form: str) -> bytes:
    return b"".join(download.FORMS[form].write(ROWS.schema, ROWS.to_batches()))


def test_parquet_and_arrow_give_back_the_very_rows() -> None:
    assert pq.read_table(io.BytesIO(written("parquet"))) == ROWS
    assert pa.ipc.open_stream(written("arrow")).read_all() == ROWS


def test_csv_has_a_header_and_exact_amounts() -> None:
    assert written("csv").decode().splitlines()[:2] == [
        '"key","amount","day"',
        '"a",1.10,2024-01-01',
    ]
    assert arrow_csv.read_csv(io.BytesIO(written("csv"))).num_rows == 3


def test_json_has_amounts_as_text() -> None:
    assert json.loads(written("json"))[0] == {"key": "a", "amount": "1.10", "day": "2024-01-01"}
    assert b"".join(download.FORMS["json"].write(ROWS.schema, [])) == b"[]"


def test_a_sheet_has_no_formulas() -> None:
    rows = (
        CalamineWorkbook.from_filelike(io.BytesIO(written("xlsx")))
        .get_sheet_by_index(0)
        .to_python()
    )
    assert rows[0] == ["key", "amount", "day"]
    assert rows[1] == ["a", 1.1, date(2024, 1, 1)]
    assert rows[2][0] == '=HYPERLINK("x")'


MOMENT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
ODD: dict[str, tuple[pa.Array, object, str, object]] = {
    "list": (pa.array([[1, None]]), [1, None], "[1,null]", "[1,null]"),
    "struct": (pa.array([{"a": Decimal("1.5")}]), {"a": "1.5"}, '{"a":"1.5"}', '{"a":"1.5"}'),
    "map": (
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        [["a", 1]],
        '[["a",1]]',
        '[["a",1]]',
    ),
    "bytes": (pa.array([b"\x00\xff"]), "00ff", "00ff", "00ff"),
    "uuid": (pa.array([b"0" * 16], pa.uuid()), *["30303030-3030-3030-3030-303030303030"] * 3),
    "duration": (pa.array([timedelta(1)]), *["86400.000000"] * 3),
    "nanoseconds": (pa.array([1], pa.timestamp("ns")), *["1970-01-01 00:00:00.000000001"] * 3),
    "infinite": (pa.array([float("inf")]), "inf", "inf", "inf"),
    "an amount of 22 digits": (
        pa.array([Decimal("12345678901234567890.12")]),
        *["12345678901234567890.12"] * 3,
    ),
    "a key of 16 digits": (
        pa.array([9007199254740993]),
        9007199254740993,
        "9007199254740993",
        "9007199254740993",
    ),
    "15 digits": (
        pa.array([999999999999999]),
        999999999999999,
        "999999999999999",
        999999999999999.0,
    ),
    "long ago": (pa.array([date(1066, 10, 14)]), *["1066-10-14"] * 3),
    "a moment": (
        pa.array([MOMENT], pa.timestamp("us", "UTC")),
        "2024-01-02T03:04:05+00:00",
        "2024-01-02 03:04:05.000000Z",
        "2024-01-02T03:04:05+00:00",
    ),
    "boolean": (pa.array([True]), True, "true", True),
}


@pytest.mark.parametrize("kind", ODD)
def test_every_kind_of_value_comes_out_of_every_form_as_it_is(kind: str) -> None:
    values, as_json, as_csv, in_sheet = ODD[kind]
    rows = pa.table({"c": values})

    def as_form(form: str) -> bytes:
        return b"".join(download.FORMS[form].write(rows.schema, rows.to_batches()))

    assert pq.read_table(io.BytesIO(as_form("parquet"))).equals(rows)
    assert pa.ipc.open_stream(as_form("arrow")).read_all() == rows
    assert json.loads(as_form("json")) == [{"c": as_json}]
    assert list(csv.reader(io.StringIO(as_form("csv").decode())))[1] == [as_csv]
    sheet = (
        CalamineWorkbook.from_filelike(io.BytesIO(as_form("xlsx")))
        .get_sheet_by_index(0)
        .to_python()
    )
    assert sheet == [["c"], [in_sheet]]


def test_a_cell_has_so_many_characters_and_no_more() -> None:
    def sheet(length: int) -> bytes:
        rows = pa.table({"c": ["x" * length]})
        return b"".join(download.FORMS["xlsx"].write(rows.schema, rows.to_batches()))

    assert sheet(download.MAX_CELL)
    with pytest.raises(InvalidInput, match="32,767 characters at most; row 1 has a text of 32,768"):
        sheet(download.MAX_CELL + 1)


def test_a_sheet_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "MAX_SHEET_ROWS", 3)
    assert written("xlsx")
    monkeypatch.setattr(download, "MAX_SHEET_ROWS", 2)
    with pytest.raises(InvalidInput, match="2 rows at most"):
        written("xlsx")


def test_the_report_stands_alone_and_hides_no_markup(tmp_path: Path) -> None:
    done = execute(
        tmp_path / "a", LEFT, RIGHT, rules=[{**RULE, "name": "<script>alert(1)</script>"}]
    )
    html = report(
        manifest(
            done, validation.read(recipe(rules=[RULE])), version=3, inputs={}, run={"run_id": 7}
        )
    )
    late = {"code": "RECONCILE_THRESHOLD", "message": "66 % <b>is</b> unmatched."}
    document = manifest(
        done, validation.read(recipe(rules=[RULE])), version=3, inputs={}, run={"run_id": 7}
    )
    assert '<p class="no">66 % &lt;b&gt;is&lt;/b&gt; unmatched.</p>' in report(document, late)
    assert 'class="no"' not in html
    assert "keys with nulls" in html
    assert "<script" not in html
    assert "http://" not in html
    assert "https://" not in html
    assert "<svg" in html
    assert "81.00" in html
    body = html[html.index("<main>") : html.index("</main>") + len("</main>")]
    ElementTree.fromstring(body)
