"""Browser sessions of the operator: a one-time login link is exchanged for a session cookie.

The database stores HMACs keyed with the operator token, so rotating the token ends all sessions
and links.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.accounts.users import SQL
from penstock.kit.errors import InvalidToken

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from pydantic import SecretStr

    from penstock.accounts.users import Audit
    from penstock.kit.db import Db

OPERATOR = "operator"
MAX_SECRET = 200
LOGIN_HINT = "Print a new link: penstock login"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLink:
    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    cookie: str
    expires_at: datetime


class BrowserSessions:
    def __init__(
        self,
        db: Db,
        audit: Audit,
        *,
        operator_token: Callable[[], SecretStr],
        link_life: timedelta,
        session_life: timedelta,
    ) -> None:
        self._db = db
        self._audit = audit
        self._operator_token = operator_token
        self._link_life = link_life
        self.session_life = session_life

    async def create_link(self) -> LoginLink:
        token = secrets.token_urlsafe(32)
        async with self._db.transaction() as tx:
            expires_at: datetime = await tx.value(
                SQL.session_link_add, link_digest=self._digest("link", token), life=self._link_life
            )
            await self._audit(tx, OPERATOR, "login_link.create", "session", {})
        return LoginLink(token=token, expires_at=expires_at)

    async def open(self, link: str, *, address: str) -> BrowserSession:
        """Exchange a login link for a session; a link works once."""
        cookie = secrets.token_urlsafe(32)
        async with self._db.transaction() as tx:
            expires_at: datetime | None = await tx.value(
                SQL.session_open,
                link_digest=self._digest("link", link),
                session_digest=self._digest("session", cookie),
                life=self.session_life,
            )
            if expires_at is None:
                raise InvalidToken(
                    "This login link was already used or has expired.", hint=LOGIN_HINT
                )
            await self._audit(tx, OPERATOR, "session.open", "session", {"address": address})
        return BrowserSession(cookie=cookie, expires_at=expires_at)

    async def is_open(self, cookie: str) -> bool:
        digest = self._digest("session", cookie)
        return bool(await self._db.value(SQL.session_find, session_digest=digest))

    async def close(self, cookie: str) -> None:
        async with self._db.transaction() as tx:
            if await tx.changed(SQL.session_close, session_digest=self._digest("session", cookie)):
                await self._audit(tx, OPERATOR, "session.close", "session", {})

    def _digest(self, kind: str, secret: str) -> bytes:
        key = self._operator_token().get_secret_value()
        if not key or len(secret) > MAX_SECRET:
            raise InvalidToken("Invalid login link or session.", hint=LOGIN_HINT)
        return hmac.digest(key.encode(), f"{kind}:{secret}".encode(), "sha256")
