"""One query's rows from a source into Parquet parts, and a manifest that makes them a result.

Nothing is a result before the manifest is there. Whatever goes wrong before, a Ctrl-C too, cancels
the query at its source and takes away what was written.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from penstock.guard.sql import check
from penstock.kit.clock import SYSTEM
from penstock.kit.errors import InvalidInput
from penstock.sources.contract import Limits
from penstock.storage.counts import verify_rows
from penstock.storage.errors import ObjectExists
from penstock.storage.manifest import NAME, Manifest, write_manifest
from penstock.storage.object_store import open_store
from penstock.storage.parquet_sink import Written, write_parquet
from penstock.storage.part import attempt_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    import pyarrow as pa

    from penstock.sources.contract import Plan, Source
    from penstock.storage.contract import Store
    from penstock.storage.object_store import StoreOptions

ENTITY = "result"


class Watcher(Protocol):
    def planned(self, rows: int | None) -> None:
        """About how many there will be, if anybody knows."""
        ...

    def read(self, rows: int, size: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    place: str
    written: Written
    seconds: float

    @property
    def manifest(self) -> str:
        return f"{self.place}/{NAME}"


async def extract(source: Source, sql: str, store: Store, watcher: Watcher) -> Extracted:
    """Run the query, which must be one that only reads, and leave its rows in a store that holds no
    result yet."""
    started = time.monotonic()
    query = check(sql, source.dialect).sql
    plan = await source.plan(query, Limits(max_chunks=1))
    attempt = uuid4().hex
    try:
        watcher.planned(_expected(plan))
        counted = _Counted(source, plan, watcher)
        written = await write_parquet(
            store, "", plan.schema, counted.batches(), attempt=attempt, delta_packed=True
        )
        await verify_rows(store, written.parts, sent=counted.rows)
        manifest = Manifest(created_at=SYSTEM.now(), entities={ENTITY: written.entity(query)})
        await write_manifest(store, "", manifest)
    except BaseException:
        await asyncio.shield(_take_away(store, attempt))
        raise
    finally:
        if plan.hold is not None:
            await plan.hold.close()
    return Extracted(place=store.url, written=written, seconds=time.monotonic() - started)


@asynccontextmanager
async def destination(url: str, options: StoreOptions) -> AsyncIterator[Store]:
    """An empty store. A folder created here is removed again if nothing was written to it."""
    new_folders = _missing_folders(url)
    try:
        store = _open(url, options)
        if await store.exists(NAME):
            raise ObjectExists(
                f"{store.url} holds a result already, and a result is never written over.",
                hint="Choose another place, or remove that one first.",
            )
        yield store
    finally:
        for folder in new_folders:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _open(url: str, options: StoreOptions) -> Store:
    try:
        return open_store(url, options=options)
    except OSError as e:
        raise InvalidInput(f"{url} cannot be written to: {e.strerror}.") from None


class _Counted:
    def __init__(self, source: Source, plan: Plan, watcher: Watcher) -> None:
        self._source = source
        self._plan = plan
        self._watcher = watcher
        self.rows = 0

    async def batches(self) -> AsyncGenerator[pa.RecordBatch]:
        for chunk in self._plan.chunks:
            async with aclosing(self._source.stream(chunk, trace="export")) as batches:
                async for batch in batches:
                    self.rows += batch.num_rows
                    self._watcher.read(batch.num_rows, batch.nbytes)
                    yield batch


def _expected(plan: Plan) -> int | None:
    estimates = [chunk.estimated_rows for chunk in plan.chunks if chunk.estimated_rows is not None]
    return sum(estimates) if estimates and len(estimates) == len(plan.chunks) else None


async def _take_away(store: Store, attempt: str) -> None:
    await store.delete(
        [info.key async for info in store.list("") if attempt_of(info.key) == attempt]
    )


def _missing_folders(url: str) -> list[Path]:
    """The folders that will be made for a local path, the innermost first."""
    if "://" in url and not url.startswith("file://"):
        return []
    path = Path(url.removeprefix("file://")).absolute()
    return [folder for folder in (path, *path.parents) if not folder.exists()]
