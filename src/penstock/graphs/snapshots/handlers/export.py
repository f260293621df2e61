"""The export job: writes the result of a query to files in the storage, named by the attempt.

Credentials come from the control plane while the job is held, and are kept only in the handler.
Errors name the entity, and the column if there is one.
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
        self, connect: Callable[[], SnapshotControlPlane], object_store: ObjectStoreProvider
    ) -> None:
        self._connect = connect
        self._object_store = object_store

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        order = ExportPayload.read(job.payload)
        async with self._connect() as control_plane:
            credentials = SourceCredentials.read(await control_plane.source(ctx.fence))
        credentials = for_payload(credentials, order)
        with naming(order.entity):
            async with credentials.opened() as source:
                ctx.log.info("export_began", entity=str(order.entity), mode=str(order.wanted.mode))
                answer = await self._run_in_trino(job, ctx, order, credentials, source)
                return answer or await direct_export.export(
                    order, source, self._object_store.open(), ctx
                )

    async def _run_in_trino(
        self,
        job: Job,
        ctx: JobContext,
        order: ExportPayload,
        credentials: SourceCredentials,
        source: Source,
    ) -> Answer | None:
        query = QueryState.read(job.state)
        if not isinstance(source, TrinoSource) or (
            query is None and order.wanted.mode is Mode.DIRECT
        ):
            return None
        unloading = Unloading(job, ctx, order, source, self._object_store, credentials.config)
        try:
            return await unloading.step(query)
        except asyncio.CancelledError:
            if query is not None and _is_over(ctx):
                await unloading.cancel(query)
            raise


class TrinoCleanup:
    """The handler of `cancel_query` and `forget_table`: cleans up what an export left at Trino."""

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
        credentials = for_payload(credentials, order)
        with naming(order.entity):
            async with credentials.opened() as source:
                if isinstance(source, TrinoSource):
                    await self._action(
                        Unloading(job, ctx, order, source, self._object_store, credentials.config),
                        query,
                    )
        return Result({"query_id": query.query_id})


def for_payload(credentials: SourceCredentials, order: ExportPayload) -> SourceCredentials:
    """Credentials for this job: Trino needs the job's role, as there is no default role."""
    if credentials.type != "trino":
        return credentials
    export, config = order.wanted, dict(credentials.config)
    config["starburst_role"] = require_role(export.starburst_role or config.get("starburst_role"))
    if export.starburst_catalog:
        config["catalog"] = export.starburst_catalog
    return replace(credentials, config=config)


def _is_over(ctx: JobContext) -> bool:
    """Whether the job ends with this attempt; then nobody will poll its query again."""
    try:
        ctx.check()
    except Stopped as e:
        return e.why is Stop.DEADLINE
    return False
