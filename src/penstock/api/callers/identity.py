"""The identity of a caller, and the authenticators that establish it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pydantic import SecretStr

from penstock.accounts.browser_sessions import OPERATOR
from penstock.accounts.role import Role
from penstock.accounts.service import same
from penstock.accounts.users import Actor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = [
    "OPERATOR",
    "OPERATOR_TOKEN",
    "Authenticator",
    "Identity",
    "OperatorToken",
    "Role",
    "SecretFile",
]
OPERATOR_TOKEN = "operator_token"  # noqa: S105 - how somebody signed in


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    username: str
    role: Role
    via: str
    """How the caller authenticated, for the audit: operator_token, api_key, oidc …"""

    @property
    def actor(self) -> Actor:
        return Actor(username=self.username, role=self.role)


class Authenticator(Protocol):
    """One kind of credential."""

    async def identify(self, token: str) -> Identity | None:
        """The token's identity; None when it is not of this kind, or not valid."""
        ...


class OperatorToken:
    """Authenticates the operator's token, with the role ops."""

    def __init__(self, token: SecretStr | Callable[[], SecretStr]) -> None:
        self._token = token

    @property
    def current(self) -> SecretStr:
        return self._token() if callable(self._token) else self._token

    async def identify(self, token: str) -> Identity | None:
        if not same(token, self.current):
            return None
        return Identity(username=OPERATOR, role=Role.OPS, via=OPERATOR_TOKEN)


class SecretFile:
    """A secret in a file, reread when the file changes; empty when there is no file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version: tuple[int, int, int] | None = None
        self._secret = SecretStr("")

    def __call__(self) -> SecretStr:
        try:
            stat = self._file.stat()
            version = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if version != self._version:
                self._secret = SecretStr(self._file.read_text().strip())
                self._version = version
        except (FileNotFoundError, PermissionError):
            self._version, self._secret = None, SecretStr("")
        return self._secret
