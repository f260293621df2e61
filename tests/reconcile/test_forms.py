"""Downloads and the report."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

from penstock.kit.errors import InvalidInput
from penstock.reconcile import download, validation
from penstock.reconcile.manifest import manifest
from penstock.reconcile.report import report
from tests.reconcile.stand import recipe
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
    assert written("csv").decode().splitlines()[:2] == ['"key","amount","day"', '"a",1.10,2024-01-01']
    assert arrow_csv.read_csv(io.BytesIO(written("csv"))).num_rows == 3


def test_json_has_amounts_as_text() -> None:
    assert json.loads(written("json"))[0] == {"key": "a", "amount": "1.10", "day": "2024-01-01"}
    assert b"".join(download.FORMS["json"].write(ROWS.schema, [])) == b"[]"


def test_a_sheet_has_no_formulas() -> None:
    rows = CalamineWorkbook.from_filelike(io.BytesIO(written("xlsx"))).get_sheet_by_index(0).to_python()
    assert rows[0] == ["key", "amount", "day"]
    assert rows[1] == ["a", 1.1, date(2024, 1, 1)]
    assert rows[2][0] == '=HYPERLINK("x")'


def test_a_sheet_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "MAX_SHEET_ROWS", 3)
    assert written("xlsx")
    monkeypatch.setattr(download, "MAX_SHEET_ROWS", 2)
    with pytest.raises(InvalidInput, match="2 rows at most"):
        written("xlsx")


def test_the_report_stands_alone_and_hides_no_markup(tmp_path: Path) -> None:
    done = execute(tmp_path / "a", LEFT, RIGHT, rules=[{**RULE, "name": "<script>alert(1)</script>"}])
    html = report(manifest(done, validation.read(recipe(rules=[RULE])), version=3, inputs={}, run={"run_id": 7}))
    assert "<script" not in html
    assert "http://" not in html
    assert "https://" not in html
    assert "<svg" in html
    assert "81.00" in html
    body = html[html.index("<main>") : html.index("</main>") + len("</main>")]
    ElementTree.fromstring(body)
