from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.guard.grammar import GRAMMARS
from penstock.kit.errors import InvalidInput
from penstock.sources.errors import DriverMissing
from penstock.sources.registry import DRIVERS, open_source

THIRD_PARTY = (
    "adbc_driver_manager",
    "duckdb",
    "google.cloud",
    "obstore",
    "pyarrow",
    "pymysql",
    "sqlglot",
)


def test_the_registry_loads_no_driver() -> None:
    script = "import sys, penstock.sources.registry as r; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not [name for name in loaded if name.startswith(THIRD_PARTY)]
    assert not [name for name in loaded if name.startswith("penstock.sources.postgres")]


def test_an_unknown_type_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="oracle") as unknown:
        open_source("oracle", {}, {})
    assert unknown.value.hint
    assert "postgres" in unknown.value.hint


@pytest.mark.parametrize(
    ("kind", "library", "extra"),
    [
        ("duckdb", "duckdb", "duckdb"),
        ("files", "obstore", "worker"),
        ("mysql", "pymysql", "mysql"),
        ("postgres", "adbc_driver_manager", "postgres"),
    ],
)
def test_an_absent_library_names_the_extra_that_brings_it(
    kind: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = (f"penstock.sources.{kind}", "penstock.sources.embedded")
    for name in [name for name in sys.modules if name.startswith((*ours, library))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DriverMissing, match=library) as missing:
        open_source(kind, {}, {})
    assert missing.value.hint == f"pip install 'penstock[{extra}]'"


@pytest.mark.parametrize(
    ("kind", "config", "secrets", "words"),
    [
        ("postgres", {"user": "u"}, {}, "database is missing"),
        ("postgres", {"user": "u", "database": "d", "port": 0}, {}, "port"),
        ("postgres", {"user": "u", "database": "d", "prot": 1}, {}, "no setting prot"),
        (
            "postgres",
            {"user": "u", "database": "d", "password": "hunter2"},
            {},
            "password belongs in the secrets",
        ),
        ("postgres", {"user": "u", "database": "d", "sslmode": "maybe"}, {}, "sslmode"),
        ("mysql", {"user": "u", "database": 7}, {}, "database"),
        ("duckdb", {"memory_limit": "much"}, {}, "memory_limit"),
        ("files", {}, {}, "url is missing"),
        (
            "files",
            {"url": "s3://b", "secret_access_key": "hunter2"},
            {},
            "secret_access_key belongs in the secrets",
        ),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said_in_a_sentence(
    kind: str, config: dict[str, object], secrets: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as wrong:
        open_source(kind, config, secrets)
    assert wrong.value.message.startswith(f"{kind}: ")
    assert "hunter2" not in wrong.value.message


def test_an_unknown_secret_is_refused_and_none_is_shown() -> None:
    with pytest.raises(InvalidInput, match="no secret token") as unknown:
        open_source("mysql", {"user": "u", "database": "d"}, {"token": "hunter2"})
    assert "hunter2" not in repr(unknown.value)
    source = open_source("mysql", {"user": "u", "database": "d"}, {"password": "hunter2"})
    assert "hunter2" not in repr(vars(source))


def test_a_driver_s_dialect_is_known_before_it_is_opened() -> None:
    opened = {
        "duckdb": open_source("duckdb", {}, {}).dialect,
        "postgres": open_source(
            "postgres", {"host": "h", "database": "d", "user": "u"}, {}
        ).dialect,
        "trino": open_source("trino", {"url": "https://t", "user": "u"}, {}).dialect,
    }
    assert opened == {kind: DRIVERS[kind].dialect for kind in opened}
    assert {driver.dialect for driver in DRIVERS.values()} <= set(GRAMMARS)
