"""A control plane for tests: real services on the test's own database, behind a real HTTP server.

The loops do not run: a test calls `reap()` when needed. The server is started once and serves one
control plane after the other, because starting and stopping it costs more than most tests.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from penstock.accounts.browser_sessions import BrowserSessions
from penstock.accounts.idempotency import Idempotency
from penstock.accounts.instance_token import InstanceTokens
from penstock.accounts.keys import ApiKeys
from penstock.accounts.service import StaticToken
from penstock.accounts.shares import Shares
from penstock.accounts.users import Users
from penstock.api.app import attach, create_app
from penstock.api.callers.credentials import KeyHolders, TrustedHeaders
from penstock.api.callers.identity import Identity, OperatorToken, Role
from penstock.api.callers.rate_limits import RateLimits
from penstock.api.requests.long_polls import Polls
from penstock.api.services import Loops, People, Services, Sources
from penstock.api.serving.server import Server, bind
from penstock.guard.network_reach import Reach
from penstock.jobs.announcer import Outbox
from penstock.jobs.browser import BROWSE_SETTINGS, Browser
from penstock.jobs.kinds import KindPolicy, Kinds
from penstock.jobs.metrics import KernelMetrics
from penstock.jobs.nats.transport import NatsTransport
from penstock.jobs.presence import Presence
from penstock.jobs.scheduler import Schedules
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.db import Db
from penstock.kit.loop import LoopMetrics
from penstock.kit.outbound import WITH_PRIVATE
from penstock.kit.vault import Vault, new_key
from penstock.sources.ceilings import Ceilings
from penstock.sources.repository import DataSources
from penstock.sources.schema_cache import SchemaCache, SchemaRefresh
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from penstock.jobs.nats.settings import NatsSettings

SERVICE = "service-token-for-tests"
OPERATOR = "operator-token-for-tests"
ADMIN = "admin-token-for-tests"
ANALYST = "analyst-token-for-tests"
OPTIONAL = ("graphs", "people", "sources", "maintenance", "reconciliation")
"""Optional services; their routes exist only with them."""
INSTANCE_TOKENS = InstanceTokens("key-for-tests")
POLICIES = (
    KindPolicy(name="work", lease=60, heartbeat=10, timeout=600, max_attempts=3),
    KindPolicy(name="once", lease=60, heartbeat=10, timeout=600, max_attempts=1),
    KindPolicy(
        name="elsewhere", queue="other", lease=60, heartbeat=10, timeout=600, max_attempts=3
    ),
)


class Roles:
    """Tokens of the lower roles, for tests without accounts."""

    async def identify(self, token: str) -> Identity | None:
        role = {ADMIN: Role.ADMIN, ANALYST: Role.ANALYST}.get(token)
        return None if role is None else Identity(username=role.name.lower(), role=role, via="test")


@asynccontextmanager
async def plane(
    dsn: str,
    *,
    service_token: str | None = SERVICE,
    trust: bool = False,
    proxies: str | None = "127.0.0.1",
    proxy_secret: str | None = None,
    local_only: bool = False,
    limits: Mapping[str, float] | None = None,
    pooler: str | None = None,
    nats: NatsSettings | None = None,
) -> AsyncIterator[Services]:
    registry = CollectorRegistry()
    outbox = None if nats is None else Outbox()
    async with (
        Db(dsn, size=10, settings=ENGINE_SETTINGS, command_timeout=15, pooler=pooler) as engine,
        Db(dsn, size=3, settings=BROWSE_SETTINGS, command_timeout=15, pooler=pooler) as browse,
        PgJobStore(
            engine, Kinds(POLICIES), metrics=KernelMetrics(registry), outbox=outbox
        ) as store,
        Presence(engine, store.metrics.background) as presence,
        AsyncExitStack() as stack,
    ):
        loops: Loops = ()
        metrics = LoopMetrics(registry)
        if nats is not None and outbox is not None:
            transport = NatsTransport(engine, store, outbox, nats, registry=registry)
            await stack.enter_async_context(transport)
            loops = (transport.reannouncer(every=3600, metrics=metrics),)
        ceilings = Ceilings.of(Settings())
        networks = Settings(trusted_proxies=proxies).proxy_networks if trust else ()
        secret = None if proxy_secret is None else SecretStr(proxy_secret)
        operator = OperatorToken(SecretStr(OPERATOR))
        records = DataSources(
            browse,
            Vault([new_key()]),
            reach=Reach(private=True),
            outbound=WITH_PRIVATE,
            ceilings=ceilings,
            audit=store.audit,
        )
        sources = Sources(records=records, cache=SchemaCache(browse, records))
        users = Users(engine, store.audit)
        people = People(
            users=users,
            keys=ApiKeys(engine, users, store.audit),
            answers=Idempotency(engine),
            shares=Shares(engine, users, store.audit),
            headers=TrustedHeaders(users, proxies=networks, secret=secret) if trust else None,
            sessions=BrowserSessions(
                engine,
                store.audit,
                operator_token=lambda: operator.current,
                link_life=timedelta(minutes=5),
                session_life=timedelta(hours=12),
            ),
        )
        yield Services(
            store=store,
            browser=Browser(browse),
            schedules=Schedules(engine, store),
            registry=registry,
            loops=(
                SchemaRefresh(engine, records, sources.cache, every=3600, metrics=metrics),
                *loops,
            ),
            sources=sources,
            service_tokens=()
            if service_token is None
            else (StaticToken(SecretStr(service_token)), INSTANCE_TOKENS),
            instance_tokens=INSTANCE_TOKENS,
            authenticators=(operator, Roles(), KeyHolders(people.keys, people.users)),
            people=people,
            local_only=local_only,
            proxies=networks,
            limits=None if limits is None else RateLimits(Settings(**limits), registry),
            polls=Polls(presence),
        )


class Edge:
    """A server that can serve one control plane after another."""

    def __init__(self) -> None:
        self.url = ""
        self.app: FastAPI | None = None
        self._apps: dict[tuple[Any, ...], FastAPI] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Edge]:
        listener = bind("127.0.0.1", 0)
        server = Server(self)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.tried.wait()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield self
        finally:
            server.should_exit = True
            await task

    @contextmanager
    def showing(self, services: Services) -> Iterator[str]:
        self.app = self._app(services)
        try:
            yield self.url
        finally:
            services.polls.close()
            self.app = None

    def _app(self, services: Services) -> FastAPI:
        """Cached by shape: a new app rebuilds all models at its first request."""
        reconciled = services.reconciliation
        file_bytes = reconciled and reconciled.service.uploads.quota.max_bytes
        shape = (
            services.max_body_bytes,
            file_bytes,
            *(getattr(services, name) is None for name in OPTIONAL),
        )
        if shape in self._apps:
            attach(self._apps[shape], services)
        else:
            self._apps[shape] = create_app(services)
        return self._apps[shape]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)
