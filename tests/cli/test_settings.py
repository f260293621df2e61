"""`penstock config`: every setting, where it comes from, and no secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli import output
from penstock.cli.documents import DOCUMENTS
from penstock.cli.tree import app
from penstock.wiring.settings import Settings
from tests.cli.schema import check

if TYPE_CHECKING:
    from pathlib import Path

MARK = "canary-hunter2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    (tmp_path / "penstock.toml").write_text(
        f'port = 9000\nlog_level = "DEBUG"\n[catalogs.lake]\ntype = "rest"\ncredential = "{MARK}"\n'
    )
    secrets = tmp_path / "given"
    secrets.mkdir()
    (secrets / "penstock_service_token").write_text(MARK)
    monkeypatch.setenv("PENSTOCK_SECRETS_DIR", str(secrets))
    monkeypatch.setenv("PENSTOCK_PORT", "9001")
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", f"postgresql://ann:{MARK}@db/penstock")
    monkeypatch.setenv("PENSTOCK_STORAGE_ENDPOINT", f"http://key:{MARK}@store:9000")
    return tmp_path


def _shown(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert output.guarded(app, ["config", "--json"]) == 0
    document: dict[str, dict[str, Any]] = json.loads(capsys.readouterr().out)
    check(document, DOCUMENTS["config"])
    return document


def test_every_setting_is_shown_with_where_it_comes_from(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = _shown(capsys)
    assert document.keys() == Settings.model_fields.keys()
    assert document["port"] == {"value": 9001, "from": "PENSTOCK_PORT"}
    assert document["log_level"] == {"value": "DEBUG", "from": str(home / "penstock.toml")}
    assert document["service_token"]["from"] == str(home / "given" / "penstock_service_token")
    assert document["host"] == {"value": "127.0.0.1", "from": "default"}


@pytest.mark.parametrize(
    "arguments", [["config"], ["config", "--json"], ["config", "database_url"]]
)
def test_no_secret_is_shown(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert output.guarded(app, arguments) == 0
    printed = capsys.readouterr()
    assert MARK not in printed.out + printed.err
    assert "••••••" in json.dumps(printed.out, ensure_ascii=False) or "\\u2022" in printed.out


def test_a_setting_that_is_not_there_is_exit_code_3(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert output.guarded(app, ["config", "prot"]) == 3
    assert "penstock config" in capsys.readouterr().err


def test_a_setting_that_is_wrong_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "many")
    assert output.guarded(app, ["config"]) == 2
    assert "PENSTOCK_PORT" in " ".join(capsys.readouterr().err.split())
