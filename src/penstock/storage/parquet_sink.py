"""The streaming Parquet sink: record batches in, parts in a store out, flat in memory.

    written = await write_parquet(store, "…/nodes/Person/", schema, source.stream(chunk), attempt=fence)

Encoding and uploading happen in one thread of the sink's own, a row group at a time, while the loop
gathers the next one: at most two row groups and the parts in flight are in memory. An error or a
cancel aborts: no unfinished part is ever visible, and parts that were finished are named by no
manifest, so the sweeper takes them.
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
    """What an attempt wrote; nobody sees it until a manifest names it."""

    schema: pa.Schema
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(p.rows for p in self.parts)

    @property
    def size(self) -> int:
        return sum(p.size for p in self.parts)

    def entity(self, sql: str) -> Entity:
        """What the manifest will say of it."""
        return Entity(
            columns=describe(self.schema),
            arrow_schema=pack(self.schema),
            sql_sha256=sql_digest(sql),
            parts=self.parts,
        )


class ParquetSink:
    """The blocking face: `push` batches, then `finish`; leaving `with` without it aborts."""

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
        """`delta_packed`: whether whole numbers are, which is smaller; no graph engine may read
        such a file."""
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
        """Write what is left; zero rows still make one file, which has the schema."""
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
        """Write one row group, and roll the file when it is large enough."""
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
    """Drain the batches into parts under `prefix`; the iterator is closed whatever happens. See
    `ParquetSink`."""
    sink = ParquetSink(
        store, prefix, schema, attempt=attempt, limits=limits, delta_packed=delta_packed
    )
    lane = SerialThread()
    try:
        async with _closing(batches):
            async for batch in batches:
                for group in sink.groups.add(batch):
                    await lane.start(sink.encode, group)
        await lane.idle()
        return await lane.run(sink.finish)
    except BaseException:
        await asyncio.shield(lane.last_words(sink.abort))
        raise
    finally:
        lane.close()


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
        self._pipe = _Pipe(writer)
        self._parquet = encodings.open(self._pipe, schema)
        self._rows = 0

    @property
    def size(self) -> int:
        return self._writer.size

    def write(self, group: pa.Table) -> None:
        try:
            self._parquet.write_table(group, row_group_size=group.num_rows)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise SchemaMismatch(f"A value cannot be kept in Parquet: {e}") from None
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
        self._pipe.cut()
        with suppress(pa.ArrowException, OSError):
            self._parquet.close()
        self._writer.abort()


class _Pipe:
    """What pyarrow takes for a file; obstore's own writer has `closed` as a method, which pyarrow
    reads as true."""

    closed = False

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._cut = False

    def cut(self) -> None:
        """Let nothing through any more: a Parquet writer that is dropped writes its footer first."""
        self._cut = True

    def write(self, data: memoryview) -> int:
        return len(data) if self._cut else self._writer.write(data)

    def tell(self) -> int:
        return self._writer.size

    def flush(self) -> None:
        """Parts leave when they are full."""
