"""Builds the graph server's FastAPI application, which `process.py` serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock.graph_server.http import errors, shutdown, status
from penstock.graph_server.queries import query as queries
from penstock.graph_server.queries import subgraph
from penstock.graph_server.queries.direct import DirectQueries
from penstock.http.body_memory import BodyMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import APIRouter

    from penstock.graph_server.served_graph import Served


def create_app(
    served: Served, *, end: Callable[[float], None], more: Sequence[APIRouter] = ()
) -> FastAPI:
    """`end` begins the end of the process; `more` are routes that others bring."""
    app = FastAPI(title="Penstock graph server", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.body_memory = BodyMemory()
    app.state.token = served.settings.token
    app.add_middleware(DirectQueries, served=served)
    errors.install(app)
    own = (
        status.router(served),
        queries.router(served),
        subgraph.router(served),
        shutdown.router(served, end),
    )
    routers = (*own, *more)
    app.state.routes = [route for router in routers for route in router.routes]
    for router in routers:
        app.include_router(router)
    return app
