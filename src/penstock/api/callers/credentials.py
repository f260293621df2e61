"""Authenticators for users: API keys, identity provider tokens, and trusted proxy headers.

The role always comes from the users table. A provider's claim or a proxy's header can lower it and
cannot raise it; only on a user's first login does the provider's claim set the initial role.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.accounts.oidc import InvalidRole, Oidc
from penstock.accounts.role import Role
from penstock.accounts.service import same
from penstock.api.callers.client_address import is_in, peer_address
from penstock.api.callers.identity import Identity
from penstock.kit import clock
from penstock.kit.errors import InvalidInput, InvalidToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import SecretStr
    from starlette.requests import Request

    from penstock.accounts.keys import ApiKeys
    from penstock.accounts.users import User, Users
    from penstock.kit.config import Network

PROXY_SECRET = "x-penstock-proxy-secret"  # noqa: S105 - the name of a header
LOGIN_NOTED = timedelta(minutes=1)


class KeyHolders:
    def __init__(self, keys: ApiKeys, users: Users) -> None:
        self._keys = keys
        self._users = users

    async def identify(self, token: str) -> Identity | None:
        bearer = await self._keys.bearer(token)
        if bearer is None:
            return None
        if not bearer.is_active:
            raise _deactivated(bearer.username)
        if not bearer.noted:
            await self._keys.used(bearer.api_key_id)
            await self._users.seen(bearer.username)
        return Identity(username=bearer.username, role=bearer.role, via="api_key")


class TokenHolders:
    def __init__(self, oidc: Oidc, users: Users) -> None:
        self._oidc = oidc
        self._users = users

    async def identify(self, token: str) -> Identity | None:
        claims = await self._oidc.verify(token)
        if claims is None:
            return None
        first = claims.role or Role.ANALYST
        user = await _active_user(
            self._users, claims.username, first, claims.email, claims.display_name
        )
        role = user.role if claims.role is None else min(user.role, claims.role)
        return Identity(username=user.username, role=role, via="oidc")


class TrustedHeaders:
    """Authenticates by `X-Username` from a trusted proxy; `X-User-Role` can lower the role.

    The proxy is identified by its address, by a shared secret, or by both.
    """

    def __init__(
        self, users: Users, *, proxies: Sequence[Network] = (), secret: SecretStr | None = None
    ) -> None:
        if not proxies and secret is None:
            raise InvalidInput("Trusted headers need the address of the proxy or a shared secret.")
        self._users = users
        self._proxies = proxies
        self._secret = secret

    def trusts(self, request: Request) -> bool:
        return self._is_proxy(request) and self._has_secret(request)

    async def identify(self, request: Request) -> Identity | None:
        username = _only(request, "x-username")
        if username is None or not self.trusts(request):
            return None
        user = await _active_user(self._users, username, Role.ANALYST, None, None)
        return Identity(username=user.username, role=user.role, via="trusted_header")

    def lowered(self, request: Request, identity: Identity) -> Identity:
        word = _only(request, "x-user-role")
        if word is None or not self.trusts(request):
            return identity
        role = Role.named(word)
        if role is None:
            raise InvalidRole("X-User-Role must be analyst, admin or ops.")
        return Identity(username=identity.username, role=min(role, identity.role), via=identity.via)

    def _is_proxy(self, request: Request) -> bool:
        return not self._proxies or is_in(self._proxies, peer_address(request.scope))

    def _has_secret(self, request: Request) -> bool:
        if self._secret is None:
            return True
        secret = _only(request, PROXY_SECRET)
        return secret is not None and same(secret, self._secret)


async def _active_user(
    users: Users, username: str, role: Role, email: str | None, display_name: str | None
) -> User:
    try:
        user = await users.provide(username, role=role, email=email, display_name=display_name)
    except InvalidInput as e:
        raise InvalidToken(e.message, hint=e.hint) from None
    if not user.is_active:
        raise _deactivated(user.username)
    if user.last_login_at is None or clock.SYSTEM.now() - user.last_login_at > LOGIN_NOTED:
        await users.seen(user.username)
    return user


def _deactivated(username: str) -> InvalidToken:
    return InvalidToken(
        f"The account {username} is deactivated.", hint="Ask an admin to reactivate it."
    )


def _only(request: Request, name: str) -> str | None:
    """The header's only value: a header sent twice did not come from the proxy alone."""
    values: Sequence[str] = request.headers.getlist(name)
    if len(values) > 1:
        raise InvalidToken(f"The header {name} was sent {len(values)} times.")
    return values[0] if values else None
