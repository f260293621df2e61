"""The export job: from a query at a source to files in the storage, named by the attempt and
counted.

Credentials come from the control plane while the job is held, and go with the handler. Whatever
goes wrong is told with the entity, and the column where there is one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.handlers import direct_export
from penstock.graphs.snapshots.handlers.entity_errors import naming
from penstock.graphs.snapshots.handlers.unload import Unloading
from penstock.graphs.snapshots.payloads import ExportPayload, Mode, QueryState
from penstock.jobs.handler import Answer, Result, Stop, Stopped
from penstock.sources.credentials import SourceCredentials
from penstock.sources.trino import TrinoSource
from penstock.sources.trino.headers import require_role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
    from penstock.jobs.handler import Job, JobContext
    from penstock.sources.contract import Source
    from penstock.storage.provider import ObjectStoreProvider


class Exporter:
    """The handler of the kinds `export` and `unload`."""

    def __init__(
        self, planes: Callable[[], SnapshotControlPlane], depot: ObjectStoreProvider
    ) -> None:
        self._planes = planes
        self._depot = depot

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = ExportPayload.read(job.payload)
        async with self._planes() as plane:
            opening = SourceCredentials.read(await plane.source(ctx.fence))
        opening = for_order(opening, order)
        with naming(order.entity):
            async with opening.opened() as source:
                ctx.log.info("export_began", entity=str(order.entity), mode=str(order.wanted.mode))
                answer = await self._look(job, ctx, order, opening, source)
                return answer or await direct_export.export(order, source, self._depot.open(), ctx)

    async def _look(
        self,
        job: Job,
        ctx: JobContext,
        order: ExportPayload,
        opening: SourceCredentials,
        source: Source,
    ) -> Answer | None:
        query = QueryState.read(job.state)
        if not isinstance(source, TrinoSource) or (
            query is None and order.wanted.mode is Mode.DIRECT
        ):
            return None
        unloading = Unloading(job, ctx, order, source, self._depot, opening.config)
        try:
            return await unloading.look(query)
        except asyncio.CancelledError:
            if query is not None and _is_over(ctx):
                await unloading.cancel(query)
            raise


class TrinoCleanup:
    """The handler of `cancel_query` and `forget_table`: sees to what an export that is over left at
    Trino."""

    def __init__(
        self,
        planes: Callable[[], SnapshotControlPlane],
        depot: ObjectStoreProvider,
        see_to: Callable[[Unloading, QueryState], Awaitable[None]],
    ) -> None:
        self._planes = planes
        self._depot = depot
        self._see_to = see_to

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = ExportPayload.read(job.payload["payload"])
        query = QueryState.read(job.payload["state"])
        if query is None:
            return Result()
        async with self._planes() as plane:
            opening = SourceCredentials.read(await plane.source(ctx.fence))
        opening = for_order(opening, order)
        with naming(order.entity):
            async with opening.opened() as source:
                if isinstance(source, TrinoSource):
                    await self._see_to(
                        Unloading(job, ctx, order, source, self._depot, opening.config), query
                    )
        return Result({"query_id": query.query_id})


def for_order(opening: SourceCredentials, order: ExportPayload) -> SourceCredentials:
    """The source as this job may use it: Trino under the job's own role, for there is no role by
    default."""
    if opening.type != "trino":
        return opening
    wanted, config = order.wanted, dict(opening.config)
    config["starburst_role"] = require_role(wanted.starburst_role or config.get("starburst_role"))
    if wanted.starburst_catalog:
        config["catalog"] = wanted.starburst_catalog
    return replace(opening, config=config)


def _is_over(ctx: JobContext) -> bool:
    """Whether the job ends with this attempt: then nobody will ask after its query again."""
    try:
        ctx.check()
    except Stopped as e:
        return e.why is Stop.DEADLINE
    return False
