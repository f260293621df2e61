"""The control plane as an ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock import __version__
from penstock.api import errors, health, internal, jobs, queues, schedules
from penstock.api.reading import BodyLimit
from penstock.api.requests import RequestIds

if TYPE_CHECKING:
    from penstock.api.parts import Parts


def create_app(parts: Parts) -> FastAPI:
    app = FastAPI(
        title="Penstock",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    routers = (health.create_router(parts), jobs.router, queues.router, schedules.router, internal.router)
    for router in routers:
        app.include_router(router)
    app.state.parts = parts
    app.state.routes = [route for router in routers for route in router.routes]
    errors.install(app)
    app.add_middleware(BodyLimit, limit=parts.max_body_bytes)
    app.add_middleware(RequestIds)
    return app
