"""External sort of rows in bounded memory, however many and however wide they are.

An engine that sorts whole rows needs one vector per run while merging, which is too much memory for
rows of several kilobytes. So DuckDB sorts only the keys and returns the position of each row. The
rows are spilled to disk, distributed into buckets of consecutive positions, and each bucket is
sorted by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from penstock.kit.scratch import scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

Keys: TypeAlias = Callable[[pa.RecordBatch], Sequence[pa.Array]]
Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

KEY_MEMORY = "96MB"
BUCKET_BYTES = 16 * 1024 * 1024
MOST_BUCKETS = 256
"""All bucket files are open at once."""
_PLACES_AT_ONCE = 100_000
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
_PLAIN = pa.ipc.IpcWriteOptions()
"""For buckets, whose pieces are too small to compress well."""


def in_order(
    batches: Iterator[pa.RecordBatch], keys: Keys, ways: Sequence[str], *, check: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """Stable sort; `ways` has the direction of each key, such as `DESC NULLS FIRST`."""
    with scratch_folder("sort") as folder:
        heap = _Heap(folder / "rows")
        with _engine(folder) as engine:
            _rank(engine, heap.keep(batches, keys), ways)
            buckets = _distribute(heap, _places(engine), folder, check)
        heap.drop()
        for bucket in buckets:
            check()
            yield from _sorted(bucket)


class _Heap:
    """The unsorted rows, spilled to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.rows = 0
        self.bytes = 0

    def keep(self, batches: Iterator[pa.RecordBatch], keys: Keys) -> Iterator[pa.RecordBatch]:
        """Spill the rows and yield their keys with row numbers."""
        with ExitStack() as stack:
            writer: pa.RecordBatchStreamWriter | None = None
            for batch in batches:
                if writer is None:
                    writer = stack.enter_context(_writer(self._file, batch.schema, _PACKED))
                writer.write_batch(batch)
                asked = {f"k{number}": values for number, values in enumerate(keys(batch))}
                numbers = pa.array(np.arange(self.rows, self.rows + batch.num_rows))
                self.rows += batch.num_rows
                self.bytes += batch.nbytes
                yield pa.RecordBatch.from_pydict(asked | {"number": numbers})

    def again(self) -> Iterator[pa.RecordBatch]:
        """Read the rows back in large batches, because each is split over all buckets."""
        if self.rows:
            with pa.OSFile(str(self._file)) as source, pa.ipc.open_stream(source) as reader:
                yield from _gathered(reader)

    def drop(self) -> None:
        self._file.unlink(missing_ok=True)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(item.nbytes for item in waiting) >= BUCKET_BYTES:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def _rank(
    engine: duckdb.DuckDBPyConnection, keyed: Iterator[pa.RecordBatch], ways: Sequence[str]
) -> None:
    """Create a table whose n-th row is the number of the row at position n."""
    first = next(keyed, None)
    if first is None:
        engine.execute("CREATE TABLE ranked (number BIGINT)")
        return

    engine.register("keyed", pa.RecordBatchReader.from_batches(first.schema, chain([first], keyed)))
    order = ", ".join([*(f"k{number} {way}" for number, way in enumerate(ways)), "number"])
    engine.execute(f"CREATE TABLE ranked AS SELECT number FROM keyed ORDER BY {order}")
    engine.unregister("keyed")


def _places(engine: duckdb.DuckDBPyConnection) -> Iterator[Places]:
    """The sorted position of each row, in input order."""
    relation = engine.sql("SELECT CAST(rowid AS BIGINT) AS place FROM ranked ORDER BY number")
    for batch in relation.to_arrow_reader(_PLACES_AT_ONCE):
        yield batch.column(0).to_numpy()


def _distribute(
    heap: _Heap, places: Iterator[Places], folder: Path, check: Callable[[], None]
) -> Sequence[Path]:
    count = min(MOST_BUCKETS, max(1, math.ceil(heap.bytes / BUCKET_BYTES)))
    bucket_rows = max(1, math.ceil(heap.rows / count))
    buckets = [folder / f"bucket-{number}" for number in range(math.ceil(heap.rows / bucket_rows))]
    with ExitStack() as stack:
        writers: list[pa.RecordBatchStreamWriter] = []
        for batch, place in _beside(heap.again(), places):
            check()
            wide = batch.append_column("place", pa.array(place))
            if not writers:
                writers = [
                    stack.enter_context(_writer(file, wide.schema, _PLAIN)) for file in buckets
                ]
            for number, piece in _pieces(wide, place // bucket_rows):
                writers[number].write_batch(piece)
    return buckets


def _beside(
    batches: Iterator[pa.RecordBatch], places: Iterator[Places]
) -> Iterator[tuple[pa.RecordBatch, Places]]:
    waiting = np.empty(0, dtype=np.int64)
    for batch in batches:
        while len(waiting) < batch.num_rows:
            waiting = np.concatenate([waiting, next(places)])
        yield batch, waiting[: batch.num_rows]
        waiting = waiting[batch.num_rows :]


def _pieces(batch: pa.RecordBatch, bucket: Places) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a batch by their buckets."""
    order = np.argsort(bucket, kind="stable")
    gathered = batch.take(pa.array(order))
    numbers, starts = np.unique(bucket[order], return_index=True)
    for number, start, end in zip(numbers, starts, [*starts[1:], len(order)], strict=True):
        yield int(number), gathered.slice(start, end - start)


def _sorted(bucket: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(bucket)) as source, pa.ipc.open_stream(source) as reader:
        rows = reader.read_all()
    bucket.unlink()
    last = rows.num_columns - 1  # by position, because the table may have a column of that name
    order = np.argsort(rows.column(last).to_numpy())
    yield from rows.remove_column(last).take(pa.array(order)).combine_chunks().to_batches()


@contextmanager
def _writer(
    file: Path, schema: pa.Schema, form: pa.ipc.IpcWriteOptions
) -> Iterator[pa.RecordBatchStreamWriter]:
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_stream(sink, schema, options=form) as writer,
    ):
        yield writer


@contextmanager
def _engine(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    spill = str(folder / "keys")
    with duckdb.connect(
        config={"memory_limit": KEY_MEMORY, "temp_directory": spill, "threads": 1}
    ) as engine:
        yield engine
