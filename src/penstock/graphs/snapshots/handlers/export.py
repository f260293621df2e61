"""The export job: writes the result of a query to files in the storage, named by the attempt.

Credentials come from the control plane while the job is held, and are kept only in the handler.
Errors name the entity, and the column if there is one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.handlers import direct_export
from penstock.graphs.snapshots.handlers.entity_errors import naming
from penstock.graphs.snapshots.handlers.unload import Unloading
from penstock.graphs.snapshots.payloads import ExportPayload, Mode, QueryState
from penstock.jobs.handler import Answer, Result, Stop, Stopped, query_trace
from penstock.sources.contract import UnloadSource
from penstock.sources.credentials import SourceCredentials

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
    from penstock.jobs.handler import Job, JobContext
    from penstock.sources.contract import Source
    from penstock.storage.provider import ObjectStoreProvider


class Exporter:
    """The handler of the kinds `export` and `unload`."""

    def __init__(
        self, connect: Callable[[], SnapshotControlPlane], object_store: ObjectStoreProvider
    ) -> None:
        self._connect = connect
        self._object_store = object_store

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = ExportPayload.read(job.payload)
        async with self._connect() as control_plane:
            credentials = SourceCredentials.read(await control_plane.source(ctx.fence))
        credentials = _for_job(credentials, order)
        with naming(order.entity):
            async with credentials.opened() as source:
                ctx.log.info("export_began", entity=str(order.entity), mode=str(order.wanted.mode))
                answer = await self._unload(job, ctx, order, source)
                return answer or await direct_export.export(
                    order, source, self._object_store.open(), ctx
                )

    async def _unload(
        self, job: Job, ctx: JobContext, order: ExportPayload, source: Source
    ) -> Answer | None:
        query = QueryState.read(job.state)
        if not isinstance(source, UnloadSource) or (
            query is None and order.wanted.mode is Mode.DIRECT
        ):
            return None
        unload = source.unload(trace=query_trace(ctx.fence))
        unloading = Unloading(job, ctx, order, source, unload, self._object_store)
        try:
            return await unloading.step(query)
        except asyncio.CancelledError:
            if query is not None and _is_over(ctx):
                await unloading.cancel(query)
            raise


class UnloadCleanup:
    """The handler of `cancel_query` and `forget_table`: cleans up what an export left at its
    source."""

    def __init__(
        self,
        connect: Callable[[], SnapshotControlPlane],
        object_store: ObjectStoreProvider,
        action: Callable[[Unloading, QueryState], Awaitable[None]],
    ) -> None:
        self._connect = connect
        self._object_store = object_store
        self._action = action

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = ExportPayload.read(job.payload["payload"])
        query = QueryState.read(job.payload["state"])
        if query is None:
            return Result()
        async with self._connect() as control_plane:
            credentials = SourceCredentials.read(await control_plane.source(ctx.fence))
        credentials = _for_job(credentials, order)
        with naming(order.entity):
            async with credentials.opened() as source:
                if isinstance(source, UnloadSource):
                    unload = source.unload(trace=query_trace(ctx.fence))
                    unloading = Unloading(job, ctx, order, source, unload, self._object_store)
                    await self._action(unloading, query)
        return Result({"query_id": query.query_id})


def _for_job(credentials: SourceCredentials, order: ExportPayload) -> SourceCredentials:
    return credentials.for_job(
        role=order.wanted.starburst_role, catalog=order.wanted.starburst_catalog
    )


def _is_over(ctx: JobContext) -> bool:
    """Whether the job ends with this attempt; then nobody will poll its query again."""
    try:
        ctx.check()
    except Stopped as e:
        return e.why is Stop.DEADLINE
    return False
