"""The control plane as an ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import __version__
from penstock.api import errors, permissions, shares
from penstock.api.admin import bulk_delete, cluster, ops, runtime_config, users
from penstock.api.callers import login
from penstock.api.callers.caller_queues import CallerQueues
from penstock.api.callers.local_only import LocalOnly
from penstock.api.callers.rate_limits import AddressLimit
from penstock.api.direct import Direct
from penstock.api.graphs import exports, favorites, instances, mappings, proxy, snapshots
from penstock.api.internal import (
    export_jobs,
    instance_reports,
    maintenance_jobs,
    snapshot_jobs,
    source_credentials,
    staging_jobs,
    worker_jobs,
)
from penstock.api.jobs import jobs, queues, schedules
from penstock.api.maintenance import iceberg, tables
from penstock.api.reconcile import items, recipes, record_sources, runs, uploads
from penstock.api.requests.access_log import AccessLog, Refusals
from penstock.api.requests.request_bodies import BodyLimit
from penstock.api.requests.request_ids import RequestIds
from penstock.api.requests.statement_log import StatementLog
from penstock.api.schema.openapi import DescribedApi
from penstock.api.serving import health
from penstock.api.sources import data_sources, schema_browser
from penstock.http.body_memory import BODY_MEMORY_BYTES, BodyMemory

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock.api.services import Services

GRAPHS = (
    mappings.router,
    snapshots.router,
    snapshots.of_mapping,
    export_jobs.router,
    snapshot_jobs.router,
)
INSTANCES = (instances.router, instances.of_mapping, instance_reports.router, proxy.router)
OPERATIONS = (
    bulk_delete.router,
    runtime_config.router,
    cluster.router,
    exports.router,
    ops.router,
    favorites.router,
)
TABLES = (iceberg.router, tables.router, tables.under_api, tables.policies, maintenance_jobs.router)
SOURCES = (data_sources.router, schema_browser.router, source_credentials.router)
RECONCILIATION = (
    recipes.router,
    items.router,
    runs.router,
    runs.internal,
    staging_jobs.router,
    uploads.router,
    record_sources.router,
)


def attach(app: FastAPI, services: Services) -> None:
    """Bind an app to its services, which must include those that its routes need."""
    app.state.services = services
    app.state.gauges = health.QueueGauges(services)
    app.state.refusals = Refusals(services.registry)
    app.state.statements = StatementLog(services.registry)
    app.state.siblings = None
    app.state.body_memory = BodyMemory(BODY_MEMORY_BYTES + services.max_body_bytes)


def create_app(services: Services) -> FastAPI:
    app = DescribedApi(
        title="Penstock",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    routers = (
        health.router,
        jobs.router,
        queues.router,
        schedules.router,
        worker_jobs.router,
        *((*GRAPHS, *INSTANCES, *OPERATIONS) if services.graphs is not None else ()),
        *((users.router, login.router, shares.router) if services.people is not None else ()),
        *(SOURCES if services.sources is not None else ()),
        *(TABLES if services.maintenance is not None else ()),
        *(RECONCILIATION if services.reconciliation is not None else ()),
    )
    attach(app, services)
    app.state.routes = [route for router in routers for route in router.routes]
    app.state.written_out = permissions.written_out(app.state.routes)
    permissions.check(app.state.routes)
    for router in routers:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(Direct)
    reconciled = services.reconciliation
    files = (
        {} if reconciled is None else {"/api/uploads": reconciled.service.uploads.quota.max_bytes}
    )
    app.add_middleware(BodyLimit, limit=services.max_body_bytes, files=files)
    app.add_middleware(CallerQueues)
    app.add_middleware(AddressLimit)
    app.add_middleware(LocalOnly)
    app.add_middleware(AccessLog)
    app.add_middleware(RequestIds)
    return app
