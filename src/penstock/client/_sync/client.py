"""The client: one connection to a control plane, and everything that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client._sync.instances import Instances
from penstock.client._sync.jobs import Jobs, Schedules
from penstock.client._sync.mappings import Mappings
from penstock.client._sync.operations import Operations, Schemas
from penstock.client._sync.people import Favorites, Users
from penstock.client._sync.reconcile import Reconcile
from penstock.client._sync.shares import Shares
from penstock.client._sync.snapshots import Snapshots
from penstock.client._sync.sources import DataSources
from penstock.client._sync.tables import Tables
from penstock.client._sync.transport import Transport
from penstock.client.address import find

if TYPE_CHECKING:
    from types import TracebackType

    from penstock.client import shapes


class Client:
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
        self.transport: Transport = Transport(find(url, api_key, username), timeout=timeout)
        self.mappings: Mappings = Mappings(self.transport)
        self.snapshots: Snapshots = Snapshots(self.transport)
        self.instances: Instances = Instances(self.transport)
        self.sources: DataSources = DataSources(self.transport)
        self.reconcile: Reconcile = Reconcile(self.transport)
        self.tables: Tables = Tables(self.transport)
        self.jobs: Jobs = Jobs(self.transport)
        self.schedules: Schedules = Schedules(self.transport)
        self.shares: Shares = Shares(self.transport)
        self.users: Users = Users(self.transport)
        self.favorites: Favorites = Favorites(self.transport)
        self.schemas: Schemas = Schemas(self.transport)
        self.operations: Operations = Operations(self.transport)

    @property
    def url(self) -> str:
        return self.transport.url

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def health(self) -> shapes.Alive:
        answer: shapes.Alive = self.transport.call("GET", "/health")
        return answer

    def ready(self) -> shapes.Readiness:
        """Whether it has its database and takes jobs."""
        answer: shapes.Readiness = self.transport.call("GET", "/ready")
        return answer
