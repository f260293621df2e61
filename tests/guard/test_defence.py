"""Without the guard, DuckDB as the sources open it still reaches no file and no network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.guard.cases import Case, cases
from tests.guard.shop import DUCKDB_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
OUTWARD = re.compile(
    r"""read_|glob\(|sniff_csv|parquet_|_scan\('|st_read|postgres_query|mysql_query|http_get|'[^']*(/|\.csv)|\.csv|\.parquet
    |customers\.json|^ATTACH|INSTALL|^LOAD|^COPY|^EXPORT|^IMPORT|external_access|^CREATE\ SECRET""",
    re.IGNORECASE | re.VERBOSE,
)
REACHING = [case for case in cases("hostile.sql", dialect="duckdb") if OUTWARD.search(case.sql)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that has what the hostile statements ask for."""
    for name in ("customers.csv", "x.csv", "y.csv", "relative"):
        (tmp_path / name).write_text("a,b\n1,secret\n")
    (tmp_path / "customers.json").write_text('{"a": "secret"}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def locked() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config=LOCKED) as connection:
        connection.execute(DUCKDB_TABLES)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def test_there_is_enough_to_try() -> None:
    assert len(REACHING) >= 60


@pytest.mark.parametrize("case", REACHING, ids=str)
def test_a_locked_duckdb_refuses_what_reaches_outside(
    case: Case, folder: Path, locked: duckdb.DuckDBPyConnection
) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(duckdb.Error):
        locked.execute(case.sql).fetchall()
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM customers.csv", "FROM 'x.csv'", "SELECT * FROM read_csv('y.csv')"]
)
def test_an_open_duckdb_would_have_read_them(sql: str, folder: Path) -> None:
    with duckdb.connect() as connection:
        assert connection.execute(sql).fetchall() == [(1, "secret")]


@pytest.mark.parametrize(
    "sql",
    [
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "SET lock_configuration = false",
        "SET autoload_known_extensions = true",
        "SET python_enable_replacements = true",
        "PRAGMA memory_limit = '1TB'",
    ],
)
def test_a_locked_duckdb_cannot_be_unlocked(sql: str, locked: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error):
        locked.execute(sql)


def test_a_locked_duckdb_sees_no_variable_of_the_program(locked: duckdb.DuckDBPyConnection) -> None:
    secrets = duckdb.sql("SELECT 'secret' AS s")
    assert secrets is not None
    with pytest.raises(duckdb.Error):
        locked.execute("SELECT * FROM secrets")
