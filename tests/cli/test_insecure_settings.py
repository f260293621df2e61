"""What `penstock doctor` warns of: every rule with a setting that it names and one that it does
not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import pytest

from penstock.cli.insecure_settings import RULES, Deployment, SourceFacts, warnings
from penstock.graph_server.settings import GraphServerSettings
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

STRONG, OTHER = "Zk3v9QwLx72bTnY8", "m4Pq8Rs1Jh6Vd0Ka"
ELSEWHERE = "postgresql://u@db.internal/p"
SAFE_ELSEWHERE = f"{ELSEWHERE}?sslmode=verify-full"
PROXIED = {"trusted_headers": True, "trusted_proxies": "10.0.0.7"}
CASES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("trusted headers", PROXIED, PROXIED | {"trusted_proxy_secret": STRONG}),
    ("trusted proxies", {"trusted_proxies": "10.0.0.0/7"}, {"trusted_proxies": "10.0.0.0/8"}),
    ("trusted proxies", {"trusted_proxies": "::/31"}, {"trusted_proxies": "fd00::/32"}),
    ("local only", {"local_only": False}, {"local_only": False, "host": "0.0.0.0"}),
    ("plain HTTP", {"host": "0.0.0.0"}, {"host": "0.0.0.0", "url": "https://penstock.example"}),
    ("plain HTTP", {"host": "0.0.0.0", "url": "http://penstock.example"}, {"host": "::1"}),
    ("sealing key", {"database_url": ELSEWHERE}, {"database_url": ELSEWHERE, "secret_key": STRONG}),
    ("tokens", {"service_token": STRONG[:15]}, {"service_token": STRONG}),
    ("tokens", {"operator_token": "please-ChangeMe-now"}, {"operator_token": STRONG}),
    (
        "shared tokens",
        {"service_token": STRONG, "operator_token": STRONG},
        {"service_token": STRONG, "operator_token": OTHER},
    ),
    ("rate limits", {"user_requests_per_second": 0}, {"user_requests_per_second": 1}),
    ("rate limits", {"address_requests_per_second": 0}, {"address_requests_per_second": 1}),
    ("rate limits", {"failed_logins_per_minute": 0}, {"failed_logins_per_minute": 1}),
    (
        "private networks",
        {"host": "0.0.0.0", "allow_private_sources": True},
        {"host": "127.0.0.1", "allow_private_sources": True},
    ),
    (
        "identity provider",
        {"oidc_issuer": "https://login.example", "oidc_allow_private": True},
        {"oidc_issuer": "https://login.example"},
    ),
    (
        "identity provider",
        {"oidc_issuer": "http://login.example"},
        {"oidc_issuer": "http://127.0.0.1:9"},
    ),
    (
        "identity provider",
        {"oidc_jwks_url": "http://login.example"},
        {"oidc_jwks_url": "https://login.example"},
    ),
    ("storage", {"storage_allow_http": True}, {"storage_allow_http": False}),
    (
        "storage",
        {"storage_endpoint": "http://s3.internal"},
        {"storage_endpoint": "http://127.0.0.1:9000"},
    ),
    ("database", {"database_url": ELSEWHERE}, {"database_url": SAFE_ELSEWHERE}),
    (
        "database",
        {"database_url": SAFE_ELSEWHERE, "database_direct_url": f"{ELSEWHERE}?sslmode=prefer"},
        {
            "database_url": "postgresql://u@127.0.0.1,[::1]:5432/p",
            "database_direct_url": SAFE_ELSEWHERE,
        },
    ),
    (
        "database",
        {"database_url": "postgresql://u@127.0.0.1,db/p"},
        {"database_url": "postgresql:///p?host=/run/pg"},
    ),
    (
        "catalogs",
        {"catalogs": {"lake": {"uri": "http://c"}}},
        {"catalogs": {"lake": {"uri": "https://c"}}},
    ),
    (
        "catalogs",
        {"maintenance_engines": {"t": {"url": "http://trino"}}},
        {"maintenance_engines": {"t": {"url": "https://trino"}}},
    ),
    (
        "old keys",
        {"secret_key": STRONG, "secret_keys_old": OTHER},
        {"secret_key": STRONG, "secret_keys_old": " "},
    ),
    ("sessions", {"session_seconds": 86_401}, {"session_seconds": 86_400}),
)
SOURCES: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("postgres", {"host": "db.internal", "sslmode": "disable"}, True),
    ("postgres", {"host": "db.internal", "sslmode": "prefer"}, True),
    ("postgres", {"host": "db.internal"}, True),
    ("postgres", {"host": "db.internal", "sslmode": "require"}, False),
    ("postgres", {"host": "127.0.0.1", "sslmode": "disable"}, False),
    ("postgres", {"host": "/run/postgresql"}, False),
    ("postgres", {}, False),
    ("mysql", {"host": "db.internal", "tls": "disable"}, True),
    ("mysql", {"host": "db.internal", "tls": "verify"}, False),
    ("trino", {"url": "http://trino.internal", "allow_http": True}, True),
    ("trino", {"url": "https://trino.internal"}, False),
    ("elasticsearch", {"url": "http://127.0.0.1:9200"}, False),
    ("files", {"url": "s3://bucket/x", "endpoint": "http://s3.internal"}, True),
    ("duckdb", {"database": "/data/x.duckdb"}, False),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "secrets").mkdir(parents=True, mode=0o700)
    folder.chmod(0o711)
    token = folder / "secrets" / "operator_token"
    token.write_text(STRONG)
    token.chmod(0o600)
    return folder


def names(home: Path, settings: dict[str, Any] | None = None, **facts: Any) -> list[str]:
    findings = warnings(
        Deployment(settings=Settings(home=home, **(settings or {})), home=home, **facts)
    )
    for warning in findings:
        assert warning.sentence.endswith(".")
        assert warning.sentence.count(". ") == 0, "one sentence"
        assert warning.mend
    return [warning.name for warning in findings]


def test_a_new_home_gives_no_warning(home: Path) -> None:
    assert names(home) == []


@pytest.mark.parametrize(("name", "insecure", "secure"), CASES)
def test_an_insecure_setting_is_warned_of_and_a_secure_one_is_not(
    home: Path, name: str, insecure: dict[str, Any], secure: dict[str, Any]
) -> None:
    assert name in names(home, insecure)
    assert name not in names(home, secure)


@pytest.mark.parametrize(("kind", "config", "warned"), SOURCES)
def test_a_source_that_may_do_without_tls_is_warned_of(
    home: Path, kind: str, config: dict[str, Any], warned: bool
) -> None:
    sources = [SourceFacts(name="shop", type=kind, config=config)]
    assert ("source" in names(home, sources=sources)) is warned


@pytest.mark.parametrize(
    ("mode", "warned"),
    [(0o755, True), (0o730, True), (0o715, True), (0o711, False), (0o750, False)],
)
def test_a_home_that_others_can_look_into_is_warned_of(home: Path, mode: int, warned: bool) -> None:
    home.chmod(mode)
    assert ("home" in names(home)) is warned


def test_secrets_that_others_may_read_are_warned_of(home: Path) -> None:
    for path, mode, secure in (
        (home / "secrets", 0o750, 0o700),
        (home / "secrets" / "operator_token", 0o640, 0o600),
    ):
        path.chmod(mode)
        assert names(home) == ["secrets"]
        path.chmod(secure)
        assert names(home) == []


def test_an_operator_token_file_that_others_may_read_is_warned_of(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(STRONG)
    for mode, warned in ((0o644, True), (0o640, False)):
        os.chmod(file, mode)  # noqa: PTH101
        assert ("operator token" in names(home, {"operator_token_file": file})) is warned


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://penstock.example", True),
        ("https://penstock.example", False),
        ("http://127.0.0.1:8080", False),
    ],
)
def test_clients_that_send_keys_over_plain_http_are_warned_of(
    home: Path, url: str, warned: bool
) -> None:
    assert ("client" in names(home, client_url=url)) is warned


@pytest.mark.parametrize(
    ("isolation", "warned"), [("off", True), ("prefer", False), ("require", False)]
)
def test_graph_servers_without_isolation_are_warned_of(
    home: Path, isolation: Literal["off", "prefer", "require"], warned: bool
) -> None:
    servers = GraphServerSettings(isolation=isolation)
    assert ("isolation" in names(home, graph_servers=servers)) is warned


def test_every_rule_is_tried_here() -> None:
    tried = {name for name, _, _ in CASES} | {
        "home",
        "secrets",
        "operator token",
        "client",
        "source",
        "isolation",
    }
    assert {rule.name for rule in RULES} == tried
