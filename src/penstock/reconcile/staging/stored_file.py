"""An object of the object store as a seekable file for Arrow: reads only the requested ranges,
without a cache."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.storage.contract import Store

_BATCH_ROWS = 20_000


class StoredFile(io.RawIOBase):
    """Read in threads; the store's calls run on the event loop that created it."""

    def __init__(self, store: Store, key: str, size: int, loop: AbstractEventLoop) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._size = size
        self._loop = loop
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size < 0 else min(size, left)
        if not length:
            return b""
        request = self._store.get_range(self._key, self._at, length)
        data = asyncio.run_coroutine_threadsafe(request, self._loop).result()
        self._at += len(data)
        return data


def batches(file: StoredFile) -> Iterator[pa.RecordBatch]:
    """One row group at a time: Arrow prefetches everything it is asked for at once."""
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            yield from parquet.iter_batches(_BATCH_ROWS, row_groups=[group])
