"""Builds table maintenance from the settings; None without a catalog."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from penstock.api.services import Maintenance
from penstock.kit.errors import InvalidInput
from penstock.maintenance.policies.planner import MaintenancePlanner
from penstock.maintenance.policies.repository import Policies
from penstock.maintenance.repository import MaintenanceStore
from penstock.maintenance.service import MaintenanceService
from penstock.maintenance.tables.catalog.catalog_pool import CatalogPool
from penstock.maintenance.tables.catalog.catalogs import Catalogs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.jobs.store import PgJobStore
    from penstock.kit.db import Db
    from penstock.kit.loop import LoopMetrics
    from penstock.wiring.settings import Settings


@asynccontextmanager
async def keeping(
    settings: Settings, db: Db, jobs: PgJobStore, metrics: LoopMetrics
) -> AsyncIterator[Maintenance | None]:
    if not settings.catalogs:
        yield None
        return
    if find_spec("pyiceberg") is None:
        raise InvalidInput(
            "PENSTOCK_CATALOGS is set, but PyIceberg is not installed.",
            hint="pip install 'penstock[iceberg]', or unset PENSTOCK_CATALOGS.",
        )
    pool = CatalogPool(Catalogs(settings.catalogs, settings.maintenance_engines), shared_uri=db.dsn)
    policies = Policies(db)
    service = MaintenanceService(db, jobs, MaintenanceStore(db), pool, policies)
    planner = MaintenancePlanner(
        db, jobs, service, policies, every=settings.maintenance_seconds, metrics=metrics
    )
    try:
        yield Maintenance(service=service, policies=policies, planner=planner)
    finally:
        pool.close()
