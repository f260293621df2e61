"""Job kinds that create, publish and delete snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.graphs.snapshots import payloads
from penstock.jobs.kinds import JobKind, KindPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
    from penstock.jobs.handler import Handler
    from penstock.storage.provider import ObjectStoreProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHandlerServices:
    connect: Callable[[], SnapshotControlPlane]
    object_store: ObjectStoreProvider


def _exporter(services: SnapshotHandlerServices) -> Handler:
    from penstock.graphs.snapshots.handlers.export import Exporter

    return Exporter(services.connect, services.object_store)


def _publisher(services: SnapshotHandlerServices) -> Handler:
    from penstock.graphs.snapshots.handlers.publish import Publisher

    return Publisher(services.connect, services.object_store)


def _query_canceller(services: SnapshotHandlerServices) -> Handler:
    from penstock.graphs.snapshots.handlers.export import UnloadCleanup
    from penstock.graphs.snapshots.handlers.unload import Unloading

    return UnloadCleanup(services.connect, services.object_store, Unloading.cancel)


def _table_remover(services: SnapshotHandlerServices) -> Handler:
    from penstock.graphs.snapshots.handlers.export import UnloadCleanup
    from penstock.graphs.snapshots.handlers.unload import Unloading

    return UnloadCleanup(services.connect, services.object_store, Unloading.forget)


def _sweeper(services: SnapshotHandlerServices) -> Handler:
    from penstock.graphs.snapshots.handlers.sweep import StorageSweeper

    return StorageSweeper(services.connect, services.object_store)


def _eraser(services: SnapshotHandlerServices) -> Handler:
    from penstock.graphs.snapshots.handlers.erase import Eraser

    return Eraser(services.object_store)


JOB_KINDS: tuple[JobKind[SnapshotHandlerServices], ...] = (
    # The API promises ten minutes: third-party export workers may claim without heartbeats.
    JobKind(
        policy=KindPolicy(
            name=payloads.EXPORT,
            queue="export",
            lease=600,
            heartbeat=30,
            timeout=7200,
            max_attempts=3,
            cleanup_kind=payloads.CANCEL_QUERY,
        ),
        handler=_exporter,
    ),
    # The source writes the files; a worker holds the job only while it polls the query. Trino drops
    # a query that is not polled for five minutes, so the lease must expire well before that.
    JobKind(
        policy=KindPolicy(
            name=payloads.UNLOAD,
            queue="export",
            lease=60,
            heartbeat=15,
            timeout=7200,
            max_attempts=3,
            cleanup_kind=payloads.CANCEL_QUERY,
        ),
        handler=_exporter,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.PUBLISH,
            queue="publish",
            priority=2,
            lease=60,
            heartbeat=15,
            timeout=1800,
            max_attempts=5,
        ),
        handler=_publisher,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.CANCEL_QUERY,
            queue="publish",
            priority=1,
            lease=60,
            heartbeat=15,
            timeout=300,
            max_attempts=5,
        ),
        handler=_query_canceller,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.FORGET_TABLE,
            queue="publish",
            priority=7,
            lease=60,
            heartbeat=15,
            timeout=300,
            max_attempts=5,
        ),
        handler=_table_remover,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.SWEEP,
            queue="publish",
            priority=8,
            lease=120,
            heartbeat=30,
            timeout=14_400,
            max_attempts=2,
        ),
        handler=_sweeper,
    ),
    JobKind(
        policy=KindPolicy(
            name=payloads.ERASE,
            queue="publish",
            priority=7,
            lease=60,
            heartbeat=15,
            timeout=3600,
            max_attempts=5,
        ),
        handler=_eraser,
    ),
)
