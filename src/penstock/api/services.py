"""The services that routes use. `wiring` builds them; a route takes them with
`services: ServicesDep`."""

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
from penstock.api.callers.credentials import TrustedHeaders
from penstock.api.callers.identity import Authenticator
from penstock.api.callers.rate_limits import RateLimits
from penstock.api.requests.long_polls import Polls
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
from penstock.reconcile.runs.service import RunService
from penstock.reconcile.staging.chunk_ends import ChunkEnds
from penstock.sources.repository import DataSources
from penstock.sources.schema_cache import SchemaCache
from penstock.storage.contract import Store

Loops: TypeAlias = tuple[Loop[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceServices:
    """Services of the instance routes."""

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
    """Services of the graph routes."""

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
        """The full URL of a storage prefix."""
        return f"{self.storage_url.rstrip('/')}/{prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Services of the operator and admin routes."""

    board: LoopStatusStore
    overview: Overview
    health: Health
    bulk: BulkDelete
    endings: DeletionHooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Services of the data source and schema browser routes."""

    records: DataSources
    cache: SchemaCache


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Users, API keys, shares, sessions and stored idempotency responses."""

    users: Users
    keys: ApiKeys
    answers: Idempotency
    shares: Shares
    headers: TrustedHeaders | None = None
    """None: identity headers are not trusted."""
    sessions: BrowserSessions | None = None
    """None: no operator token, so browsers cannot log in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Services of the table routes."""

    service: MaintenanceService
    policies: Policies
    planner: MaintenancePlanner


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Services of the recipe and run routes; `store` opens the storage on first use."""

    service: RunService
    items: Items
    chunk_ends: ChunkEnds
    store: Callable[[], Store]
    callback_key: str
    outbound: OutboundPolicy
    """The network policy of callbacks."""

    def callback_secret(self, run_id: int) -> str:
        """The key that signs a run's callback; returned to the caller who started the run."""
        message = f"run-callback:{run_id}".encode()
        return hmac.new(self.callback_key.encode(), message, "sha256").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    store: PgJobStore
    browser: Browser
    schedules: Schedules
    registry: CollectorRegistry
    loops: Loops = ()
    service_tokens: tuple[ServiceTokens, ...] = ()
    """Accepted service tokens; without any the internal API is disabled."""
    instance_tokens: InstanceTokens | None = None
    """Creates and verifies the tokens of graph servers."""
    authenticators: tuple[Authenticator, ...] = ()
    """Authenticators of the public API, tried in this order."""
    people: People | None = None
    local_only: bool = False
    """Accept requests from this machine only."""
    proxies: tuple[Network, ...] = ()
    """Proxies whose X-Forwarded-For is trusted."""
    limits: RateLimits | None = None
    max_body_bytes: int = 10 * 1024 * 1024
    graphs: Graphs | None = None
    operations: Operations | None = None
    sources: Sources | None = None
    maintenance: Maintenance | None = None
    reconciliation: Reconciliation | None = None
    polls: Polls = field(default_factory=Polls)


async def of(request: Request) -> Services:
    """Async, because FastAPI runs plain functions in a thread, several times per request."""
    services: Services = request.app.state.services
    return services


ServicesDep = Annotated[Services, Depends(of)]


async def graphs_of(services: ServicesDep) -> Graphs:
    if services.graphs is None:
        raise NotFound("Graphs are not configured on this control plane.")
    return services.graphs


HasGraphs = Annotated[Graphs, Depends(graphs_of)]


async def operations_of(services: ServicesDep) -> Operations:
    if services.operations is None:
        raise NotFound("Graphs are not configured on this control plane.")
    return services.operations


HasOperations = Annotated[Operations, Depends(operations_of)]


async def sources_of(services: ServicesDep) -> Sources:
    if services.sources is None:
        raise NotFound("Data sources are not configured on this control plane.")
    return services.sources


HasSources = Annotated[Sources, Depends(sources_of)]


async def people_of(services: ServicesDep) -> People:
    if services.people is None:
        raise NotFound("Users are not configured on this control plane.")
    return services.people


HasPeople = Annotated[People, Depends(people_of)]


async def maintenance_of(services: ServicesDep) -> Maintenance:
    if services.maintenance is None:
        raise NotFound(
            "Catalogs are not configured on this control plane.", hint="Set PENSTOCK_CATALOGS."
        )
    return services.maintenance


HasMaintenance = Annotated[Maintenance, Depends(maintenance_of)]


async def reconciliation_of(services: ServicesDep) -> Reconciliation:
    if services.reconciliation is None:
        raise NotFound("Reconciliation is not configured on this control plane.")
    return services.reconciliation


HasReconciliation = Annotated[Reconciliation, Depends(reconciliation_of)]
