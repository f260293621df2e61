"""The client: one connection to a control plane, and everything that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._async.instances import AsyncInstances
from penstock.client._async.jobs import AsyncJobs, AsyncSchedules
from penstock.client._async.mappings import AsyncMappings
from penstock.client._async.operations import AsyncOperations, AsyncSchemas
from penstock.client._async.people import AsyncFavorites, AsyncUsers
from penstock.client._async.reconcile import AsyncReconcile
from penstock.client._async.shares import AsyncShares
from penstock.client._async.snapshots import AsyncSnapshots
from penstock.client._async.sources import AsyncDataSources
from penstock.client._async.tables import AsyncTables
from penstock.client._async.transport import AsyncTransport
from penstock.client.address import find

if TYPE_CHECKING:
    from types import TracebackType

    from penstock.client import shapes


class AsyncClient:
    """`url` and `api_key` default to PENSTOCK_URL and PENSTOCK_API_KEY, then to this machine's
    `penstock up`."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        username: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.transport: AsyncTransport = AsyncTransport(
            find(url, api_key, username), timeout=timeout
        )
        self.mappings: AsyncMappings = AsyncMappings(self.transport)
        self.snapshots: AsyncSnapshots = AsyncSnapshots(self.transport)
        self.instances: AsyncInstances = AsyncInstances(self.transport)
        self.sources: AsyncDataSources = AsyncDataSources(self.transport)
        self.reconcile: AsyncReconcile = AsyncReconcile(self.transport)
        self.tables: AsyncTables = AsyncTables(self.transport)
        self.jobs: AsyncJobs = AsyncJobs(self.transport)
        self.schedules: AsyncSchedules = AsyncSchedules(self.transport)
        self.shares: AsyncShares = AsyncShares(self.transport)
        self.users: AsyncUsers = AsyncUsers(self.transport)
        self.favorites: AsyncFavorites = AsyncFavorites(self.transport)
        self.schemas: AsyncSchemas = AsyncSchemas(self.transport)
        self.operations: AsyncOperations = AsyncOperations(self.transport)

    @property
    def url(self) -> str:
        return self.transport.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.transport.aclose()

    async def health(self) -> shapes.Alive:
        answer: shapes.Alive = await self.transport.call("GET", "/health")
        return answer

    async def ready(self) -> shapes.Readiness:
        """Whether it has its database and takes jobs."""
        answer: shapes.Readiness = await self.transport.call("GET", "/ready")
        return answer
