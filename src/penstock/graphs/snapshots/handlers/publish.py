"""The publish job: verifies the row counts of all parts by their footers, then writes the manifest.

Every attempt writes the same bytes, because the content comes from immutable job results; an
existing manifest with these bytes counts as written.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from penstock.graphs.snapshots.handlers.direct_export import engine_entity
from penstock.graphs.snapshots.handlers.entity_errors import naming
from penstock.graphs.snapshots.payloads import ExportPayload, QueryState
from penstock.jobs.handler import Answer, Result
from penstock.kit.errors import InvalidState
from penstock.storage.concurrency import each
from penstock.storage.counts import parts_under, verify_rows
from penstock.storage.errors import ObjectMissing
from penstock.storage.footers import read_schema
from penstock.storage.manifest import Manifest, entity_from_json, write_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.graphs.snapshots.control_plane import SnapshotControlPlane
    from penstock.jobs.handler import Job, JobContext
    from penstock.jobs.model import JobView
    from penstock.storage.contract import Store
    from penstock.storage.manifest import Entity, EntityDocument
    from penstock.storage.provider import ObjectStoreProvider


class Publisher:
    def __init__(
        self, connect: Callable[[], SnapshotControlPlane], object_store: ObjectStoreProvider
    ) -> None:
        self._connect = connect
        self._object_store = object_store

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        store = self._object_store.open()
        async with self._connect() as control_plane:
            views = await control_plane.jobs(job.payload["jobs"])
        orders = [ExportPayload.read(view.payload) for view in views]
        counted = await each(views, lambda view: _counted(store, view))
        entities = {
            order.entity.path: entity for order, entity in zip(orders, counted, strict=True)
        }
        created_at = datetime.fromisoformat(job.payload["created_at"])
        await write_manifest(
            store, job.payload["prefix"], Manifest(created_at=created_at, entities=entities)
        )
        ctx.log.info(
            "snapshot_published", snapshot_id=job.payload["snapshot_id"], entities=len(entities)
        )
        return Result(_totals(orders, entities))


async def _counted(store: Store, view: JobView) -> Entity:
    order = ExportPayload.read(view.payload)
    with naming(order.entity):
        document: EntityDocument = view.result
        if not isinstance(view.result, dict) or "row_count" not in view.result:
            raise InvalidState(f"Job {view.job_id} did not end with a row count.")
        rows: int = view.result["row_count"]
        if "parts" not in view.result:
            return await _found(store, order, view)
        entity = entity_from_json(document)
        await verify_rows(store, entity.parts, sent=rows)
        return entity


async def _found(store: Store, order: ExportPayload, view: JobView) -> Entity:
    """The files of an export whose worker reported only row counts: all in its query's folder."""
    query = QueryState.read(view.result.get("query"))
    folder = f"{order.prefix}attempt-{query.attempt}/" if query and query.attempt else order.prefix
    parts = await parts_under(store, folder)
    if not parts:
        raise ObjectMissing(f"There is no file in {store.url}/{folder}.")
    await verify_rows(store, parts, sent=view.result["row_count"])
    return engine_entity(await read_schema(store, parts[0]), parts, order.wanted.sql)


def _totals(orders: Sequence[ExportPayload], entities: dict[str, Entity]) -> dict[str, object]:
    counts: dict[str, dict[str, int]] = {"node": {}, "edge": {}}
    for order in orders:
        by_name = counts[order.entity.job_type]
        by_name[order.entity.name] = (
            by_name.get(order.entity.name, 0) + entities[order.entity.path].rows
        )
    return {
        "node_counts": counts["node"],
        "edge_counts": counts["edge"],
        "size_bytes": sum(entity.size for entity in entities.values()),
    }
