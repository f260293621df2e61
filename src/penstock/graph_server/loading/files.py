"""The snapshot's files where the engine can read them: in place when the storage is a folder of
this machine, else fetched into the server's own. Either way each is what the manifest says, or
nothing is loaded."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.graphdb.errors import LoadRefused
from penstock.storage.concurrency import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.storage.contract import Store
    from penstock.storage.part import Part

AT_ONCE = 8
_BLOCK = 1024 * 1024


def local_root(storage_url: str) -> Path | None:
    """The storage's folder, if it is one."""
    parts = urlsplit(storage_url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(storage_url).absolute() if not parts.scheme else None


async def bring(store: Store, parts: Sequence[Part], folder: Path) -> dict[str, Path]:
    """By key, the checked file of each part."""
    root = local_root(store.url)

    async def one(part: Part) -> tuple[str, Path]:
        if root is not None:
            file = root / part.path
            digest = await asyncio.to_thread(_digest, file, required=part.sha256 is not None)
        else:
            file = folder / part.path
            digest = await _fetch(store, part, file)
        await asyncio.to_thread(_check, file, part, digest)
        return part.path, file

    return dict(await each(parts, one, at_once=AT_ONCE))


async def _fetch(store: Store, part: Part, file: Path) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with file.open("wb") as sink:
        async for chunk in store.stream(part.path):
            await asyncio.to_thread(_take, sink.write, digest.update, chunk)
    return digest.hexdigest()


def _take(*arguments: object) -> None:
    *takers, chunk = arguments
    for take in takers:
        if callable(take):
            take(chunk)


def _digest(file: Path, *, required: bool) -> str | None:
    if not file.is_file():
        raise LoadRefused(
            f"{file.name} of the snapshot is missing.",
            hint="Create a new snapshot.",
            path=str(file),
        )
    if not required:
        return None
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while block := source.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _check(file: Path, part: Part, digest: str | None) -> None:
    size = file.stat().st_size
    if size != part.size:
        raise _torn(part, f"has {size} bytes, not {part.size}")
    if part.sha256 is not None and digest != part.sha256:
        raise _torn(part, "has another digest than when it was written")
    try:
        rows = pq.read_metadata(file).num_rows
    except (pa.ArrowInvalid, OSError):
        raise _torn(part, "is not a whole Parquet file") from None
    if rows != part.rows:
        raise _torn(part, f"holds {rows} rows, not {part.rows}")


def _torn(part: Part, what: str) -> LoadRefused:
    return LoadRefused(f"{part.path} {what}.", hint="Create a new snapshot.", path=part.path)
