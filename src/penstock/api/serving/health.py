"""Liveness, readiness and Prometheus metrics, without envelope or credentials."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from penstock.api.errors import declare
from penstock.api.services import Services, ServicesDep
from penstock.kit import logging
from penstock.kit.errors import DatabaseUnavailable, PenstockError, Unavailable

if TYPE_CHECKING:
    from penstock.api.serving.siblings import Siblings

log = logging.get(__name__)
ANSWER_SECONDS = 3.0
FRESH_SECONDS = 1.0
METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"example": 'penstock_queue_depth{queue="default"} 7.0\n'}}}
}


class Health(BaseModel):
    status: str = Field(examples=["ok"])


class Readiness(Health):
    draining: bool
    failing: dict[str, str] = Field(
        description="Background tasks that fail at present, with their errors;"
        " requests are still served.",
        examples=[
            {"notification listener": "InvalidPasswordError: password authentication failed"}
        ],
    )


class QueueGauges:
    """Queue gauges, refreshed at most once a second; they keep their values while the database is
    unreachable."""

    def __init__(self, services: Services) -> None:
        self._parts = services
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._database = Gauge(
            "penstock_database_up",
            "Whether the database answered the last look.",
            registry=services.registry,
        )

    async def refresh(self) -> None:
        async with self._looking:
            if time.monotonic() - self._looked_at < FRESH_SECONDS:
                return
            self._database.set(await self._look())
            self._looked_at = time.monotonic()

    async def _look(self) -> bool:
        """Whether the database is reachable; a slow count does not make it unreachable."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._parts.store.control()
        except (PenstockError, TimeoutError):
            return False
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._parts.store.metrics.queues(await self._parts.browser.queues())
        except DatabaseUnavailable:
            return False
        except (Unavailable, TimeoutError):
            log.warning("queues_not_counted", seconds=ANSWER_SECONDS)
        return True


router = APIRouter(tags=["health"])


def _gauges(request: Request) -> QueueGauges:
    gauges: QueueGauges = request.app.state.gauges
    return gauges


@router.get("/health", summary="Is the process alive?")
async def health() -> Health:
    return Health(status="ok")


@router.get("/ready", summary="Can it work?", responses=declare(Unavailable, DatabaseUnavailable))
async def ready(services: ServicesDep) -> Readiness:
    """Queries the database."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            control = await services.store.control()
    except TimeoutError:
        raise DatabaseUnavailable("The database is unreachable.") from None
    failing = services.store.metrics.background.failing | {
        f"{loop.name} loop": "The last pass failed; see the log."
        for loop in services.loops
        if loop.last_status == "failed"
    }
    return Readiness(status="ready", draining=control["draining"], failing=failing)


@router.get(
    "/metrics", summary="Prometheus metrics", response_class=PlainTextResponse, responses=METRICS
)
async def metrics(
    request: Request, services: ServicesDep, gauges: Annotated[QueueGauges, Depends(_gauges)]
) -> Response:
    """Summed over all processes that share the port."""
    await gauges.refresh()
    siblings: Siblings | None = request.app.state.siblings
    text = generate_latest(services.registry) if siblings is None else await siblings.metrics()
    return Response(text, media_type=CONTENT_TYPE_LATEST)
