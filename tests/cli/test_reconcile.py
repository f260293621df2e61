"""Two ledgers and a worn-out table from the command line, on what a new home brings."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from penstock.cli.demo import books, lake

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


@pytest.fixture(scope="module")
def furnished(up: Cli) -> Cli:
    until = time.monotonic() + 60
    while not up("source", "list", "--json").json:
        assert time.monotonic() < until, "the demo warehouse did not come"
    return up


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "october.json"
    file.write_text(json.dumps(books.RECIPE | {"recipe_id": "october"}))
    return file


def test_a_recipe_is_validated_saved_run_and_its_evidence_written(
    furnished: Cli, recipe: Path, tmp_path: Path
) -> None:
    assert furnished("recipe", "validate", str(recipe), "--json").code == 0
    saved = furnished("recipe", "save", str(recipe), "--json")
    assert (saved.code, saved.json["version"]) == (0, 1), saved.err
    assert "SELECT" in furnished("recipe", "explain", "october").out
    run: dict[str, Any] = furnished("run", "start", "october", "--json").json
    assert run["status"] == "completed"
    assert "to the cent" in str(
        furnished("run", "show", str(run["run_id"]), "--json").json["rules"]
    )
    shown = furnished("run", "show", str(run["run_id"]))
    assert "5,000 rows" in shown.out
    assert str(run["run_id"]) in furnished("run", "list").out
    file = tmp_path / "matched.csv"
    written = furnished("evidence", str(run["run_id"]), "matched", "--to", str(file), "--json").json
    assert (written["form"], written["bytes"]) == ("csv", file.stat().st_size)
    assert (
        len(furnished("evidence", str(run["run_id"]), "matched", "--limit", "3", "--json").json)
        == 3
    )
    assert len(file.read_text().splitlines()) == 1 + 3950 + 333 + 500
    report = tmp_path / "report.html"
    assert furnished("run", "report", str(run["run_id"]), str(report), "--json").code == 0
    assert "<svg" in report.read_text()


def test_a_file_is_uploaded_listed_and_deleted(furnished: Cli, tmp_path: Path) -> None:
    file = tmp_path / "payments.csv"
    file.write_text("id;amount\n1;-5\n")
    upload = furnished("upload", "add", str(file), "--delimiter", ";", "--json").json
    assert (upload["name"], upload["rows"]) == ("payments.csv", 1)
    assert upload["upload_id"] in furnished("upload", "list").out
    assert furnished("upload", "usage", "--json").json["files"] == 1
    assert "is deleted" in furnished("upload", "delete", upload["upload_id"]).out
    assert furnished("upload", "list", "--json").json == []
    assert furnished("upload", "delete", upload["upload_id"]).code == 3


def test_a_recipe_with_faults_says_them_all(furnished: Cli, tmp_path: Path) -> None:
    wrong = json.loads(
        json.dumps(books.RECIPE).replace('"issued"', '"isued"').replace('"paid"', '"payd"')
    )
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong))
    result = furnished("recipe", "validate", str(file))
    assert result.code == 1
    assert "issued" in result.out
    assert "paid" in result.out


def test_a_worn_table_is_looked_at_and_maintained(furnished: Cli) -> None:
    running = furnished("status", "--json").json
    token = (furnished.home / "secrets" / "operator_token").read_text()
    table = lake.worn(running["url"], token)
    assert isinstance(table.catalog, RestCatalog)
    assert furnished("table", "health", lake.NAME, "--json").json["score"] < 100
    planned = furnished("maintain", lake.NAME, "manifests", "--dry-run", "--json")
    assert planned.code == 0, planned.err
    done = furnished("maintain", lake.NAME, "manifests", "--json")
    assert [action["action"] for action in done.json] == ["rewrite_manifests"]
    assert furnished("table", "history", lake.NAME, "--json").json[0]["status"] == "succeeded"
    assert furnished("maintain", "nonsense", "compact").code == 2
    assert furnished("maintain", "lake.shop.nowhere", "compact").code == 3
