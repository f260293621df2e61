"""Modes unload and ctas: the source writes the files, and the job is parked between polls.

Each poll is one step from the job's state to the next state, so a worker that dies loses nothing
and any worker can continue. The query is registered first and its URI stored; the next step starts
it. No pause is longer than a third of the source's timeout for queries that are not polled.

A query that the source lost, or that failed transiently, fails the attempt. The next attempt finds
the query failed, sees by `attempt_no` that it is not its own, and submits a new one. So the number
of attempts limits the number of queries.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from penstock.graphs.mappings.columns import fit
from penstock.graphs.snapshots.handlers.direct_export import checked, engine_entity, result
from penstock.graphs.snapshots.payloads import FORGET_TABLE, Column, Mode, QueryState
from penstock.jobs.handler import Park, Result
from penstock.jobs.model import JobSpec
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.poll_interval import poll_delay
from penstock.sources.contract import Failed, Finished, Running, UnloadRequest
from penstock.sources.errors import SourceError, transient
from penstock.storage.counts import parts_under, verify_rows
from penstock.storage.errors import RowsDiffer
from penstock.storage.footers import read_schema
from penstock.storage.parquet_sink import ParquetSink
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.graphs.snapshots.payloads import ExportPayload
    from penstock.jobs.handler import Job, JobContext
    from penstock.jobs.model import Json
    from penstock.sources.contract import Source, Unload, WrittenFile
    from penstock.storage.contract import Store
    from penstock.storage.provider import ObjectStoreProvider


class Unloading:
    """One step of an export that its source writes."""

    def __init__(
        self,
        job: Job,
        ctx: JobContext,
        order: ExportPayload,
        source: Source,
        unload: Unload,
        object_store: ObjectStoreProvider,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._job = job
        self._ctx = ctx
        self._order = order
        self._source = source
        self._object_store = object_store
        self._clock = clock
        self._unload = unload

    async def step(self, query: QueryState | None) -> Result | Park | None:
        """The next state, or the result; None if this server does not support it, and the worker
        must export directly."""
        if query is None:
            return await self._begin()
        step = await self._unload.poll(query.parked)
        match step:
            case Running():
                return self._continue(query, step)
            case Finished(rows=rows):
                return await self._collect(query, rows)
            case Failed():
                return await self._failed(query, step)
            case _:
                assert_never(step)

    async def cancel(self, query: QueryState) -> None:
        await self._unload.cancel(query.parked)
        await self._unload.drop(query.parked)

    async def forget(self, query: QueryState) -> None:
        """Unregister the table; its files stay, they belong to the snapshot."""
        await self._unload.forget(query.parked)

    async def _begin(self) -> Park:
        sql = await checked(self._order, self._source, self._ctx)
        fitting = fit(
            self._order.entity, self._order.wanted.columns, await self._source.schema(sql)
        )
        attempt = str(self._ctx.fence.attempt_id)
        export = self._order.wanted
        request = UnloadRequest(
            sql=sql,
            columns=fitting.schema.names,
            location=self._object_store.location(f"{self._order.prefix}attempt-{attempt}/"),
            name=f"penstock_{self._job.job_id}_{self._ctx.fence.attempt_id.hex}",
            through_table=export.mode is Mode.CTAS,
            catalog=export.target_catalog,
            schema=export.target_schema,
        )
        parked = await self._unload.submit(request)
        query = QueryState(
            query_id=parked.query_id,
            next_uri=parked.next_uri,
            poll_count=0,
            submitted_at=self._clock.now().isoformat(),
            attempt=attempt,
            attempt_no=self._job.attempt_no,
            table=parked.table,
        )
        self._ctx.log.info(
            "query_submitted", query_id=query.query_id, mode=str(self._order.wanted.mode)
        )
        return Park(query.state(), 0.0)

    def _continue(self, query: QueryState, running: Running) -> Park:
        polls = query.poll_count + 1
        pause = 0.0 if running.at_once else poll_delay(polls, self._unload.patience)
        after = replace(
            query,
            next_uri=running.next_uri,
            rows=running.rows,
            poll_count=polls,
            attempt_no=self._job.attempt_no,
            next_poll_at=(self._clock.now() + timedelta(seconds=pause)).isoformat(),
        )
        return Park(after.state(), pause)

    async def _failed(self, query: QueryState, failed: Failed) -> Park | None:
        if failed.unsupported:
            self._ctx.log.info("unload_unsupported", query_id=query.query_id)
            return None
        if transient(failed.error) and self._job.attempt_no > query.attempt_no:
            await self._unload.drop(query.parked)
            return await self._begin()
        raise failed.error

    async def _collect(self, query: QueryState, rows: int | None) -> Result | None:
        store = self._object_store.open()
        folder = (
            f"{self._order.prefix}attempt-{query.attempt}/" if query.attempt else self._order.prefix
        )
        parts = await self._parts(query, store, folder)
        stored = sum(part.rows for part in parts)
        if rows is not None and rows != stored:
            raise RowsDiffer(
                f"The files contain {stored} rows, but {self._unload.product} wrote {rows}.",
                stored=stored,
                sent=rows,
            )
        self._order.caps.check(stored, sum(part.size for part in parts))
        if not parts and rows is None:
            return None
        outcome = await self._empty(store) if not parts else await self._entity(query, store, parts)
        return Result(outcome | {"query": query.state()}, spawn=self._forget_job(query))

    async def _entity(
        self, query: QueryState, store: Store, parts: tuple[Part, ...]
    ) -> dict[str, Json]:
        schema = await read_schema(store, parts[0])
        fit(self._order.entity, [Column(name=c.name) for c in self._order.wanted.columns], schema)
        return result(engine_entity(schema, parts, self._order.wanted.sql), query.attempt)

    async def _parts(self, query: QueryState, store: Store, folder: str) -> tuple[Part, ...]:
        files = await self._unload.files(query.parked)
        if files is None:
            return await parts_under(store, folder)
        parts = tuple(self._part(file) for file in files)
        await verify_rows(store, parts, sent=sum(part.rows for part in parts))
        return parts

    def _part(self, file: WrittenFile) -> Part:
        key = self._object_store.key(file.path)
        if key is None:
            raise SourceError(
                f"{self._unload.product} wrote {file.path}, which is outside Penstock's storage.",
                hint="Set PENSTOCK_STORAGE_ENGINE_URL to the storage URL that"
                f" {self._unload.product} uses.",
            )
        return Part(path=key, size=file.size, rows=file.rows)

    async def _empty(self, store: Store) -> dict[str, Json]:
        """Write an empty file with the schema: a query without rows may leave none."""
        sql = await checked(self._order, self._source, self._ctx)
        attempt = str(self._ctx.fence.attempt_id)
        fitting = fit(
            self._order.entity, self._order.wanted.columns, await self._source.schema(sql)
        )
        with ParquetSink(store, self._order.prefix, fitting.schema, attempt=attempt) as sink:
            written = await self._ctx.in_thread(sink.finish)
        return result(written.entity(self._order.wanted.sql), attempt)

    def _forget_job(self, query: QueryState) -> Sequence[JobSpec]:
        """The job that drops the table; it runs only after the outcome is written, because a retry
        would need the table to list the files."""
        if query.table is None:
            return ()
        return [
            JobSpec(
                kind=FORGET_TABLE,
                payload={"payload": self._order.payload(), "state": query.state()},
            )
        ]
