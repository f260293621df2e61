"""What people show: a key of ours, a token of their identity provider, or a name that a trusted proxy vouches for.

Whoever vouches, the role is the one of the users table. A provider's claim and a proxy's header can lower it, and
neither can raise it; only of somebody who comes for the first time does the provider say what they begin with.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from penstock.accounts.oidc import InvalidRole, Oidc
from penstock.accounts.role import Role
from penstock.api.identity import Identity
from penstock.kit import clock
from penstock.kit.config import is_loopback
from penstock.kit.errors import InvalidInput, InvalidToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from penstock.accounts.keys import ApiKeys
    from penstock.accounts.users import User, Users

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
        user = await _known(self._users, claims.username, first, claims.email, claims.display_name)
        role = user.role if claims.role is None else min(user.role, claims.role)
        return Identity(username=user.username, role=role, via="oidc")


class TrustedHeaders:
    """`X-Username`, and `X-User-Role` to be less than one is.

    `local` trusts them only between programs of this machine: the caller's address and the name they call us by are
    both loopback, so that a web page that has its own name point here gets nowhere.
    """

    def __init__(self, users: Users, *, local: bool) -> None:
        self._users = users
        self._local = local

    @property
    def local(self) -> bool:
        return self._local

    def trusts(self, request: Request) -> bool:
        return not self._local or (_from_loopback(request) and is_loopback(request.url.hostname or ""))

    async def identify(self, request: Request) -> Identity | None:
        username = _only(request, "x-username")
        if username is None or not self.trusts(request):
            return None
        user = await _known(self._users, username, Role.ANALYST, None, None)
        return Identity(username=user.username, role=user.role, via="trusted_header")

    def lowered(self, request: Request, identity: Identity) -> Identity:
        word = _only(request, "x-user-role")
        if word is None or not self.trusts(request):
            return identity
        role = Role.named(word)
        if role is None:
            raise InvalidRole("X-User-Role must be analyst, admin or ops.")
        return Identity(username=identity.username, role=min(role, identity.role), via=identity.via)


async def _known(users: Users, username: str, role: Role, email: str | None, display_name: str | None) -> User:
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
    return InvalidToken(f"The account {username} is deactivated.", hint="Ask an admin to activate it again.")


def _only(request: Request, name: str) -> str | None:
    """A header that is there twice was not written by the proxy alone."""
    values: Sequence[str] = request.headers.getlist(name)
    if len(values) > 1:
        raise InvalidToken(f"{name} is there {len(values)} times.")
    return values[0] if values else None


def _from_loopback(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False
