"""Who somebody is, and the ways to find out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.accounts.role import Role
from penstock.accounts.service import same
from penstock.accounts.users import Actor

if TYPE_CHECKING:
    from pydantic import SecretStr

__all__ = ["Authenticator", "Identity", "OperatorToken", "Role"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    username: str
    role: Role
    via: str
    """What vouched for it, for the audit: operator_token, api_key, oidc …"""

    @property
    def actor(self) -> Actor:
        return Actor(username=self.username, role=self.role)


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
