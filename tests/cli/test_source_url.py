from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.cli.source_url import read
from penstock.kit.errors import InvalidInput
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from pathlib import Path

PASSWORDS = (
    "PENSTOCK_SOURCE_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PWD",
    "TRINO_PASSWORD",
    "AWS_ENDPOINT_URL",
    "PGUSER",
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PASSWORDS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "me")


@pytest.mark.parametrize(
    ("text", "kind", "config"),
    [
        (
            "postgresql://ann@db.example:6000/shop?sslmode=require",
            "postgres",
            {
                "host": "db.example",
                "port": 6000,
                "user": "ann",
                "database": "shop",
                "sslmode": "require",
            },
        ),
        (
            "postgres:///shop?host=/run/pg&port=5433",
            "postgres",
            {"host": "/run/pg", "port": "5433", "user": "me", "database": "shop"},
        ),
        ("mysql://a%40b@db/sh%2Fop", "mysql", {"host": "db", "user": "a@b", "database": "sh/op"}),
        (
            "trino://ann@trino.example:8443/lake/sales?role=analysts",
            "trino",
            {
                "url": "https://trino.example:8443",
                "user": "ann",
                "catalog": "lake",
                "schema": "sales",
                "starburst_role": "analysts",
            },
        ),
        (
            "trino://localhost:8080/tpch?role=x&role_catalog=",
            "trino",
            {
                "url": "http://localhost:8080",
                "user": "me",
                "catalog": "tpch",
                "schema": None,
                "starburst_role": "x",
                "role_catalog": None,
            },
        ),
        (
            "s3://bucket/orders?region=eu-west-1",
            "files",
            {"url": "s3://bucket/orders", "region": "eu-west-1"},
        ),
    ],
)
def test_a_url_becomes_a_configuration_that_its_driver_takes(
    text: str, kind: str, config: dict[str, object]
) -> None:
    source = read(text)
    assert (source.kind, dict(source.config), dict(source.secrets)) == (kind, config, {})
    open_source(source.kind, source.config, source.secrets)


def test_a_path_is_a_database_a_folder_or_one_table(tmp_path: Path) -> None:
    database, file = tmp_path / "shop.duckdb", tmp_path / "orders.2020.csv.gz"
    for path in (database, file):
        path.touch()
    for text in (str(database), f"duckdb:{database}", f"duckdb://{database}"):
        assert read(text).config == {"database": str(database)}
    assert read(f"duckdb:{tmp_path}").config == {"directory": str(tmp_path)}
    assert (read(str(tmp_path)).kind, read(str(tmp_path)).config) == (
        "files",
        {"url": tmp_path.as_uri()},
    )
    assert read(file.as_uri()).config == {
        "url": tmp_path.as_uri(),
        "tables": {"orders": "orders.2020.csv.gz"},
    }


def test_a_password_comes_from_the_environment_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    assert read("postgresql://ann@db/x").secrets == {"password": "hunter2"}
    assert read("mysql://ann@db/x").secrets == {}
    monkeypatch.setenv("PENSTOCK_SOURCE_PASSWORD", "first")
    assert read("trino://ann@db/x").secrets == {"password": "first"}
    assert "first" not in repr(read("postgresql://ann@db/x"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("postgresql://ann:hunter2@db/x", "password in a URL"),
        ("oracle://ann@db/x", "no source oracle"),
        ("warehouse", "no file or folder"),
        ("duckdb:/nowhere/x.duckdb", "no file or folder"),
        ("postgresql://db:port/x", "malformed"),
        ("postgresql://[db/x", "malformed"),
    ],
)
def test_what_is_no_source_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        read(text)
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"
