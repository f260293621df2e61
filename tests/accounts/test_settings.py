"""What the settings say of who is let in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from penstock.admission import admission, instance_tokens
from penstock.api.credentials import KeyHolders, TokenHolders
from penstock.api.identity import OperatorToken
from penstock.jobs.bell import Bell
from penstock.kit.config import Settings
from penstock.kit.db import Db
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


def told(home: Path, **values: Any) -> Settings:
    return Settings(home=home, **values)


@pytest.mark.parametrize(
    ("values", "trusted"),
    [
        ({}, "local"),
        ({"host": "0.0.0.0"}, False),
        ({"database_url": SecretStr("postgresql:///elsewhere")}, False),
        ({"trusted_headers": True, "host": "0.0.0.0"}, True),
        ({"trusted_headers": "true"}, True),
        ({"trusted_headers": "false"}, False),
        ({"trusted_headers": "local", "database_url": SecretStr("postgresql:///elsewhere")}, "local"),
    ],
)
def test_headers_are_trusted_by_default_only_on_a_machine_of_ones_own(
    tmp_path: Path, values: dict[str, Any], trusted: object
) -> None:
    assert told(tmp_path, **values).trusts_headers == trusted


async def audit(*_: object) -> None:
    """Nothing is changed here."""


async def test_nobody_is_let_in_but_by_what_was_set(tmp_path: Path, database: str) -> None:
    async with Db(database, size=1) as db:
        async with admission(told(tmp_path), db, audit, Bell(db)) as bare:
            assert [type(each) for each in bare.authenticators] == [KeyHolders]
            assert bare.services == ()
        full = told(
            tmp_path,
            operator_token="operator",
            service_token="service",
            oidc_issuer="https://login.example",
            oidc_roles="graph-ops=ops, a=b=admin",
        )
        async with admission(full, db, audit, Bell(db)) as made:
            assert [type(each) for each in made.authenticators] == [OperatorToken, KeyHolders, TokenHolders]
            assert len(made.services) == 2
            assert made.instance_tokens is not None
            again = instance_tokens(full)
            assert again is not None
            assert again.mint(1) == made.instance_tokens.mint(1)


@pytest.mark.parametrize("roles", ["graph-ops", "graph-ops=king", "=ops"])
async def test_roles_that_are_none_are_refused_at_the_start(tmp_path: Path, database: str, roles: str) -> None:
    settings = told(tmp_path, oidc_issuer="https://login.example", oidc_roles=roles)
    async with Db(database, size=1) as db:
        with pytest.raises(InvalidInput, match="oidc_roles"):
            async with admission(settings, db, audit, Bell(db)):
                pass
