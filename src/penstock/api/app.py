"""The control plane as an ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import __version__
from penstock.api import (
    admin,
    cluster,
    config,
    data_sources,
    errors,
    export_jobs,
    exports,
    favorites,
    health,
    iceberg,
    instance_reports,
    instances,
    internal,
    items,
    jobs,
    login,
    maintenance_jobs,
    mappings,
    matrix,
    openings,
    ops,
    proxy,
    queues,
    recipes,
    record_sources,
    runs,
    schedules,
    schema_browser,
    shares,
    snapshot_jobs,
    snapshots,
    tables,
    uploads,
    users,
)
from penstock.api.access_log import AccessLog, Refusals
from penstock.api.description import DescribedApi
from penstock.api.direct import Direct
from penstock.api.local_only import LocalOnly
from penstock.api.rate_limits import AddressLimit
from penstock.api.reading import BodyLimit
from penstock.api.requests import RequestIds
from penstock.api.statement_log import StatementLog
from penstock.http_body import BODY_MEMORY_BYTES, BodyMemory

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock.api.parts import Parts

GRAPHS = (
    mappings.router,
    snapshots.router,
    snapshots.of_mapping,
    openings.router,
    export_jobs.router,
    snapshot_jobs.router,
)
INSTANCES = (instances.router, instances.of_mapping, instance_reports.router, proxy.router)
OPERATIONS = (admin.router, config.router, cluster.router, exports.router, ops.router, favorites.router)
TABLES = (iceberg.router, tables.router, tables.under_api, tables.policies, maintenance_jobs.router)
SOURCES = (data_sources.router, schema_browser.router)
RECONCILIATION = (recipes.router, items.router, runs.router, runs.internal, uploads.router, record_sources.router)


def attach(app: FastAPI, parts: Parts) -> None:
    """Let an app answer with these parts; they must have what its routes were made for."""
    app.state.parts = parts
    app.state.gauges = health.QueueGauges(parts)
    app.state.refusals = Refusals(parts.registry)
    app.state.statements = StatementLog(parts.registry)
    app.state.siblings = None
    app.state.body_memory = BodyMemory(BODY_MEMORY_BYTES + parts.max_body_bytes)


def create_app(parts: Parts) -> FastAPI:
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
        internal.router,
        *((*GRAPHS, *INSTANCES, *OPERATIONS) if parts.graphs is not None else ()),
        *((users.router, login.router, shares.router) if parts.people is not None else ()),
        *(SOURCES if parts.sources is not None else ()),
        *(TABLES if parts.maintenance is not None else ()),
        *(RECONCILIATION if parts.reconciliation is not None else ()),
    )
    attach(app, parts)
    app.state.routes = [route for router in routers for route in router.routes]
    app.state.written_out = matrix.written_out(app.state.routes)
    matrix.check(app.state.routes)
    for router in routers:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(Direct)
    reconciled = parts.reconciliation
    files = {} if reconciled is None else {"/api/uploads": reconciled.desk.uploads.quota.max_bytes}
    app.add_middleware(BodyLimit, limit=parts.max_body_bytes, files=files)
    app.add_middleware(AddressLimit)
    app.add_middleware(LocalOnly)
    app.add_middleware(AccessLog)
    app.add_middleware(RequestIds)
    return app
