"""Evidence on its shelf: the manifest names the files, and they are read a row group at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.kit.errors import NotFound
from penstock.reconcile.download import FORMS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from penstock.reconcile.download import Form
    from penstock.storage.contract import Store


class Shelf:
    def __init__(self, store: Store, manifest: Mapping[str, Any]) -> None:
        self._store = store
        self._manifest = manifest

    @property
    def _files(self) -> list[dict[str, Any]]:
        return [*self._manifest["files"], *self._manifest.get("aged", ())]

    def names(self, table: str) -> list[str]:
        found = [file["name"] for file in self._files if file["table"] == table]
        if not found:
            raise NotFound(f"The run has no evidence {table}.")
        return found

    def download(self, table: str, form: str, limit: int | None = None) -> tuple[Form, AsyncIterator[bytes]]:
        chosen = FORMS[form]
        return chosen, self._stream(chosen, self.names(table), limit)

    async def _stream(self, form: Form, names: Sequence[str], limit: int | None) -> AsyncIterator[bytes]:
        prefix = f"runs/{self._manifest['run']['run_id']}/"
        files = [pq.ParquetFile(pa.BufferReader(await self._store.get(prefix + name))) for name in names]
        async for data in _steps(form.write(files[0].schema_arrow, _batches(files, limit))):
            yield data


def _batches(files: Sequence[pq.ParquetFile], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for file in files:
        for batch in file.iter_batches(20_000):
            if left is None:
                yield batch
            elif left > 0:
                yield batch.slice(0, left)
                left -= min(left, batch.num_rows)


async def _steps(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Made in a thread, a piece at a time: a client that reads slowly holds nobody up."""
    while (data := await asyncio.to_thread(next, pieces, None)) is not None:
        if data:
            yield data
