"""Is it alive, can it work, and how does it stand: for orchestrators and scrapers, without envelope or credential."""

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from penstock.api.errors import declare
from penstock.api.parts import HasParts, Parts
from penstock.kit.errors import DatabaseUnavailable, PenstockError, Unavailable

ANSWER_SECONDS = 3.0
FRESH_SECONDS = 1.0
METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"example": 'penstock_queue_depth{queue="default"} 7.0\n'}}}
}


class Health(BaseModel):
    status: str = Field(examples=["ok"])


class Readiness(Health):
    draining: bool


class QueueGauges:
    """Looked up at most once a second, however many scrapers ask; without a database the gauges stand still."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._database = Gauge(
            "penstock_database_up", "Whether the database answered the last look.", registry=parts.registry
        )

    async def refresh(self) -> None:
        async with self._looking:
            if time.monotonic() - self._looked_at < FRESH_SECONDS:
                return
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    self._parts.store.metrics.queues(await self._parts.browser.queues())
                self._database.set(1)
            except (PenstockError, TimeoutError):
                self._database.set(0)
            self._looked_at = time.monotonic()


def create_router(parts: Parts) -> APIRouter:
    router = APIRouter(tags=["health"])
    gauges = QueueGauges(parts)

    @router.get("/health", summary="Is the process alive?")
    async def health() -> Health:
        return Health(status="ok")

    @router.get("/ready", summary="Can it work?", responses=declare(Unavailable, DatabaseUnavailable))
    async def ready(parts: HasParts) -> Readiness:
        """Really asks the database."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                control = await parts.store.control()
        except TimeoutError:
            raise DatabaseUnavailable("The database does not answer.") from None
        return Readiness(status="ready", draining=control["draining"])

    @router.get("/metrics", summary="Prometheus metrics", response_class=PlainTextResponse, responses=METRICS)
    async def metrics() -> Response:
        await gauges.refresh()
        return Response(generate_latest(parts.registry), media_type=CONTENT_TYPE_LATEST)

    return router
