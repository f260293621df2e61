"""What is Penstock's own is no data source, by whatever name somebody leads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.sources.home import DATA_FOLDERS, HomeGuard, OwnHome

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = {
    "db.internal": frozenset({"10.0.0.5"}),
    "alias.example": frozenset({"10.0.0.5"}),
    "10.0.0.5": frozenset({"10.0.0.5"}),
    "other.example": frozenset({"10.0.0.6"}),
    "localhost": frozenset({"127.0.0.1", "::1"}),
    "127.0.0.1": frozenset({"127.0.0.1"}),
    "::1": frozenset({"::1"}),
    "0.0.0.0": frozenset({"0.0.0.0"}),
    "10.0.0.9": frozenset({"10.0.0.9"}),
    "store.internal": frozenset({"10.0.0.9"}),
    "minio.example": frozenset({"10.0.0.9"}),
}
POSTGRES = {"user": "u", "database": "penstock"}


def lookup(host: str) -> frozenset[str]:
    return HOSTS.get(host.strip("[]"), frozenset())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "machine" / "home"
    (root / "secrets").mkdir(parents=True)
    for name in DATA_FOLDERS:
        (root / name).mkdir()
    elsewhere = tmp_path / "shared" / "cluster"
    elsewhere.mkdir(parents=True)
    (root / "postgres").symlink_to(elsewhere)
    return root


def guard(home: Path, **changes: Any) -> HomeGuard:
    values: dict[str, Any] = {
        "storage_url": f"file://{home / 'storage'}",
        "dsn": "postgresql://me@db.internal:5433/penstock",
        "address": ("127.0.0.1", 8080),
    }
    return HomeGuard(home=home, lookup=lookup, **(values | changes))


def refused(check: HomeGuard, kind: str, **config: Any) -> bool:
    try:
        check(kind, config)
    except OwnHome:
        return True
    return False


def test_files_of_the_home_are_refused_by_any_path(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "innocent"
    link.symlink_to(home / "secrets")
    check = guard(home)
    for path in (
        home,
        home / "secrets",
        home.parent,
        tmp_path,
        link,
        home / "lake" / ".." / "secrets",
        "/",
    ):
        assert refused(check, "duckdb", directory=str(path)), path
        assert refused(check, "files", url=f"file://{path}"), path
    assert refused(check, "files", url=f"file://{home.parent}/h%6fme/secrets")
    assert refused(check, "duckdb", database=str(home / "storage" / "x.duckdb"))
    assert refused(check, "duckdb", database=str(tmp_path / "shared" / "cluster" / "data" / "x.db"))


def test_data_for_people_is_read_wherever_it_lies(home: Path, tmp_path: Path) -> None:
    check = guard(home)
    (tmp_path / "data").mkdir()
    for path in (tmp_path / "data", home / "lake" / "sales", home / "warehouse"):
        assert not refused(check, "duckdb", directory=str(path)), path
        assert not refused(check, "files", url=f"file://{path}"), path
    assert not refused(check, "duckdb", database=str(home.parent / "home-data.duckdb"))
    assert not refused(check, "duckdb")


def test_our_database_is_refused_by_any_alias_and_others_of_its_server_are_not(home: Path) -> None:
    check = guard(home)
    for host in (
        "db.internal",
        "alias.example",
        "10.0.0.5",
        "DB.internal.",
        "other.example,alias.example",
    ):
        assert refused(check, "postgres", host=host, port=5433, **POSTGRES), host
    assert not refused(
        check, "postgres", host="alias.example", port=5433, **(POSTGRES | {"database": "sales"})
    )
    assert not refused(check, "postgres", host="alias.example", port=5432, **POSTGRES)
    assert not refused(check, "postgres", host="other.example", port=5433, **POSTGRES)
    local = guard(home, dsn="postgresql://me@localhost/penstock")
    for config in ({}, {"host": "127.0.0.1"}, {"host": "::1", "port": 5432}):
        assert refused(local, "postgres", **config, **POSTGRES), config


def test_the_embedded_server_is_refused_as_a_whole(home: Path) -> None:
    socket = (home / "postgres").resolve() / "socket"
    check = guard(home, dsn=f"postgresql:///penstock?host={socket}&port=5432&user=penstock")
    for database in ("penstock", "postgres", "template1"):
        for host in (socket, home / "postgres" / "socket"):
            assert refused(check, "postgres", host=str(host), user="u", database=database), (
                host,
                database,
            )
    long_path = guard(
        home, dsn="postgresql:///penstock?host=/tmp/penstock-1000-abc&port=5432&user=penstock"
    )
    assert refused(
        long_path, "postgres", host="/tmp/penstock-1000-abc", user="u", database="postgres"
    )
    shared = guard(
        home, dsn="postgresql:///penstock?host=/var/run/postgresql&port=5432&user=penstock"
    )
    assert refused(shared, "postgres", host="/var/run/postgresql", **POSTGRES)
    assert not refused(shared, "postgres", host="/var/run/postgresql", user="u", database="sales")


def test_the_control_planes_own_address_is_refused(home: Path) -> None:
    for listens in ("127.0.0.1", "0.0.0.0", "localhost"):
        check = guard(home, address=(listens, 8080))
        for url in ("http://127.0.0.1:8080", "https://localhost:8080", "http://[::1]:8080"):
            assert refused(check, "elasticsearch", url=url), (listens, url)
            assert refused(check, "trino", url=url, user="u"), (listens, url)
        assert not refused(check, "elasticsearch", url="http://127.0.0.1:9200")
        assert not refused(check, "elasticsearch", url="http://other.example:8080")


def test_our_part_of_the_object_store_is_refused_and_the_rest_of_it_is_not(home: Path) -> None:
    ours = {
        "storage_url": "s3://company/penstock",
        "storage_endpoint": "http://store.internal:9000",
    }
    check = guard(home, **ours)
    for url in (
        "s3://company/penstock",
        "s3://company/penstock/runs/1",
        "s3://company",
        "s3://company/",
    ):
        for endpoint in (
            "http://store.internal:9000",
            "http://minio.example:9001",
            "http://10.0.0.9:9000",
        ):
            assert refused(check, "files", url=url, endpoint=endpoint), (url, endpoint)
    for url in (
        "s3://company/penstock-data",
        "s3://company/sales",
        "s3://others/penstock",
        "gs://company/penstock",
    ):
        assert not refused(check, "files", url=url, endpoint="http://store.internal:9000"), url
    assert not refused(
        check, "files", url="s3://company/penstock", endpoint="http://other.example:9000"
    )
    vendor = guard(home, storage_url="s3://company/penstock")
    assert refused(vendor, "files", url="s3://company/penstock/runs")
    assert refused(
        vendor, "files", url="s3://penstock/runs", endpoint="https://company.s3.amazonaws.com"
    )
    assert not refused(
        vendor, "files", url="s3://sales/penstock", endpoint="https://s3.amazonaws.com"
    )


def test_the_refusal_names_the_setting_and_says_what_to_do(home: Path) -> None:
    with pytest.raises(OwnHome, match="Penstock's own database") as caught:
        guard(home)("postgres", {"host": "alias.example", "port": 5433} | POSTGRES)
    assert caught.value.details["field"] == "config.host"
    assert "data to read" in (caught.value.hint or "")
