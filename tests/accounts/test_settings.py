"""The authentication settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr, ValidationError

from penstock.api.callers.credentials import KeyHolders, TokenHolders
from penstock.api.callers.identity import OperatorToken
from penstock.jobs.notifier import Notifier
from penstock.kit.db import Db
from penstock.kit.errors import InvalidInput
from penstock.wiring.auth import admission, instance_tokens
from penstock.wiring.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path


def load_settings(home: Path, **values: Any) -> Settings:
    return Settings(home=home, **values)


@pytest.mark.parametrize(
    ("values", "is_local_only"),
    [
        ({}, True),
        ({"host": "0.0.0.0"}, False),
        ({"database_url": SecretStr("postgresql:///elsewhere")}, False),
        ({"trusted_headers": True, "trusted_proxies": "10.0.0.7"}, False),
        ({"local_only": True, "database_url": SecretStr("postgresql:///elsewhere")}, True),
        ({"local_only": False}, False),
    ],
)
def test_only_a_machine_of_ones_own_takes_its_own_requests_alone(
    tmp_path: Path, values: dict[str, Any], is_local_only: bool
) -> None:
    assert load_settings(tmp_path, **values).is_local_only is is_local_only


def test_headers_are_trusted_only_with_the_address_or_the_secret_of_the_proxy(
    tmp_path: Path,
) -> None:
    assert load_settings(tmp_path).trusted_headers is False
    with pytest.raises(
        ValidationError, match="set trusted_proxies to its address or trusted_proxy_secret"
    ):
        load_settings(tmp_path, trusted_headers=True)
    with pytest.raises(ValidationError, match="at least 16 characters"):
        load_settings(tmp_path, trusted_headers=True, trusted_proxy_secret="x" * 15)
    assert load_settings(
        tmp_path, trusted_headers=True, trusted_proxy_secret="x" * 16
    ).trusted_headers
    with pytest.raises(ValidationError, match="write addresses such as"):
        load_settings(tmp_path, trusted_headers=True, trusted_proxies="proxy.example")
    for proxies in ("10.0.0.7", "10.1.0.0/16, fd00::/8"):
        assert load_settings(tmp_path, trusted_headers=True, trusted_proxies=proxies).proxy_networks


def test_trusted_headers_without_a_proxy_are_named_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_TRUSTED_HEADERS", "true")
    with pytest.raises(
        InvalidInput, match=r"^Settings: trusted_headers is on, and nothing tells the proxy"
    ):
        load()


async def audit(*_: object) -> None:
    """Nothing is changed here."""


async def test_nobody_is_let_in_but_by_what_was_set(tmp_path: Path, database: str) -> None:
    async with Db(database, size=1) as db:
        async with admission(load_settings(tmp_path), db, audit, Notifier(db)) as bare:
            assert [type(authenticator) for authenticator in bare.authenticators] == [KeyHolders]
            assert bare.service_tokens == ()
        full = load_settings(
            tmp_path,
            operator_token="operator",
            service_token="service",
            oidc_issuer="https://login.example",
            oidc_roles="graph-ops=ops, a=b=admin",
        )
        async with admission(full, db, audit, Notifier(db)) as auth:
            assert [type(authenticator) for authenticator in auth.authenticators] == [
                OperatorToken,
                KeyHolders,
                TokenHolders,
            ]
            assert len(auth.service_tokens) == 2
            assert auth.instance_tokens is not None
            again = instance_tokens(full)
            assert again is not None
            assert again.mint(1) == auth.instance_tokens.mint(1)


@pytest.mark.parametrize("roles", ["graph-ops", "graph-ops=king", "=ops"])
async def test_roles_that_are_none_are_refused_at_the_start(
    tmp_path: Path, database: str, roles: str
) -> None:
    settings = load_settings(tmp_path, oidc_issuer="https://login.example", oidc_roles=roles)
    async with Db(database, size=1) as db:
        with pytest.raises(InvalidInput, match="oidc_roles"):
            async with admission(settings, db, audit, Notifier(db)):
                pass
