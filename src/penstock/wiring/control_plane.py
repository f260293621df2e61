"""Builds the control plane from the settings; the only module that imports every package."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector

from penstock.accounts.retention import AnswerRetention
from penstock.api.callers.rate_limits import RateLimits
from penstock.api.requests.long_polls import Polls
from penstock.api.services import Graphs, Loops, Operations, Services, Sources
from penstock.api.serving import processes, server
from penstock.graphs.favorites import Favorites
from penstock.graphs.mappings.inference import Inference
from penstock.graphs.mappings.query_check import QueryCheck
from penstock.graphs.mappings.repository import Mappings
from penstock.graphs.mappings.service import MappingService
from penstock.graphs.mappings.source_rights import SourceRights
from penstock.graphs.mappings.tree import MappingTrees
from penstock.graphs.runtime_config import LONGEST_EXPORT, PlatformConfig
from penstock.graphs.snapshots.creation import MappedSnapshots
from penstock.graphs.snapshots.export_jobs import ExportLimits, Exports
from penstock.graphs.snapshots.export_resync import ExportResync
from penstock.graphs.snapshots.finalization import GATE
from penstock.graphs.snapshots.metrics import ExportMetrics, watch_connections
from penstock.graphs.snapshots.payloads import ExportCaps
from penstock.graphs.snapshots.progress import ProgressReport
from penstock.graphs.snapshots.removal import SnapshotRemoval
from penstock.graphs.snapshots.repository import Snapshots
from penstock.graphs.snapshots.storage_sweep import StorageSweep
from penstock.graphs.snapshots.worker_adapter import ExportWorkerAdapter
from penstock.guard.checker_process import SqlChecker
from penstock.guard.network_reach import Reach
from penstock.jobs.announcer import Outbox
from penstock.jobs.browser import BROWSE_SETTINGS, Browser
from penstock.jobs.fair_share import FairShare
from penstock.jobs.list_index import ListIndex
from penstock.jobs.metrics import KernelMetrics
from penstock.jobs.presence import Presence
from penstock.jobs.reaper import Reaper
from penstock.jobs.retention import Retention
from penstock.jobs.scheduler import Scheduler, Schedules
from penstock.jobs.store import ENGINE_SETTINGS, PgJobStore
from penstock.kit.cache import InvalidatedCache
from penstock.kit.concurrency_limit import ConcurrencyLimit
from penstock.kit.db import Db
from penstock.kit.loop import LoopMetrics
from penstock.kit.vault import Vault
from penstock.sources.ceilings import Ceilings
from penstock.sources.home import HomeGuard
from penstock.sources.repository import DataSources
from penstock.sources.schema_cache import SchemaCache, SchemaRefresh
from penstock.wiring.auth import CHANGED, admission
from penstock.wiring.instances import (
    instance_controller,
    instance_loops,
    instance_services,
)
from penstock.wiring.job_kinds import default_kinds
from penstock.wiring.launchers import opened_launcher
from penstock.wiring.maintenance import keeping
from penstock.wiring.migrations import MIGRATION_PACKAGES
from penstock.wiring.nats import nats_transport
from penstock.wiring.operations import deletion_cost_loop, operation_loops, operation_services
from penstock.wiring.reconcile import reconcile_services, reconciliation_loops

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.accounts.instance_token import InstanceTokens
    from penstock.jobs.gates import GateHandler
    from penstock.jobs.kinds import Kinds
    from penstock.launchers.contract import Launcher
    from penstock.operations.loop_status import LoopStatusStore
    from penstock.wiring.settings import Settings

SCHEDULER_SECONDS = 1.0
REAPER_GRACE = 6
"""Reaper runs, half a minute in total, in which workers can renew their leases after an outage."""
LIST_INDEX_SECONDS = 10.0
RETENTION_SECONDS = 3600.0
RECONCILIATION_SECONDS = 5.0
SWEEP_SECONDS = 3600.0
SCHEMA_SECONDS = 86_400.0
COMMAND_SECONDS = 15.0
"""A database that hangs counts as unavailable; all statements are short."""
LEAST_BODY_BYTES = 10 * 1024 * 1024


@asynccontextmanager
async def build_control_plane(
    settings: Settings,
    dsn: str,
    *,
    kinds: Kinds | None = None,
    gates: Mapping[str, GateHandler] | None = None,
    launcher: Launcher | None = None,
) -> AsyncIterator[Services]:
    """Run a control plane: its store listens for notifications and its loops run until the block
    exits."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    pooler = settings.database_pooler
    outbox = Outbox() if settings.queue == "nats" else None
    browsing = max(1, settings.database_pool // 4)
    working = max(2, settings.database_pool - browsing)
    async with (
        Db(
            dsn,
            size=working,
            settings=ENGINE_SETTINGS,
            command_timeout=COMMAND_SECONDS,
            pooler=pooler,
        ) as engine,
        Db(dsn, size=browsing, settings=BROWSE_SETTINGS, pooler=pooler) as browse,
        _store(
            settings, engine, kinds or default_kinds(settings.lease_seconds), registry, outbox
        ) as store,
        admission(settings, engine, store.audit, store.notifier) as auth,
        opened_launcher(settings, store.metrics.background, launcher) as runs,
    ):
        sources = _sources(settings, dsn, browse, store)
        graphs = _graphs(
            settings, engine, browse, store, sources.records, auth.instance_tokens, runs
        )
        for name, handler in ({GATE: graphs.exports.finalizer} | dict(gates or {})).items():
            store.gates.handle(name, handler)
        operations = operation_services(settings, engine, browse, store, graphs)
        reconciliation = reconcile_services(settings, engine, store, sources.records)
        ExportMetrics(registry, store.metrics)
        watch_connections(registry, (engine, browse))
        metrics = LoopMetrics(registry)
        async with (
            instance_controller(
                settings, engine, store.notifier, graphs.instances, store.metrics.background
            ),
            keeping(settings, engine, store, metrics) as maintenance,
            nats_transport(settings, engine, store, outbox, metrics, registry) as announcing,
            deletion_cost_loop(settings, engine, metrics) as weighing,
            _running(
                (
                    *_loops(
                        settings, engine, store, graphs, operations, sources, registry, metrics
                    ),
                    *(() if maintenance is None else (maintenance.planner,)),
                    *reconciliation_loops(engine, reconciliation, metrics),
                    *announcing,
                    *weighing,
                ),
                operations.board,
            ) as loops,
            Presence(engine, store.metrics.background) as presence,
        ):
            yield Services(
                store=store,
                browser=Browser(browse),
                schedules=Schedules(engine, store),
                loops=loops,
                registry=registry,
                service_tokens=auth.service_tokens,
                instance_tokens=auth.instance_tokens,
                authenticators=auth.authenticators,
                people=auth.people,
                local_only=settings.is_local_only,
                proxies=settings.proxy_networks,
                limits=RateLimits(settings, registry),
                max_body_bytes=max(LEAST_BODY_BYTES, 2 * settings.max_payload_bytes),
                graphs=graphs,
                operations=operations,
                sources=sources,
                maintenance=maintenance,
                reconciliation=reconciliation,
                polls=Polls(presence),
            )


def serve(settings: Settings) -> int:
    """Run a control plane until SIGTERM or SIGINT."""
    if settings.processes > 1:
        return processes.serve(settings, MIGRATION_PACKAGES)
    return server.serve(settings, partial(build_control_plane, settings), MIGRATION_PACKAGES)


def _loops(
    settings: Settings,
    db: Db,
    store: PgJobStore,
    graphs: Graphs,
    operations: Operations,
    sources: Sources,
    registry: CollectorRegistry,
    metrics: LoopMetrics,
) -> Loops:
    finalizer, every = graphs.exports.finalizer, settings.reap_seconds
    reaper = Reaper(db, store, every=every, metrics=metrics, grace=REAPER_GRACE * every)
    return (
        reaper,
        Scheduler(db, store, every=SCHEDULER_SECONDS, metrics=metrics),
        ListIndex(db, every=LIST_INDEX_SECONDS, metrics=metrics),
        Retention(db, every=RETENTION_SECONDS, metrics=metrics, days=settings.retention_days),
        AnswerRetention(db, every=RETENTION_SECONDS, metrics=metrics),
        ExportResync(
            db,
            reaper,
            finalizer,
            every=RECONCILIATION_SECONDS,
            metrics=metrics,
            config=graphs.config,
        ),
        StorageSweep(db, store, every=SWEEP_SECONDS, metrics=metrics),
        SchemaRefresh(db, sources.records, sources.cache, every=SCHEMA_SECONDS, metrics=metrics),
        *operation_loops(db, store, graphs, operations, metrics, registry),
        *instance_loops(db, graphs.instances, metrics, registry),
    )


@asynccontextmanager
async def _running(loops: Loops, board: LoopStatusStore) -> AsyncIterator[Loops]:
    for loop in loops:
        loop.start(board)
    try:
        yield loops
    finally:
        for loop in loops:
            await loop.stop()


def _sources(settings: Settings, dsn: str, db: Db, store: PgJobStore) -> Sources:
    policy = settings.outbound_policy
    home = HomeGuard(
        home=settings.home,
        storage_url=settings.storage_root,
        storage_endpoint=settings.storage_endpoint,
        dsn=dsn,
        address=(settings.host, settings.port) if settings.port else None,
    )
    records = DataSources(
        db,
        Vault(settings.secret_keys),
        reach=Reach(private=policy.private, allow=policy.allow),
        outbound=policy,
        home=home,
        ceilings=Ceilings.of(settings),
        turns=ConcurrencyLimit(
            total=settings.source_questions, per_user=settings.source_questions_per_user
        ),
        audit=store.audit,
    )
    return Sources(records=records, cache=SchemaCache(db, records))


def _graphs(
    settings: Settings,
    engine: Db,
    browse: Db,
    store: PgJobStore,
    sources: DataSources,
    tokens: InstanceTokens | None,
    launcher: Launcher,
) -> Graphs:
    snapshots = Snapshots(engine)
    longest = timedelta(seconds=settings.export_max_duration_seconds)
    mappings = Mappings(engine)
    exports = Exports(
        engine,
        store,
        snapshots,
        sources,
        max_duration=LONGEST_EXPORT,
        caps=_export_limits(settings),
        share=FairShare(step=settings.fair_share_seconds),
    )
    config = PlatformConfig(engine, export=longest, audit=store.audit)
    cache: InvalidatedCache[bool] = InvalidatedCache(lambda: store.notifier.version(CHANGED))
    rights = SourceRights(browse, sources, cache=cache)
    queries = QueryCheck(sources, SqlChecker())
    mapped = MappedSnapshots(
        engine, snapshots, exports, mappings, rights, most_active=settings.active_snapshots_per_user
    )
    return Graphs(
        config=config,
        instances=instance_services(
            settings,
            engine,
            store.notifier,
            launcher,
            tokens,
            snapshots=snapshots,
            mappings=mappings,
            mapped=mapped,
            config=config,
            rights=rights,
        ),
        rights=rights,
        favourites=Favorites(browse),
        mappings=mappings,
        authoring=MappingService(mappings, rights, queries),
        inference=Inference(sources, rights, queries),
        trees=MappingTrees(browse, mappings),
        mapped=mapped,
        removal=SnapshotRemoval(engine, store, snapshots, exports),
        progress=ProgressReport(browse, snapshots, exports),
        snapshots=snapshots,
        exports=exports,
        face=ExportWorkerAdapter(store, exports),
        sources=sources,
        storage_url=settings.storage_root,
    )


def _export_limits(settings: Settings) -> ExportLimits:
    megabyte = 1000 * 1000
    return ExportLimits(
        analyst=ExportCaps(
            max_rows=settings.export_max_rows, max_bytes=settings.export_max_mb * megabyte
        ),
        admin=ExportCaps(
            max_rows=settings.export_max_rows_admin,
            max_bytes=settings.export_max_mb_admin * megabyte,
        ),
    )


def _store(
    settings: Settings,
    engine: Db,
    kinds: Kinds,
    registry: CollectorRegistry,
    outbox: Outbox | None,
) -> PgJobStore:
    metrics = KernelMetrics(registry)
    metrics.know(kind.queue for kind in kinds)
    return PgJobStore(
        engine,
        kinds,
        max_payload_bytes=settings.max_payload_bytes,
        notify_debounce=settings.bell_debounce_ms / 1000,
        metrics=metrics,
        outbox=outbox,
    )
