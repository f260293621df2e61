"""Sources that already are files: read in place, not staged.

The engine reads Parquet in a folder itself. What a sandboxed engine cannot reach (object stores) or
does not read exactly (CSV) is copied once by the source's driver to the scratch folder of the
match: several pieces in parallel, one batch at a time. Each piece belongs to the object version
that was listed; an object that changes in between is an error.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from penstock.engines.spill import writing
from penstock.reconcile.matching.column import case_twins
from penstock.reconcile.staging.query import base
from penstock.reconcile.staging.reading import source_sql
from penstock.sources.contract import FileSource, Limits
from penstock.sources.errors import SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.reconcile.recipes.model import Side
    from penstock.sources.contract import Chunk, Plan, Source

Stamp = tuple[int, int, int]
READERS = 4
PIECES = Limits(chunk_bytes=32 * 1024 * 1024, max_chunks=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFiles:
    """The input files of one side. `manifest_entry` is recorded in the manifest; `stamps` detect
    changes of files read in place."""

    files: Sequence[Path]
    manifest_entry: Mapping[str, JsonValue]
    filtered: bool
    stamps: Mapping[Path, Stamp] = field(default_factory=dict)

    def check(self) -> None:
        for path, stamp in self.stamps.items():
            if not path.exists() or _stamp(path) != stamp:
                raise SourceUnavailable(
                    f"{path.name} changed while it was read.",
                    hint="The job is retried and reads it again.",
                )


async def take(source: Source, side: Side, target: Path) -> SideFiles:
    if isinstance(source, FileSource) and side.table is not None:
        paths = await source.on_disk(base(side, source.dialect))
        if paths is not None:
            return await asyncio.to_thread(_read_in_place, side, paths)
    in_case_only = await _differs_in_case_only(source, side)
    sql = base(side, source.dialect) if in_case_only else await source_sql(source, side)
    plan = await source.plan(sql, PIECES)
    files = [target.with_name(f"{target.stem}-{chunk.number:02d}.parquet") for chunk in plan.chunks]
    rows = await _copy(source, plan, files)
    digests = await asyncio.to_thread(_read_from, source, plan)
    return SideFiles(
        files=files, manifest_entry=_manifest_entry(side, rows) | digests, filtered=not in_case_only
    )


async def _differs_in_case_only(source: Source, side: Side) -> bool:
    """Whether a table has columns that differ only in case, which SQL over files cannot tell apart:
    then it is read whole and filtered here."""
    if not (isinstance(source, FileSource) and side.table is not None and side.filters):
        return False
    return case_twins((await source.schema(base(side, source.dialect))).names) is not None


def _read_in_place(side: Side, paths: Sequence[Path]) -> SideFiles:
    stamps = {path: _stamp(path) for path in paths}
    rows = sum(pq.read_metadata(path).num_rows for path in paths)
    described = _manifest_entry(side, rows) | {"sha256": [_digest(path) for path in paths]}
    return SideFiles(files=paths, manifest_entry=described, filtered=False, stamps=stamps)


async def _copy(source: Source, plan: Plan, files: Sequence[Path]) -> int:
    slots = asyncio.Semaphore(READERS)

    async def one(chunk: Chunk, file: Path) -> int:
        async with slots:
            return await _piece(source, chunk, plan.schema, file)

    try:
        async with asyncio.TaskGroup() as group:
            pieces = zip(plan.chunks, files, strict=True)
            tasks = [group.create_task(one(chunk, file)) for chunk, file in pieces]
    except ExceptionGroup as e:
        raise e.exceptions[0] from None
    return sum(task.result() for task in tasks)


async def _piece(source: Source, chunk: Chunk, schema: pa.Schema, file: Path) -> int:
    rows = 0
    with writing(file.parent), pq.ParquetWriter(file, schema) as writer:
        async with aclosing(source.stream(chunk)) as batches:
            async for batch in batches:
                await asyncio.to_thread(writer.write_batch, batch)
                rows += batch.num_rows
    return rows


def _read_from(source: Source, plan: Plan) -> JsonObject:
    """SHA-256 digests of files in a folder; for objects the version that was read, by their
    store."""
    if not isinstance(source, FileSource):
        return {}
    files = dict.fromkeys(file for chunk in plan.chunks for file in source.files(chunk))
    paths = [file.local for file in files if file.local is not None]
    if paths:
        return {"sha256": [_digest(path) for path in paths]}
    return {
        "objects": [{"path": file.path, "size": file.size, "etag": file.etag} for file in files]
    }


def _manifest_entry(side: Side, rows: int) -> JsonObject:
    return ({} if side.table is None else {"table": side.table}) | {"rows": rows}


def _stamp(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
