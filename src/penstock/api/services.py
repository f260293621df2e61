"""What the routes work with. `wiring` builds it; a route takes it with `parts: HasParts`."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry

from penstock.accounts.browser_sessions import BrowserSessions
from penstock.accounts.idempotency import Idempotency
from penstock.accounts.instance_token import InstanceTokens
from penstock.accounts.keys import ApiKeys
from penstock.accounts.service import ServiceTokens
from penstock.accounts.shares import Shares
from penstock.accounts.users import Users
from penstock.api.credentials import TrustedHeaders
from penstock.api.identity import Authenticator
from penstock.api.long_polls import Polls
from penstock.api.rate_limits import RateLimits
from penstock.graphs.favorites import Favorites
from penstock.graphs.instances.creation import Creation
from penstock.graphs.instances.graph_servers import GraphServers
from penstock.graphs.instances.quota import Quota
from penstock.graphs.instances.repository import Instances
from penstock.graphs.instances.service import InstanceService
from penstock.graphs.instances.telemetry import InstanceTelemetry
from penstock.graphs.mappings.inference import Inference
from penstock.graphs.mappings.repository import Mappings
from penstock.graphs.mappings.service import MappingService
from penstock.graphs.mappings.source_rights import SourceRights
from penstock.graphs.mappings.tree import MappingTrees
from penstock.graphs.runtime_config import PlatformConfig
from penstock.graphs.snapshots.creation import MappedSnapshots
from penstock.graphs.snapshots.export_jobs import Exports
from penstock.graphs.snapshots.progress import ProgressReport
from penstock.graphs.snapshots.removal import SnapshotRemoval
from penstock.graphs.snapshots.repository import Snapshots
from penstock.graphs.snapshots.worker_adapter import ExportWorkerAdapter
from penstock.jobs.browser import Browser
from penstock.jobs.scheduler import Schedules
from penstock.jobs.store import PgJobStore
from penstock.kit.config import Network
from penstock.kit.errors import NotFound
from penstock.kit.loop import Loop
from penstock.kit.outbound import OutboundPolicy
from penstock.launchers.contract import Launcher
from penstock.maintenance.policies.planner import MaintenancePlanner
from penstock.maintenance.policies.repository import Policies
from penstock.maintenance.service import MaintenanceService
from penstock.operations.bulk_delete import BulkDelete
from penstock.operations.deletion import DeletionHooks
from penstock.operations.health import Health
from penstock.operations.loop_status import LoopStatusStore
from penstock.operations.overview import Overview
from penstock.reconcile.runs.items import Items
from penstock.reconcile.runs.service import Desk
from penstock.sources.repository import DataSources
from penstock.sources.schema_cache import SchemaCache
from penstock.storage.contract import Store

Loops: TypeAlias = tuple[Loop[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceServices:
    """What runs graph servers, and what speaks to them."""

    store: Instances
    creation: Creation
    steps: InstanceService
    vitals: InstanceTelemetry
    quota: Quota
    servers: GraphServers
    launcher: Launcher
    token_of: Callable[[int], str]
    public_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """What the routes of the graphs work with."""

    mappings: Mappings
    authoring: MappingService
    inference: Inference
    trees: MappingTrees
    mapped: MappedSnapshots
    removal: SnapshotRemoval
    progress: ProgressReport
    snapshots: Snapshots
    exports: Exports
    face: ExportWorkerAdapter
    sources: DataSources
    rights: SourceRights
    config: PlatformConfig
    favourites: Favorites
    instances: InstanceServices
    storage_url: str

    def path(self, prefix: str) -> str:
        """Where a prefix of the storage is, as people and engines name it."""
        return f"{self.storage_url.rstrip('/')}/{prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """What the routes of operators and admins work with."""

    board: LoopStatusStore
    overview: Overview
    health: Health
    bulk: BulkDelete
    endings: DeletionHooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the routes of data sources and of the schema browser work with."""

    records: DataSources
    cache: SchemaCache


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Users, their keys, and the answers they were given."""

    users: Users
    keys: ApiKeys
    answers: Idempotency
    shares: Shares
    headers: TrustedHeaders | None = None
    """None: what a header says of its sender is not believed."""
    sessions: BrowserSessions | None = None
    """None: there is no operator token, so browsers have nothing to sign in with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What the routes of tables work with."""

    desk: MaintenanceService
    policies: Policies
    planner: MaintenancePlanner


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What the routes of recipes and runs work with; `store` opens the storage when it is first
    needed."""

    desk: Desk
    items: Items
    store: Callable[[], Store]
    callback_key: str
    outbound: OutboundPolicy
    """Where callbacks may lead."""

    def callback_secret(self, run_id: int) -> str:
        """What signs the callback of a run; whoever asked for the run is told it."""
        said = f"run-callback:{run_id}".encode()
        return hmac.new(self.callback_key.encode(), said, "sha256").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    store: PgJobStore
    browser: Browser
    schedules: Schedules
    registry: CollectorRegistry
    loops: Loops = ()
    services: tuple[ServiceTokens, ...] = ()
    """What workers and graph servers may show; without any there is no internal API."""
    instance_tokens: InstanceTokens | None = None
    """What tells the graph servers' tokens apart; `mint` makes them."""
    authenticators: tuple[Authenticator, ...] = ()
    """Who may use the public API, asked in this order; none means nobody."""
    people: People | None = None
    local_only: bool = False
    """Whether only programs of this machine may call."""
    proxies: tuple[Network, ...] = ()
    """Whose X-Forwarded-For names the caller."""
    limits: RateLimits | None = None
    max_body_bytes: int = 10 * 1024 * 1024
    graphs: Graphs | None = None
    operations: Operations | None = None
    sources: Sources | None = None
    maintenance: Maintenance | None = None
    reconciliation: Reconciliation | None = None
    polls: Polls = field(default_factory=Polls)


async def of(request: Request) -> Services:
    """Not a plain function: the framework would run that in a thread, several times a request."""
    parts: Services = request.app.state.parts
    return parts


ServicesDep = Annotated[Services, Depends(of)]


async def graphs_of(parts: ServicesDep) -> Graphs:
    if parts.graphs is None:
        raise NotFound("This control plane has no graphs.")
    return parts.graphs


HasGraphs = Annotated[Graphs, Depends(graphs_of)]


async def operations_of(parts: ServicesDep) -> Operations:
    if parts.operations is None:
        raise NotFound("This control plane has no graphs to operate.")
    return parts.operations


HasOperations = Annotated[Operations, Depends(operations_of)]


async def sources_of(parts: ServicesDep) -> Sources:
    if parts.sources is None:
        raise NotFound("This control plane has no data sources.")
    return parts.sources


HasSources = Annotated[Sources, Depends(sources_of)]


async def people_of(parts: ServicesDep) -> People:
    if parts.people is None:
        raise NotFound("This control plane has no users.")
    return parts.people


HasPeople = Annotated[People, Depends(people_of)]


async def maintenance_of(parts: ServicesDep) -> Maintenance:
    if parts.maintenance is None:
        raise NotFound("This control plane has no catalogs.", hint="Set PENSTOCK_CATALOGS.")
    return parts.maintenance


HasMaintenance = Annotated[Maintenance, Depends(maintenance_of)]


async def reconciliation_of(parts: ServicesDep) -> Reconciliation:
    if parts.reconciliation is None:
        raise NotFound("This control plane reconciles nothing.")
    return parts.reconciliation


HasReconciliation = Annotated[Reconciliation, Depends(reconciliation_of)]
