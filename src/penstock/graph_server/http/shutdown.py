"""`POST /shutdown`: ends this server for the control plane; refused while an algorithm writes."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from penstock.graph_server.http.body_limit import GuardedRoute
from penstock.graph_server.http.errors import ShutdownBlocked
from penstock.graph_server.http.identity import Trusted
from penstock.graph_server.queries.results import dump
from penstock.graph_server.served_graph import Served
from penstock.kit import logging

log = logging.get(__name__)


class ShutdownBody(BaseModel):
    reason: str = Field("", max_length=500)
    grace_period_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0
    force: bool = Field(False, description="End even while an algorithm runs; it is cancelled.")


def router(served: Served, end: Callable[[float], None]) -> APIRouter:
    """`end` begins the process's end, with that many seconds for queries under way."""
    routes = APIRouter(route_class=GuardedRoute)

    @routes.post("/shutdown")
    async def shutdown(body: ShutdownBody, caller: Trusted) -> Response:
        caller.must_be_plane()
        holder = served.lock.holding
        if holder is not None and not body.force:
            raise ShutdownBlocked(
                f"{holder.algorithm_name} is running.",
                lock_holder=holder.holder_username,
                algorithm=holder.algorithm_name,
                running_seconds=round((datetime.now(UTC) - holder.acquired_at).total_seconds(), 1),
            )
        active = served.engine.active
        log.info("shutdown_wished", reason=body.reason, active_queries=active)
        served.state = "stopping"
        end(body.grace_period_seconds)
        content = {"acknowledged": True, "active_queries": active, "lock_held": holder is not None}
        return Response(dump(content), media_type="application/json")

    return routes
