"""Uploaded files: CSV, Parquet or Excel, stored as one Parquet file each, within a user's quota.

Called by the API in the control plane. It writes rows in PostgreSQL and objects in the store; the
file itself is read only by a parser process.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit import logging
from penstock.kit.errors import Conflict, InvalidState, NotFound, PayloadTooLarge
from penstock.kit.loop import Loop
from penstock.kit.scratch import scratch_folder
from penstock.kit.sqlfile import load
from penstock.reconcile.staging.stored_file import StoredFile, batches
from penstock.reconcile.uploads.parsing.limits import MB
from penstock.reconcile.uploads.tabular import ROWS_FILE, Reading
from penstock.storage.footers import read_schema
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    import asyncpg

    from penstock.kit.concurrency_limit import ConcurrencyLimit
    from penstock.kit.db import Db, Tx
    from penstock.kit.loop import LoopMetrics
    from penstock.reconcile.recipes.model import Side
    from penstock.reconcile.runs.side_input import SideInput
    from penstock.reconcile.runs.side_input import StoredFile as InputFile
    from penstock.reconcile.settings import UploadSettings
    from penstock.reconcile.uploads.parsing.parser import Parser
    from penstock.storage.contract import Store

SQL = load("penstock.reconcile.sql")
_CHUNK = 1024 * 1024
_MAX_NAME = 200
_MAKE_ROOM = "Delete uploads that you no longer need: DELETE /api/uploads/{upload_id}."
PREFIX = "uploads/"
SAMPLE_BYTES = 64 * MB
EXPIRY_BATCH = 100
log = logging.get(__name__)


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
    expires_at: datetime

    def input(self) -> SideInput:
        file: InputFile = {
            "key": self.key,
            "rows": self.rows,
            "size": self.size_bytes,
            "sha256": self.sha256,
        }
        return {"upload": self.upload_id, "rows": self.rows, "files": [file]}


class UploadQuotaExceeded(Conflict):
    """The user's uploads reached their quota; delete some of them."""

    code = "UPLOAD_QUOTA_EXCEEDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadQuota:
    """Storage quota and retention of one user, and the size limit of one file."""

    max_bytes: int = 1024 * MB
    user_bytes: int = 10 * 1024 * MB
    user_files: int = 1000
    days: int = 30

    @classmethod
    def of(cls, settings: UploadSettings) -> UploadQuota:
        return cls(
            max_bytes=settings.upload_max_mb * MB,
            user_bytes=settings.upload_quota_mb * MB,
            user_files=settings.upload_quota_files,
            days=settings.upload_days,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadUsage:
    """Storage used by the uploads of one user."""

    files: int
    bytes: int


class Uploads:
    """Whoever takes a file in does it in one of `turns`, for it lies on temporary disk until it is
    stored."""

    def __init__(
        self,
        db: Db,
        store: Callable[[], Store],
        parser: Parser,
        quota: UploadQuota,
        turns: ConcurrencyLimit,
    ) -> None:
        self._db = db
        self.turns = turns
        self._parser = parser
        self.store = store
        self.quota = quota

    async def add(
        self,
        source: Path,
        *,
        name: str,
        owner: str,
        encoding: str = "utf-8",
        delimiter: str | None = None,
    ) -> Upload:
        reading = Reading(name=name, encoding=encoding, delimiter=delimiter)
        reading.check()
        upload_id = uuid4().hex
        key = f"{PREFIX}{upload_id}.parquet"
        with scratch_folder("upload") as folder:
            parsed = await self._parser.convert(source, reading, folder, username=owner)
            digest, size = await asyncio.to_thread(_put, self.store(), key, parsed.path)
        try:
            async with self._db.transaction() as tx:
                await self.check_quota(owner, size, tx)
                await tx.fetch(
                    SQL.upload_add,
                    upload_id=upload_id,
                    owner_username=owner,
                    name=name[:_MAX_NAME],
                    key=key,
                    rows=parsed.rows,
                    size_bytes=size,
                    sha256=digest,
                    columns=orjson.dumps(parsed.columns).decode(),
                )
        except BaseException:
            await self.store().delete([key])
            raise
        log.info("upload_added", upload_id=upload_id, owner=owner, rows=parsed.rows, bytes=size)
        return await self.get(upload_id)

    async def check_quota(self, owner: str, size: int = 0, tx: Tx | None = None) -> None:
        """Refuse an upload over quota. In a transaction, locks the owner's quota until it ends."""
        async with self._db.transaction(tx) as inner:
            if tx is not None:
                await inner.fetch(SQL.upload_quota_lock, owner_username=owner)
            usage = await self.usage(owner, inner)
        files, total = self.quota.user_files, self.quota.user_bytes
        if usage.files >= files:
            message = f"{owner} has {usage.files:,} uploads; the limit is {files:,}."
            raise UploadQuotaExceeded(message, hint=_MAKE_ROOM, files=usage.files, limit=files)
        if usage.bytes + size > total:
            message = (
                f"The uploads of {owner} use {usage.bytes:,} bytes; "
                f"{size:,} more would exceed the limit of {total:,}."
            )
            raise UploadQuotaExceeded(message, hint=_MAKE_ROOM, bytes=usage.bytes, limit=total)

    async def usage(self, owner: str, tx: Tx | None = None) -> UploadUsage:
        async with self._db.transaction(tx) as inner:
            row = await inner.row(SQL.upload_usage, owner_username=owner)
        assert row is not None
        return UploadUsage(files=row["files"], bytes=row["bytes"])

    async def get(self, upload_id: str) -> Upload:
        row = await self._db.row(SQL.upload_get, upload_id=upload_id, days=self.quota.days)
        if row is None:
            raise NotFound(f"There is no upload {upload_id[:40]}.")
        return _upload(row)

    async def page(self, *, owner: str | None, offset: int, limit: int) -> tuple[list[Upload], int]:
        """Newest first, with the total; of all owners if `owner` is None."""
        rows = await self._db.fetch(
            SQL.upload_list,
            owner_username=owner,
            offset=offset,
            limit=limit,
            days=self.quota.days,
        )
        total = await self._db.value(SQL.upload_count, owner_username=owner)
        return [_upload(row) for row in rows], total

    async def used(self, upload_id: str) -> None:
        """Extend the upload's retention because a run reads it."""
        await self._db.fetch(SQL.upload_used, upload_id=upload_id)

    async def delete(self, upload_id: str) -> None:
        """Delete the row and the file, unless a run that is not over reads it."""
        async with self._db.transaction() as tx:
            row = await tx.row(SQL.upload_drop, upload_id=upload_id)
            if row is None:
                await self.get(upload_id)
                raise InvalidState(
                    "A run that has not ended uses this upload.",
                    hint="Wait for it, or cancel it.",
                )
            await self.store().delete([row["key"]])
        log.info("upload_deleted", upload_id=upload_id)

    async def delete_expired(self, limit: int) -> int:
        """Delete uploads that no run has used within the retention; returns their number."""
        async with self._db.transaction() as tx:
            rows = await tx.fetch(SQL.upload_expire, days=self.quota.days, limit=limit)
            if rows:
                await self.store().delete([row["key"] for row in rows])
        return len(rows)

    async def schema(self, upload: Upload) -> pa.Schema:
        part = Part(path=upload.key, size=upload.size_bytes, rows=upload.rows)
        return await read_schema(self.store(), part)

    async def sample(self, upload: Upload, side: Side, rows: int) -> pa.Table:
        """The first rows; with filters the first that pass them, for which the file is copied
        once."""
        store = self.store()
        if not side.filters:
            file = StoredFile(store, upload.key, upload.size_bytes, asyncio.get_running_loop())
            return await asyncio.to_thread(_first, file, rows)
        with scratch_folder("sample") as folder:
            path = folder / ROWS_FILE
            with path.open("wb") as target:
                async for data in store.stream(upload.key):
                    await asyncio.to_thread(target.write, data)
            sampled = await self._parser.sample(
                path, side, rows, folder, username=upload.owner_username
            )
            return await asyncio.to_thread(_read_sample, sampled)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredUploads:
    files: int = 0

    @property
    def total(self) -> int:
        return self.files


class UploadExpiry(Loop[ExpiredUploads]):
    """Deletes uploads that no run has used for `upload_days`."""

    name = "upload_expiry"

    def __init__(self, db: Db, uploads: Uploads, *, every: float, metrics: LoopMetrics) -> None:
        super().__init__(db, every=every, metrics=metrics)
        self._uploads = uploads

    async def run_once(self) -> ExpiredUploads:
        files = 0
        while deleted := await self._uploads.delete_expired(EXPIRY_BATCH):
            files += deleted
        return ExpiredUploads(files=files)


def _read_sample(path: Path) -> pa.Table:
    _check_sample(path.stat().st_size)
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def _check_sample(size: int) -> None:
    """The control plane holds sampled rows in memory."""
    if size > SAMPLE_BYTES:
        raise PayloadTooLarge(
            f"The first rows of the upload take more than {SAMPLE_BYTES:,} bytes.",
            hint="Ask for fewer rows, or leave out columns of long texts.",
            limit=SAMPLE_BYTES,
        )


def _first(file: StoredFile, rows: int) -> pa.Table:
    schema, count, size = pq.read_schema(file), 0, 0
    parts: list[pa.RecordBatch] = []
    for batch in batches(file):
        part = batch.slice(0, rows - count)
        parts.append(part)
        count += part.num_rows
        size += part.nbytes
        _check_sample(size)
        if count >= rows:
            break
    return pa.Table.from_batches(parts, schema)


def _upload(row: asyncpg.Record) -> Upload:
    return Upload(**(dict(row) | {"columns": orjson.loads(row["columns"])}))


def _put(store: Store, key: str, path: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    with path.open("rb") as source, store.writer(key) as writer:
        while data := source.read(_CHUNK):
            digest.update(data)
            writer.write(data)
    return digest.hexdigest(), path.stat().st_size
