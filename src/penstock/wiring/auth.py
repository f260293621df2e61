"""Builds authentication from the settings: users, keys, tokens and service accounts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from penstock.accounts.browser_sessions import BrowserSessions
from penstock.accounts.idempotency import Idempotency
from penstock.accounts.instance_token import InstanceTokens
from penstock.accounts.keys import ApiKeys
from penstock.accounts.oidc import Keys, Oidc, OidcSettings
from penstock.accounts.role import Role
from penstock.accounts.service import StaticToken
from penstock.accounts.shares import Shares
from penstock.accounts.token_review import ReviewSettings, TokenReview
from penstock.accounts.users import Users
from penstock.api.callers.credentials import KeyHolders, TokenHolders, TrustedHeaders
from penstock.api.callers.identity import OperatorToken, SecretFile
from penstock.api.services import People
from penstock.guard.network_reach import Reach
from penstock.kit.cache import InvalidatedCache
from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import Outbound
from penstock.wiring.launchers import kubernetes_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.accounts.keys import Bearer
    from penstock.accounts.service import ServiceTokens
    from penstock.accounts.users import Audit
    from penstock.api.callers.identity import Authenticator
    from penstock.jobs.notifier import Notifier
    from penstock.kit.db import Db
    from penstock.wiring.settings import Settings

CHANGED = "accounts-changed"
"""Notification channel for changed keys and user rights; not a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    people: People
    authenticators: tuple[Authenticator, ...]
    service_tokens: tuple[ServiceTokens, ...]
    instance_tokens: InstanceTokens | None


@asynccontextmanager
async def admission(
    settings: Settings, db: Db, audit: Audit, notifier: Notifier
) -> AsyncIterator[Admission]:
    people = people_of(settings, db, audit, notifier)
    tokens = instance_tokens(settings)
    static = () if settings.service_token is None else (StaticToken(settings.service_token),)
    own = () if tokens is None else (tokens,)
    async with _kubernetes(settings) as review:
        yield Admission(
            people=people,
            authenticators=_authenticators(settings, people),
            service_tokens=(*static, *own, *review),
            instance_tokens=tokens,
        )


def people_of(settings: Settings, db: Db, audit: Audit, notifier: Notifier) -> People:
    def changed() -> None:
        notifier.ring(CHANGED, 0)

    users = Users(db, audit, changed=changed)
    remembered: InvalidatedCache[Bearer] = InvalidatedCache(lambda: notifier.version(CHANGED))
    return People(
        users=users,
        keys=ApiKeys(db, users, audit, changed=changed, remembered=remembered),
        answers=Idempotency(db),
        shares=Shares(db, users, audit, changed=changed),
        headers=_trusted_headers(settings, users),
        sessions=_sessions(settings, db, audit),
    )


def operator_token(settings: Settings) -> OperatorToken | None:
    if settings.operator_token_file is not None:
        return OperatorToken(SecretFile(settings.operator_token_file))
    return None if settings.operator_token is None else OperatorToken(settings.operator_token)


def _trusted_headers(settings: Settings, users: Users) -> TrustedHeaders | None:
    if not settings.trusted_headers:
        return None
    return TrustedHeaders(
        users, proxies=settings.proxy_networks, secret=settings.trusted_proxy_secret
    )


def _sessions(settings: Settings, db: Db, audit: Audit) -> BrowserSessions | None:
    token = operator_token(settings)
    if token is None:
        return None
    return BrowserSessions(
        db,
        audit,
        operator_token=lambda: token.current,
        link_life=timedelta(seconds=settings.login_link_seconds),
        session_life=timedelta(seconds=settings.session_seconds),
    )


def instance_tokens(settings: Settings) -> InstanceTokens | None:
    key = settings.service_token or settings.secret_key
    return (
        InstanceTokens(key.get_secret_value())
        if key is not None and key.get_secret_value()
        else None
    )


def _authenticators(settings: Settings, people: People) -> tuple[Authenticator, ...]:
    authenticators: list[Authenticator] = []
    operator = operator_token(settings)
    if operator is not None:
        authenticators.append(operator)
    authenticators.append(KeyHolders(people.keys, people.users))
    if settings.oidc_issuer is not None:
        authenticators.append(TokenHolders(_oidc(settings, settings.oidc_issuer), people.users))
    return tuple(authenticators)


def _oidc(settings: Settings, issuer: str) -> Oidc:
    policy = replace(settings.outbound_policy, private=settings.oidc_allow_private)
    check = Reach(private=policy.private, allow=policy.allow)

    async def reach(url: str) -> None:
        await asyncio.to_thread(check, url)

    oidc = OidcSettings(
        issuer=issuer,
        audience=settings.oidc_audience,
        jwks_url=settings.oidc_jwks_url,
        username_claim=settings.oidc_username_claim,
        email_claim=settings.oidc_email_claim,
        role_claim=settings.oidc_role_claim,
        roles=None if settings.oidc_roles is None else _roles(settings.oidc_roles),
        leeway_seconds=settings.oidc_leeway_seconds,
    )
    return Oidc(oidc, Keys(oidc, reach=reach, outbound=Outbound(policy)))


def _roles(text: str) -> Mapping[str, Role]:
    roles = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, _, word = pair.rpartition("=")
        role = Role.named(word.strip())
        if role is None or not name.strip():
            raise InvalidInput(
                f"Setting oidc_roles: {pair[:80]!r} is not name=role.",
                hint="Roles: analyst, admin, ops.",
            )
        roles[name.strip()] = role
    return roles


@asynccontextmanager
async def _kubernetes(settings: Settings) -> AsyncIterator[tuple[ServiceTokens, ...]]:
    workers, wrappers = (
        _accounts(settings.token_review_workers),
        _accounts(settings.token_review_wrappers),
    )
    if not workers | wrappers:
        yield ()
        return
    review = ReviewSettings(
        audience=settings.token_review_audience, workers=workers, wrappers=wrappers
    )
    async with kubernetes_api(settings) as api:
        ask = partial(api.review_token, audience=review.audience)
        yield (TokenReview(ask, review),)


def _accounts(text: str | None) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, (text or "").split(","))))
