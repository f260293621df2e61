"""Who somebody is, and the ways to find out."""

from __future__ import annotations

import enum
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pydantic import SecretStr


class Role(enum.IntEnum):
    """Each may do what those below it may."""

    ANALYST = 1
    ADMIN = 2
    OPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    username: str
    role: Role
    via: str
    """What vouched for it, for the audit: operator_token, api_key, oidc …"""


class Authenticator(Protocol):
    """One kind of credential."""

    async def identify(self, token: str) -> Identity | None:
        """Whose token this is; None when it is not of this kind, or not valid."""
        ...


class OperatorToken:
    """The one token of the settings; it carries the role ops."""

    def __init__(self, token: SecretStr) -> None:
        self._token = token

    async def identify(self, token: str) -> Identity | None:
        if not same(token, self._token):
            return None
        return Identity(username="operator", role=Role.OPS, via="operator_token")


def same(shown: str, expected: SecretStr) -> bool:
    """Compared in a time that does not tell how much of it was right; an empty secret opens nothing."""
    secret = expected.get_secret_value()
    return bool(secret) and hmac.compare_digest(shown.encode(), secret.encode())
