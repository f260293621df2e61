"""Sources that are files already: read where they are, nothing of them is staged.

Parquet in a folder is read by the engine itself. What a shut-in engine cannot reach (object stores) or does not read
exactly (CSV) comes through the source's driver, once, into the scratch folder of the match.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from penstock.reconcile.query import base
from penstock.reconcile.reading import source_sql
from penstock.sources.contract import Limits
from penstock.sources.errors import SourceUnavailable
from penstock.sources.files import FilesSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from penstock.reconcile.recipe import Side
    from penstock.sources.contract import Source

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One side's files. `told` goes into the manifest; `stamps` say whether files of others are still the same."""

    files: Sequence[Path]
    told: Mapping[str, Any]
    filtered: bool
    stamps: Mapping[Path, Stamp] = field(default_factory=dict)

    def check(self) -> None:
        for path, stamp in self.stamps.items():
            if not path.exists() or _stamp(path) != stamp:
                raise SourceUnavailable(f"{path.name} changed while it was read.", hint="It is read again.")


async def take(source: Source, side: Side, target: Path) -> Taken:
    if isinstance(source, FilesSource) and side.table is not None:
        paths = await source.on_disk(base(side, source.dialect))
        if paths is not None:
            return await asyncio.to_thread(_in_place, side, paths)
    rows = await _copied(source, side, target)
    return Taken(files=[target], told=_told(side, rows, [await asyncio.to_thread(_digest, target)]), filtered=True)


def _in_place(side: Side, paths: Sequence[Path]) -> Taken:
    stamps = {path: _stamp(path) for path in paths}
    rows = sum(pq.read_metadata(path).num_rows for path in paths)
    told = _told(side, rows, [_digest(path) for path in paths])
    return Taken(files=paths, told=told, filtered=False, stamps=stamps)


async def _copied(source: Source, side: Side, target: Path) -> int:
    plan = await source.plan(await source_sql(source, side), Limits(max_chunks=1))
    rows = 0
    with pq.ParquetWriter(target, plan.schema) as writer:
        async with aclosing(source.stream(plan.chunks[0])) as batches:
            async for batch in batches:
                await asyncio.to_thread(writer.write_batch, batch)
                rows += batch.num_rows
    return rows


def _told(side: Side, rows: int, digests: Sequence[str]) -> dict[str, Any]:
    table = {} if side.table is None else {"table": side.table}
    return table | {"rows": rows, "sha256": list(digests)}


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
