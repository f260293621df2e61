"""The erase job: removes the files of a snapshot that is deleted, or that failed long ago.

A snapshot that failed may be tried again, into the same place: what was written after `before` is
of that new try, and stays. The manifest goes first, so that nobody reads a result of which a part
is gone.
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
    def __init__(self, depot: ObjectStoreProvider) -> None:
        self._depot = depot

    async def __call__(self, job: Job, ctx: JobContext) -> Answer:
        store = self._depot.open()
        if not (prefix := check_prefix(job.payload["prefix"])):
            raise InvalidInput("The whole storage is not one snapshot; name its prefix.")
        before = job.payload.get("before")
        latest = None if before is None else datetime.fromisoformat(before)
        found = [o async for o in store.list(prefix) if latest is None or o.modified <= latest]
        await store.delete(o.key for o in found if o.key == prefix + manifest.NAME)
        await store.delete(o.key for o in found)
        size = sum(o.size for o in found)
        ctx.log.info("files_erased", prefix=prefix, objects=len(found), bytes=size)
        return Result({"objects": len(found), "bytes": size})
