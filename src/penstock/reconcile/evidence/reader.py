"""Reads stored evidence: the manifest names the files, and they are read one row group at a time.

Each file of a download is first streamed once and verified against its digest in the manifest,
before the first byte of the response: a damaged file is refused by name.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from penstock.kit.errors import NotFound
from penstock.reconcile.evidence.download import MAX_SHEET_ROWS, check_rows, form_of
from penstock.reconcile.runs.payloads import evidence_prefix
from penstock.reconcile.staging.stored_file import StoredFile, batches
from penstock.storage.errors import ObjectDamaged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

    import pyarrow as pa

    from penstock.reconcile.evidence.document import FileEntry, Manifest
    from penstock.reconcile.evidence.download import Form
    from penstock.reconcile.evidence.formulas import Formulas
    from penstock.storage.contract import Store


class EvidenceReader:
    def __init__(self, store: Store, manifest: Manifest) -> None:
        self._store = store
        self._manifest = manifest

    @property
    def _files(self) -> list[FileEntry]:
        return [*self._manifest["files"], *self._manifest.get("aged", ())]

    def _named(self, table: str) -> list[FileEntry]:
        files = [file for file in self._files if file["table"] == table]
        if not files:
            raise NotFound(f"The run has no evidence {table}.")
        return files

    async def download(
        self,
        table: str,
        form: str,
        limit: int | None = None,
        formulas: Formulas = "neutralize",
    ) -> tuple[Form, AsyncIterator[bytes]]:
        """The first chunk is produced before the response starts, so an error is an error response
        and not a truncated file."""
        chosen, named = form_of(form, formulas), self._named(table)
        if form == "xlsx":
            check_rows(min(sum(file["rows"] for file in named), limit or MAX_SHEET_ROWS + 1))
        named = _first_files(named, limit)
        for file in named:
            await self._check(file)
        stream = self._stream(chosen, named, limit)
        return chosen, _resumed(await anext(stream, b""), stream)

    async def _stream(
        self, form: Form, named: Sequence[FileEntry], limit: int | None
    ) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        files = [StoredFile(self._store, self._key(file), file["size"], loop) for file in named]
        schema = await asyncio.to_thread(lambda: pq.read_schema(files[0]))
        async for data in _steps(form.write(schema, _batches(files, limit))):
            yield data

    async def _check(self, file: FileEntry) -> None:
        digest = hashlib.sha256()
        async for data in self._store.stream(self._key(file)):
            await asyncio.to_thread(digest.update, data)
        key, sha256 = self._key(file), digest.hexdigest()
        if sha256 != file["sha256"]:
            raise ObjectDamaged(
                f"{key} is not what was written: its sha256 is {sha256}, not {file['sha256']}.",
                hint="Restore it from a backup of the storage, or run the recipe again.",
                key=key,
            )

    def _key(self, file: FileEntry) -> str:
        return f"{evidence_prefix(self._manifest['run']['run_id'])}{file['name']}"


def _first_files(named: Sequence[FileEntry], limit: int | None) -> list[FileEntry]:
    """The files that hold the first rows; at least one, for its columns."""
    chosen: list[FileEntry] = []
    for file in named:
        if limit is None or not chosen or sum(f["rows"] for f in chosen) < limit:
            chosen.append(file)
    return chosen


async def _resumed(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with aclosing(rest):
        yield first
        async for data in rest:
            yield data


def _batches(files: Sequence[StoredFile], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for file in files:
        for batch in batches(file):
            if left is None:
                yield batch
                continue
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return


async def _steps(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Produce the pieces in a thread, one at a time: a slow client does not hold a thread."""
    while (data := await asyncio.to_thread(next, pieces, None)) is not None:
        if data:
            yield data
