"""The erase job: deletes the files of a snapshot that was deleted or failed long ago.

A failed snapshot may be retried into the same prefix: files written after `before` belong to the
retry and stay. The manifest is deleted first, so nobody reads an incomplete result.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from penstock.jobs.handler import Answer, Result
from penstock.kit.errors import InvalidInput
from penstock.storage import manifest
from penstock.storage.keys import check_prefix

if TYPE_CHECKING:
    from penstock.jobs.handler import Job, JobContext
    from penstock.storage.provider import ObjectStoreProvider


class Eraser:
    def __init__(self, object_store: ObjectStoreProvider) -> None:
        self._object_store = object_store

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        store = self._object_store.open()
        if not (prefix := check_prefix(job.payload["prefix"])):
            raise InvalidInput("The erase job needs the prefix of a snapshot.")
        before = job.payload.get("before")
        latest = None if before is None else datetime.fromisoformat(before)
        objects = [o async for o in store.list(prefix) if latest is None or o.modified <= latest]
        await store.delete(o.key for o in objects if o.key == prefix + manifest.NAME)
        await store.delete(o.key for o in objects)
        size = sum(o.size for o in objects)
        ctx.log.info("files_erased", prefix=prefix, objects=len(objects), bytes=size)
        return Result({"objects": len(objects), "bytes": size})
