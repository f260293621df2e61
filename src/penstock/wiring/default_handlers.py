"""The handlers of all job kinds, built from the settings of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from penstock.engines.contract import EngineLimits
from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
from penstock.graphs.snapshots.job_kinds import JOB_KINDS as SNAPSHOT_KINDS
from penstock.graphs.snapshots.job_kinds import SnapshotHandlerServices
from penstock.jobs.control_plane import client_factory
from penstock.jobs.handler import Handler, Handlers
from penstock.maintenance.control_plane import MaintenanceControlPlane
from penstock.maintenance.job_kinds import JOB_KINDS as MAINTENANCE_KINDS
from penstock.maintenance.job_kinds import MaintenanceHandlerServices
from penstock.reconcile.control_plane import ReconcileControlPlane
from penstock.reconcile.job_kinds import JOB_KINDS as RECONCILE_KINDS
from penstock.reconcile.job_kinds import ReconcileHandlerServices
from penstock.storage.provider import ObjectStoreProvider
from penstock.worker.probe import PROBE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.jobs.kinds import JobKind
    from penstock.wiring.settings import Settings

Services = TypeVar("Services")


def default_handlers(settings: Settings) -> Handlers:
    object_store = ObjectStoreProvider(settings)
    snapshots = SnapshotHandlerServices(
        connect=client_factory(settings, SnapshotControlPlane), object_store=object_store
    )
    reconcile = ReconcileHandlerServices(
        connect=client_factory(settings, ReconcileControlPlane),
        object_store=object_store,
        engine_limits=EngineLimits(
            memory_bytes=settings.reconcile_memory_mb * 1024**2,
            spill_bytes=settings.reconcile_spill_mb * 1000**2,
        ),
        candidates_per_row=settings.reconcile_candidates_per_row,
    )
    maintenance = MaintenanceHandlerServices(
        connect=client_factory(settings, MaintenanceControlPlane)
    )
    return Handlers(
        _handlers(SNAPSHOT_KINDS, snapshots)
        | _handlers(RECONCILE_KINDS, reconcile)
        | _handlers(MAINTENANCE_KINDS, maintenance)
        | _handlers((PROBE,), None)
    )


def _handlers(kinds: Iterable[JobKind[Services]], services: Services) -> dict[str, Handler]:
    return {kind.policy.name: kind.handler(services) for kind in kinds}
