"""Evidence on its shelf: the manifest names the files, and they are read a row group at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from penstock.kit.errors import NotFound
from penstock.reconcile.download import FORMS
from penstock.reconcile.stored_file import StoredFile, batches

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    import pyarrow as pa

    from penstock.reconcile.download import Form
    from penstock.storage.contract import Store


class Shelf:
    def __init__(self, store: Store, manifest: Mapping[str, Any]) -> None:
        self._store = store
        self._manifest = manifest

    @property
    def _files(self) -> list[dict[str, Any]]:
        return [*self._manifest["files"], *self._manifest.get("aged", ())]

    def _named(self, table: str) -> list[dict[str, Any]]:
        found = [file for file in self._files if file["table"] == table]
        if not found:
            raise NotFound(f"The run has no evidence {table}.")
        return found

    def download(self, table: str, form: str, limit: int | None = None) -> tuple[Form, AsyncIterator[bytes]]:
        chosen = FORMS[form]
        return chosen, self._stream(chosen, self._named(table), limit)

    async def _stream(self, form: Form, named: Sequence[Mapping[str, Any]], limit: int | None) -> AsyncIterator[bytes]:
        prefix = f"runs/{self._manifest['run']['run_id']}/"
        loop = asyncio.get_running_loop()
        files = [StoredFile(self._store, prefix + file["name"], file["size"], loop) for file in named]
        schema = await asyncio.to_thread(lambda: pq.read_schema(files[0]))
        async for data in _steps(form.write(schema, _batches(files, limit))):
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
    """Made in a thread, a piece at a time: a client that reads slowly holds nobody up."""
    while (data := await asyncio.to_thread(next, pieces, None)) is not None:
        if data:
            yield data
