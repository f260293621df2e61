"""Builds the operators' services and the housekeeping loops."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from penstock.api.services import Operations
from penstock.graphs.snapshots.metrics import LifecycleMetrics
from penstock.graphs.snapshots.storage_cleanup import StorageCleanup
from penstock.jobs.browser import Browser
from penstock.kit.errors import Unavailable
from penstock.launchers.kubernetes.api import KubernetesApi
from penstock.operations.bulk_delete import BulkDelete
from penstock.operations.deletion import DeletionHooks
from penstock.operations.health import Health
from penstock.operations.lifecycle import Lifecycle
from penstock.operations.loop_status import LoopStatusStore
from penstock.operations.overview import Overview
from penstock.operations.pod_deletion_cost import PodDeletionCost
from penstock.sources.repository import SYSTEM_ACTOR
from penstock.storage.provider import ObjectStoreProvider
from penstock.wiring.launchers import kubernetes_connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from prometheus_client import CollectorRegistry

    from penstock.api.services import Graphs, Loops
    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics
    from penstock.sources.contract import Source
    from penstock.wiring.settings import Settings

LIFECYCLE_SECONDS = 300.0
CLEANUP_SECONDS = 86_400.0
DELETION_COST_SECONDS = 5.0
WORKER_SECONDS = 60
SOURCES_ASKED = 20


def operation_services(
    settings: Settings, engine: Db, browse: Db, store: PgJobStore, graphs: Graphs
) -> Operations:
    hooks = deletion_hooks(graphs)
    return Operations(
        board=LoopStatusStore(engine, audit=store.audit),
        overview=Overview(browse, (engine, browse)),
        health=health(settings, browse, store, graphs),
        bulk=BulkDelete(browse, hooks, audit=store.audit),
        endings=hooks,
    )


def operation_loops(
    db: Db,
    store: PgJobStore,
    graphs: Graphs,
    operations: Operations,
    metrics: LoopMetrics,
    registry: CollectorRegistry,
) -> Loops:
    counts = LifecycleMetrics(registry)
    return (
        Lifecycle(db, operations.endings, every=LIFECYCLE_SECONDS, metrics=metrics, counts=counts),
        StorageCleanup(db, store, graphs.snapshots, every=CLEANUP_SECONDS, metrics=metrics),
    )


@asynccontextmanager
async def deletion_cost_loop(
    settings: Settings, db: Db, metrics: LoopMetrics
) -> AsyncIterator[Loops]:
    """None without `worker_pods`."""
    if settings.worker_pods is None:
        yield ()
        return
    async with KubernetesApi(kubernetes_connection(settings)) as api:
        yield (
            PodDeletionCost(
                db,
                api,
                selector=settings.worker_pods,
                every=DELETION_COST_SECONDS,
                metrics=metrics,
            ),
        )


def deletion_hooks(graphs: Graphs) -> DeletionHooks:
    steps = graphs.instances.steps

    async def instance(instance_id: int, actor: str) -> None:
        await steps.terminate(instance_id, actor=actor, reason="bulk_delete")

    async def old(instance_id: int, actor: str) -> None:
        await steps.terminate(instance_id, actor=actor, reason="ttl_expired", force=True)

    async def idle(instance_id: int, actor: str) -> None:
        if steps.can_resume:
            await steps.suspend(instance_id, actor=actor, reason="inactivity")
        else:
            await steps.terminate(instance_id, actor=actor, reason="inactivity")

    async def snapshot(snapshot_id: int, actor: str) -> None:
        await graphs.removal.drop(snapshot_id, actor=actor)

    async def mapping(mapping_id: int, actor: str) -> None:
        await graphs.mappings.drop(mapping_id, actor=actor)

    return DeletionHooks(
        instance=instance, old_instance=old, idle_instance=idle, snapshot=snapshot, mapping=mapping
    )


def health(settings: Settings, browse: Db, store: PgJobStore, graphs: Graphs) -> Health:
    sources = graphs.sources

    async def storage() -> None:
        await ObjectStoreProvider(settings).open().check()

    async def workers() -> None:
        if not await Browser(browse).workers(seconds=WORKER_SECONDS):
            raise Unavailable(f"No worker was seen in the last {WORKER_SECONDS} s.")

    async def source_checks() -> dict[str, Callable[[], Awaitable[object]]]:
        records, _ = await sources.page(limit=SOURCES_ASKED)
        return {
            f"source:{source.name}": partial(
                sources.ask, source.data_source_id, check_source, by=SYSTEM_ACTOR
            )
            for source in records
        }

    async def check_source(source: Source) -> str:
        return await source.test()

    return Health(
        {
            "database": store.control,
            "storage": storage,
            "launcher": graphs.instances.launcher.list,
            "workers": workers,
        },
        source_checks,
    )
