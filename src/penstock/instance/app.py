"""The graph server's HTTP face, put together of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock.http_body import BodyMemory
from penstock.instance import ending, errors, queries, subgraph, views
from penstock.instance.direct import DirectQueries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import APIRouter

    from penstock.instance.served import Served


def create_app(served: Served, *, end: Callable[[float], None], more: Sequence[APIRouter] = ()) -> FastAPI:
    """`end` begins the end of the process; `more` are routes that others bring."""
    app = FastAPI(title="Penstock graph server", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.body_memory = BodyMemory()
    app.state.token = served.settings.token
    app.add_middleware(DirectQueries, served=served)
    errors.install(app)
    own = (views.router(served), queries.router(served), subgraph.router(served), ending.router(served, end))
    routers = (*own, *more)
    app.state.routes = [route for router in routers for route in router.routes]
    for router in routers:
        app.include_router(router)
    return app
