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
from penstock.api.polls import Polls
from penstock.api.rate_limits import RateLimits
from penstock.graphs.authoring import Authoring
from penstock.graphs.bulk import BulkDelete
from penstock.graphs.config import PlatformConfig
from penstock.graphs.creation import Creation
from penstock.graphs.endings import Endings
from penstock.graphs.exports import Exports
from penstock.graphs.face import ExportFace
from penstock.graphs.favourite import Favourites
from penstock.graphs.graph_servers import GraphServers
from penstock.graphs.health import Health
from penstock.graphs.inference import Inference
from penstock.graphs.instance_steps import InstanceSteps
from penstock.graphs.instances import Instances
from penstock.graphs.loop_board import LoopBoard
from penstock.graphs.mapped_snapshot import MappedSnapshots
from penstock.graphs.mapping import Mappings
from penstock.graphs.mapping_tree import MappingTrees
from penstock.graphs.overview import Overview
from penstock.graphs.quota import Quota
from penstock.graphs.snapshot_progress import ProgressReport
from penstock.graphs.snapshot_removal import SnapshotRemoval
from penstock.graphs.source_rights import SourceRights
from penstock.graphs.store import Snapshots
from penstock.graphs.vitals import Vitals
from penstock.jobs.browse import Browser
from penstock.jobs.scheduler import Schedules
from penstock.jobs.store import PgJobStore
from penstock.kit.config import Network
from penstock.kit.errors import NotFound
from penstock.kit.loop import Loop
from penstock.kit.outbound import OutboundPolicy
from penstock.launchers.contract import Launcher
from penstock.maintenance.desk import MaintenanceDesk
from penstock.maintenance.planner import MaintenancePlanner
from penstock.maintenance.policies import Policies
from penstock.reconcile.desk import Desk
from penstock.reconcile.items import Items
from penstock.sources.records import DataSources
from penstock.sources.schema_cache import SchemaCache
from penstock.storage.contract import Store

Loops: TypeAlias = tuple[Loop[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceParts:
    """What runs graph servers, and what speaks to them."""

    store: Instances
    creation: Creation
    steps: InstanceSteps
    vitals: Vitals
    quota: Quota
    servers: GraphServers
    launcher: Launcher
    token_of: Callable[[int], str]
    public_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """What the routes of the graphs work with."""

    mappings: Mappings
    authoring: Authoring
    inference: Inference
    trees: MappingTrees
    mapped: MappedSnapshots
    removal: SnapshotRemoval
    progress: ProgressReport
    snapshots: Snapshots
    exports: Exports
    face: ExportFace
    sources: DataSources
    rights: SourceRights
    config: PlatformConfig
    favourites: Favourites
    instances: InstanceParts
    storage_url: str

    def path(self, prefix: str) -> str:
        """Where a prefix of the storage is, as people and engines name it."""
        return f"{self.storage_url.rstrip('/')}/{prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """What the routes of operators and admins work with."""

    board: LoopBoard
    overview: Overview
    health: Health
    bulk: BulkDelete
    endings: Endings


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

    desk: MaintenanceDesk
    policies: Policies
    planner: MaintenancePlanner


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What the routes of recipes and runs work with; `store` opens the storage when it is first needed."""

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
class Parts:
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


async def of(request: Request) -> Parts:
    """Not a plain function: the framework would run that in a thread, several times a request."""
    parts: Parts = request.app.state.parts
    return parts


HasParts = Annotated[Parts, Depends(of)]


async def graphs_of(parts: HasParts) -> Graphs:
    if parts.graphs is None:
        raise NotFound("This control plane has no graphs.")
    return parts.graphs


HasGraphs = Annotated[Graphs, Depends(graphs_of)]


async def operations_of(parts: HasParts) -> Operations:
    if parts.operations is None:
        raise NotFound("This control plane has no graphs to operate.")
    return parts.operations


HasOperations = Annotated[Operations, Depends(operations_of)]


async def sources_of(parts: HasParts) -> Sources:
    if parts.sources is None:
        raise NotFound("This control plane has no data sources.")
    return parts.sources


HasSources = Annotated[Sources, Depends(sources_of)]


async def people_of(parts: HasParts) -> People:
    if parts.people is None:
        raise NotFound("This control plane has no users.")
    return parts.people


HasPeople = Annotated[People, Depends(people_of)]


async def maintenance_of(parts: HasParts) -> Maintenance:
    if parts.maintenance is None:
        raise NotFound("This control plane has no catalogs.", hint="Set PENSTOCK_CATALOGS.")
    return parts.maintenance


HasMaintenance = Annotated[Maintenance, Depends(maintenance_of)]


async def reconciliation_of(parts: HasParts) -> Reconciliation:
    if parts.reconciliation is None:
        raise NotFound("This control plane reconciles nothing.")
    return parts.reconciliation


HasReconciliation = Annotated[Reconciliation, Depends(reconciliation_of)]
