"""Uploaded files: CSV, Parquet or Excel, kept as one Parquet file each."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit.errors import NotFound
from penstock.kit.scratch import scratch_folder
from penstock.kit.sqlfile import load
from penstock.reconcile.scope import kept
from penstock.reconcile.stored_file import StoredFile, batches
from penstock.reconcile.tabular import Reading, as_parquet
from penstock.storage.footers import read_schema
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from penstock.kit.db import Db
    from penstock.reconcile.recipe import Side
    from penstock.storage.contract import Store

SQL = load("penstock.reconcile.sql")
_CHUNK = 1024 * 1024
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    upload_id: str
    owner_username: str
    name: str
    key: str
    rows: int
    size_bytes: int
    sha256: str
    columns: Sequence[dict[str, str]]
    created_at: datetime

    def input(self) -> dict[str, Any]:
        file = {"key": self.key, "rows": self.rows, "size": self.size_bytes, "sha256": self.sha256}
        return {"upload": self.upload_id, "rows": self.rows, "files": [file]}


class Uploads:
    def __init__(self, db: Db, store: Callable[[], Store]) -> None:
        self._db = db
        self.store = store

    async def add(
        self, given: Path, *, name: str, owner: str, encoding: str = "utf-8", delimiter: str | None = None
    ) -> Upload:
        reading = Reading(name=name, encoding=encoding, delimiter=delimiter)
        upload_id = uuid4().hex
        with scratch_folder("upload") as folder:
            path = await as_parquet(given, reading, folder)
            schema, rows = await asyncio.to_thread(_described, path)
            key = f"uploads/{upload_id}.parquet"
            digest, size = await asyncio.to_thread(_put, self.store(), key, path)
        columns = [{"name": field.name, "type": str(field.type)} for field in schema]
        await self._db.fetch(
            SQL.upload_add,
            upload_id=upload_id,
            owner_username=owner,
            name=name[:_MAX_NAME],
            key=key,
            rows=rows,
            size_bytes=size,
            sha256=digest,
            columns=orjson.dumps(columns).decode(),
        )
        return await self.get(upload_id)

    async def get(self, upload_id: str) -> Upload:
        row = await self._db.row(SQL.upload_get, upload_id=upload_id)
        if row is None:
            raise NotFound(f"There is no upload {upload_id[:40]}.")
        return Upload(**(dict(row) | {"columns": orjson.loads(row["columns"])}))

    async def schema(self, upload: Upload) -> pa.Schema:
        part = Part(path=upload.key, size=upload.size_bytes, rows=upload.rows)
        return await read_schema(self.store(), part)

    async def sample(self, upload: Upload, side: Side, rows: int) -> pa.Table:
        """The first rows; with filters the first that those let through, for which the file is copied once."""
        store = self.store()
        if not side.filters:
            file = StoredFile(store, upload.key, upload.size_bytes, asyncio.get_running_loop())
            return await asyncio.to_thread(_first, file, rows)
        with scratch_folder("sample") as folder:
            path = folder / "rows.parquet"
            with path.open("wb") as target:
                async for data in store.stream(upload.key):
                    await asyncio.to_thread(target.write, data)
            found = await asyncio.to_thread(kept, [path], side, folder / "scope", rows)
            return await asyncio.to_thread(pq.read_table, found)


def _first(file: StoredFile, rows: int) -> pa.Table:
    schema, count = pq.read_schema(file), 0
    found: list[pa.RecordBatch] = []
    for batch in batches(file):
        found.append(batch.slice(0, rows - count))
        count += found[-1].num_rows
        if count >= rows:
            break
    return pa.Table.from_batches(found, schema)


def _described(path: Path) -> tuple[pa.Schema, int]:
    with pq.ParquetFile(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def _put(store: Store, key: str, path: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    with path.open("rb") as source, store.writer(key) as writer:
        while data := source.read(_CHUNK):
            digest.update(data)
            writer.write(data)
    return digest.hexdigest(), path.stat().st_size
