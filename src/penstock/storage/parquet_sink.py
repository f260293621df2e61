"""Stream record batches into Parquet parts in a store, with constant memory.

    batches = source.stream(chunk)
    written = await write_parquet(store, "…/nodes/Person/", schema, batches, attempt=attempt_id)

Encoding and uploading run in one dedicated thread, a row group at a time, while the event loop
collects the next one: at most two row groups and the parts in flight are in memory. An error or a
cancellation aborts: an unfinished part is never visible, and finished parts are in no manifest, so
the sweeper removes them.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.storage import part
from penstock.storage.encoding import Encodings, choose
from penstock.storage.errors import SchemaMismatch
from penstock.storage.keys import check_prefix
from penstock.storage.manifest import Entity, sql_digest
from penstock.storage.part import Part
from penstock.storage.row_groups import GroupLimits, RowGroups
from penstock.storage.schema import check_storable, describe, pack
from penstock.storage.serial_thread import SerialThread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from penstock.storage.contract import Store, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLimits:
    group: GroupLimits = field(default_factory=GroupLimits)
    file_bytes: int = 512 * 1000 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The parts that an attempt wrote; readers see them only once a manifest lists them."""

    schema: pa.Schema
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(p.rows for p in self.parts)

    @property
    def size(self) -> int:
        return sum(p.size for p in self.parts)

    def entity(self, sql: str) -> Entity:
        """The manifest entry for these parts."""
        return Entity(
            columns=describe(self.schema),
            arrow_schema=pack(self.schema),
            sql_sha256=sql_digest(sql),
            parts=self.parts,
        )


class ParquetSink:
    """The blocking API: `push` batches, then `finish`; leaving `with` without it aborts."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        schema: pa.Schema,
        *,
        attempt: str,
        limits: SinkLimits | None = None,
        delta_packed: bool = False,
    ) -> None:
        """`delta_packed` encodes integers as DELTA_BINARY_PACKED, which is smaller; the graph
        engines cannot read such files."""
        check_storable(schema)
        self.schema = schema
        self.limits = limits or SinkLimits()
        self.groups = RowGroups(schema, self.limits.group)
        self._store = store
        self._prefix = check_prefix(prefix)
        self._attempt = part.check_attempt(attempt)
        self._delta_packed = delta_packed
        self._encodings: Encodings | None = None
        self._file: _PartFile | None = None
        self._parts: list[Part] = []

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.abort()

    def push(self, batch: pa.RecordBatch) -> None:
        for group in self.groups.add(batch):
            self.encode(group)

    def finish(self) -> Written:
        """Write the remaining rows; without any rows, write one empty file with the schema."""
        rest = self.groups.rest()
        if rest is not None:
            self.encode(rest)
        if self._file is None and not self._parts:
            self._file = self._open(self.schema.empty_table())
        if self._file is not None:
            self._close(self._file)
        return Written(schema=self.schema, parts=tuple(self._parts))

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()
            self._file = None

    def encode(self, group: pa.Table) -> None:
        """Write one row group, and start a new file when the current one is large enough."""
        file = self._file = self._file or self._open(group)
        file.write(group)
        if file.size >= self.limits.file_bytes:
            self._close(file)

    def _open(self, sample: pa.Table) -> _PartFile:
        self._encodings = self._encodings or choose(sample, delta_packed=self._delta_packed)
        key = self._prefix + part.name(len(self._parts), self._attempt)
        return _PartFile(self._store.writer(key), self.schema, self._encodings)

    def _close(self, file: _PartFile) -> None:
        self._parts.append(file.close())
        self._file = None


async def write_parquet(
    store: Store,
    prefix: str,
    schema: pa.Schema,
    batches: AsyncIterator[pa.RecordBatch],
    *,
    attempt: str,
    limits: SinkLimits | None = None,
    delta_packed: bool = False,
) -> Written:
    """Write all batches to parts under `prefix` and close the iterator in any case. See
    `ParquetSink`."""
    sink = ParquetSink(
        store, prefix, schema, attempt=attempt, limits=limits, delta_packed=delta_packed
    )
    thread = SerialThread()
    try:
        async with _closing(batches):
            async for batch in batches:
                for group in sink.groups.add(batch):
                    await thread.start(sink.encode, group)
        await thread.idle()
        return await thread.run(sink.finish)
    except BaseException:
        await asyncio.shield(thread.run_last(sink.abort))
        raise
    finally:
        thread.close()


@asynccontextmanager
async def _closing(batches: AsyncIterator[pa.RecordBatch]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        aclose: Callable[[], Awaitable[None]] | None = getattr(batches, "aclose", None)
        if aclose is not None:
            await aclose()


class _PartFile:
    def __init__(self, writer: Writer, schema: pa.Schema, encodings: Encodings) -> None:
        self._writer = writer
        self._adapter = _FileAdapter(writer)
        self._parquet = encodings.open(self._adapter, schema)
        self._rows = 0

    @property
    def size(self) -> int:
        return self._writer.size

    def write(self, group: pa.Table) -> None:
        try:
            self._parquet.write_table(group, row_group_size=group.num_rows)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise SchemaMismatch(f"A value cannot be stored in Parquet: {e}") from None
        self._rows += group.num_rows

    def close(self) -> Part:
        self._parquet.close()
        stored = self._writer.close()
        return Part(
            path=stored.key,
            size=stored.size,
            rows=self._rows,
            etag=stored.etag,
            sha256=stored.sha256,
        )

    def abort(self) -> None:
        self._adapter.cut()
        with suppress(pa.ArrowException, OSError):
            self._parquet.close()
        self._writer.abort()


class _FileAdapter:
    """A file object for pyarrow; obstore's writer has `closed` as a method, which pyarrow takes
    for true."""

    closed = False

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._cut = False

    def cut(self) -> None:
        """Discard further writes: a Parquet writer that is closed still writes its footer."""
        self._cut = True

    def write(self, data: memoryview) -> int:
        return len(data) if self._cut else self._writer.write(data)

    def tell(self) -> int:
        return self._writer.size

    def flush(self) -> None:
        """Does nothing: parts are uploaded when they are full."""
