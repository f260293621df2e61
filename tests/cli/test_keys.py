from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from penstock.cli.home import Home
from penstock.cli.stack import Stack
from penstock.kit.db import Db
from penstock.kit.vault import Vault, new_key
from penstock.sources.repository import DataSources
from penstock.wiring import settings as config
from tests.cli.commands import run

if TYPE_CHECKING:
    from pathlib import Path

MARK = "canary-hunter2"
CONFIG = {"database": "shop", "user": "ann"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str) -> Home:
    """A machine that uses the test's database."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    for name in ("PENSTOCK_SECRET_KEY", "PENSTOCK_SECRET_KEYS_OLD"):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path)


async def add(database: str, key: str, name: str) -> int:
    async with Db(database, size=1) as db:
        source = await DataSources(db, Vault([key])).add(
            name=name, kind="postgres", owner="ann", config=CONFIG, secrets={"password": MARK}
        )
    return source.data_source_id


async def secrets(database: str, key: str, source: int) -> object:
    async with Db(database, size=1) as db:
        return (await DataSources(db, Vault([key])).opening(source)).secrets


async def test_a_fresh_key_is_printed_and_nothing_else_happens(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql:///nowhere")
    assert await run("rekey", "--new-key") == 0
    printed = capsys.readouterr().out.strip()
    assert Vault([printed])
    assert await run("rekey", "--new-key", "--json") == 0
    assert json.loads(capsys.readouterr().out)["key"] != printed


async def test_everything_is_sealed_anew_and_counted(
    home: Home, database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = new_key(), new_key()
    first, second = await add(database, old, "first"), await add(database, old, "second")
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", new)
    monkeypatch.setenv("PENSTOCK_SECRET_KEYS_OLD", f"{new_key()}, {old}")
    assert await run("rekey", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"anew": 2, "already": 0}
    assert [await secrets(database, new, source) for source in (first, second)] == [
        {"password": MARK}
    ] * 2
    assert await run("rekey") == 0
    assert "0 sealed with the current key, 2 already were" in capsys.readouterr().out


@pytest.mark.parametrize("old", [None, "another"])
async def test_without_the_old_key_nothing_is_changed(
    home: Home,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: str | None,
) -> None:
    lost = new_key()
    source = await add(database, lost, "first")
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", new_key())
    if old:
        monkeypatch.setenv("PENSTOCK_SECRET_KEYS_OLD", new_key())
    assert await run("rekey") == 1
    stderr = " ".join(capsys.readouterr().err.split())
    assert "Nothing was changed" in stderr
    assert "PENSTOCK_SECRET_KEYS_OLD" in stderr
    assert await secrets(database, lost, source) == {"password": MARK}


async def test_a_call_without_a_key_or_with_a_bad_one_is_refused_in_a_sentence(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run("rekey") == 2
    assert "PENSTOCK_SECRET_KEY is not set" in capsys.readouterr().err
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", "not-a-key")
    assert await run("rekey") == 2
    stderr = capsys.readouterr().err
    assert "32 bytes in base64" in stderr
    assert "not-a-key" not in stderr


async def test_swapped_rows_are_found(
    home: Home, database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = new_key()
    for name in ("first", "second"):
        await add(database, key, name)
    async with Db(database, size=1) as db, db.connection() as connection:
        await connection.execute(
            "UPDATE penstock_secret.data_source_credentials s SET credentials = o.credentials"
            " FROM penstock_secret.data_source_credentials o"
            " WHERE o.data_source_id <> s.data_source_id"
        )
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", key)
    assert await run("rekey") == 1
    assert "belongs to another row" in capsys.readouterr().err


def test_a_home_makes_a_key_that_a_vault_takes_and_keeps_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    key = home.secret("secret_key", new_key)
    assert Vault([key])
    assert home.secret("secret_key", new_key) == key
    assert (tmp_path / "secrets" / "secret_key").stat().st_mode & 0o077 == 0


def test_the_control_plane_gets_the_key_and_workers_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    own_key, old = new_key(), new_key()
    stack = Stack(Home(tmp_path))
    stack.home.make()
    plane = stack._plane_environment(config.load(), "postgresql:///x")
    assert Vault([plane["PENSTOCK_SECRET_KEY"]])
    assert (tmp_path / "secrets" / "secret_key").read_text() == plane["PENSTOCK_SECRET_KEY"]
    monkeypatch.setenv("PENSTOCK_SECRET_KEYS_OLD", old)
    assert stack._plane_environment(config.load(), "")["PENSTOCK_SECRET_KEYS_OLD"] == old
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", own_key)
    assert stack._plane_environment(config.load(), "")["PENSTOCK_SECRET_KEY"] == own_key
    assert not any(
        key in str(stack._environment()) for key in (plane["PENSTOCK_SECRET_KEY"], own_key, old)
    )
