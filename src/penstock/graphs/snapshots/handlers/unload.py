"""Modes unload and ctas: Trino writes the files, and the job is parked between two looks at its
query.

A look is one step: it begins with what the job's state says and ends with the next state, so
whoever dies in the middle has lost nothing, and any worker goes on. The query is registered first
and its address written down; the next look starts it. No pause is longer than a third of the time
after which Trino gives up a query that nobody asks after.

A query that Trino lost, or that failed without its own fault, fails the attempt, which the kernel
writes down; the next attempt finds the query dead as well, knows that it is not its own, and begins
a new one. So attempts bound the queries.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from penstock.graphs.mappings.columns import fit
from penstock.graphs.snapshots.handlers.direct_export import checked, engine_entity, result
from penstock.graphs.snapshots.payloads import FORGET_TABLE, Column, Mode, QueryState
from penstock.jobs.handler import Park, Result, query_trace
from penstock.jobs.model import JobSpec
from penstock.kit.clock import SYSTEM, Clock
from penstock.kit.errors import InvalidInput
from penstock.kit.poll_interval import poll_delay
from penstock.sources.errors import SourceError, SourceQueryError, transient
from penstock.sources.trino.unload import (
    Failed,
    Finished,
    Running,
    Target,
    ctas_sql,
    unload_sql,
)
from penstock.storage.counts import parts_under, verify_rows
from penstock.storage.errors import RowsDiffer
from penstock.storage.footers import read_schema
from penstock.storage.parquet_sink import ParquetSink
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.graphs.snapshots.payloads import ExportPayload
    from penstock.jobs.handler import Job, JobContext
    from penstock.jobs.model import Json
    from penstock.sources.trino import TrinoSource
    from penstock.sources.trino.unload import WrittenFile
    from penstock.storage.contract import Store
    from penstock.storage.provider import ObjectStoreProvider

CLIENT_TIMEOUT = 300.0


class Unloading:
    """One look at one job."""

    def __init__(
        self,
        job: Job,
        ctx: JobContext,
        order: ExportPayload,
        source: TrinoSource,
        depot: ObjectStoreProvider,
        config: Mapping[str, Json],
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._job = job
        self._ctx = ctx
        self._order = order
        self._source = source
        self._depot = depot
        self._config = config
        self._clock = clock
        self._unload = source.unload(trace=query_trace(ctx.fence))

    async def look(self, query: QueryState | None) -> Result | Park | None:
        """The next state, or the end; None when this server cannot, and the export is to be made
        directly."""
        if query is None:
            return await self._begin()
        step = await self._unload.poll(query.next_uri, rows=query.rows)
        match step:
            case Running():
                return self._go_on(query, step)
            case Finished(rows=rows):
                return await self._collect(query, rows)
            case Failed():
                return await self._failed(query, step)
            case _:
                assert_never(step)

    async def cancel(self, query: QueryState) -> None:
        await self._unload.cancel(query.query_id, query.next_uri)
        await self._drop(query)

    async def forget(self, query: QueryState) -> None:
        """The table goes, its files stay: they are the snapshot's."""
        if query.table is not None:
            await self._unload.forget(_target(query.table))

    async def _begin(self) -> Park:
        sql = await checked(self._order, self._source, self._ctx)
        found = fit(self._order.entity, self._order.wanted.columns, await self._source.schema(sql))
        attempt = str(self._ctx.fence.attempt_id)
        table = self._table(found.schema.names) if self._order.wanted.mode is Mode.CTAS else None
        location = self._depot.location(f"{self._order.prefix}attempt-{attempt}/")
        submitted = await self._unload.submit(self._statement(sql, table, location))
        query = QueryState(
            query_id=submitted.query_id,
            next_uri=submitted.next_uri,
            poll_count=0,
            submitted_at=self._clock.now().isoformat(),
            attempt=attempt,
            attempt_no=self._job.attempt_no,
            table=table,
        )
        self._ctx.log.info(
            "query_submitted", query_id=query.query_id, mode=str(self._order.wanted.mode)
        )
        return Park(query.state(), 0.0)

    def _statement(self, sql: str, table: tuple[str, str, str] | None, location: str) -> str:
        if table is not None:
            return ctas_sql(sql, _target(table), location=location.rstrip("/"))
        return unload_sql(sql, catalog=self._catalog(), location=location)

    def _table(self, columns: Sequence[str]) -> tuple[str, str, str]:
        """A name that belongs to this attempt only."""
        schema = self._order.wanted.target_schema or self._config.get("schema")
        if not schema:
            raise InvalidInput("The mode ctas needs a target_schema.")
        if changed := [name for name in columns if name != name.lower()]:
            raise InvalidInput(
                f"Column {changed[0]!r} would lose its capitals: Trino's tables have none.",
                hint="Export it directly or by unload, or give it another name.",
                column=changed[0],
            )
        return (
            self._catalog(),
            str(schema),
            f"penstock_{self._job.job_id}_{self._ctx.fence.attempt_id.hex}",
        )

    def _catalog(self) -> str:
        wanted = self._order.wanted
        catalog = wanted.target_catalog or wanted.starburst_catalog or self._config.get("catalog")
        if not catalog:
            raise InvalidInput(f"The mode {wanted.mode} needs a target_catalog.")
        return str(catalog)

    def _go_on(self, query: QueryState, running: Running) -> Park:
        polls = query.poll_count + 1
        patience = float(self._config.get("client_timeout") or CLIENT_TIMEOUT)
        pause = 0.0 if running.at_once else poll_delay(polls, patience)
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
            await self._drop(query)
            return await self._begin()
        raise failed.error

    async def _collect(self, query: QueryState, rows: int | None) -> Result | None:
        store = self._depot.open()
        folder = (
            f"{self._order.prefix}attempt-{query.attempt}/" if query.attempt else self._order.prefix
        )
        parts = await self._parts(query, store, folder)
        stored = sum(part.rows for part in parts)
        if rows is not None and rows != stored:
            raise RowsDiffer(
                f"The files hold {stored} rows, but Trino wrote {rows}.", stored=stored, sent=rows
            )
        self._order.caps.check(stored, sum(part.size for part in parts))
        if not parts and rows is None:
            return None
        told = await self._empty(store) if not parts else await self._entity(query, store, parts)
        return Result(told | {"query": query.state()}, spawn=self._forgetting(query))

    async def _entity(
        self, query: QueryState, store: Store, parts: tuple[Part, ...]
    ) -> dict[str, Json]:
        schema = await read_schema(store, parts[0])
        fit(self._order.entity, [Column(name=c.name) for c in self._order.wanted.columns], schema)
        return result(engine_entity(schema, parts, self._order.wanted.sql), query.attempt)

    async def _parts(self, query: QueryState, store: Store, folder: str) -> tuple[Part, ...]:
        if query.table is None:
            return await parts_under(store, folder)
        files = await self._files(_target(query.table))
        parts = tuple(self._part(file) for file in files)
        await verify_rows(store, parts, sent=sum(part.rows for part in parts))
        return parts

    async def _files(self, target: Target) -> Sequence[WrittenFile]:
        try:
            return await self._unload.iceberg_files(target)
        except SourceQueryError:
            return await self._unload.hive_files(target)

    def _part(self, file: WrittenFile) -> Part:
        key = self._depot.key(file.path)
        if key is None:
            raise SourceError(
                f"Trino wrote {file.path}, which is not in our storage.",
                hint="PENSTOCK_STORAGE_ENGINE_URL says what Trino calls our storage.",
            )
        return Part(path=key, size=file.size, rows=file.rows)

    async def _empty(self, store: Store) -> dict[str, Json]:
        """A query without rows may leave no file; ours has the schema."""
        sql = await checked(self._order, self._source, self._ctx)
        attempt = str(self._ctx.fence.attempt_id)
        fitting = fit(
            self._order.entity, self._order.wanted.columns, await self._source.schema(sql)
        )
        with ParquetSink(store, self._order.prefix, fitting.schema, attempt=attempt) as sink:
            written = await self._ctx.in_thread(sink.finish)
        return result(written.entity(self._order.wanted.sql), attempt)

    def _forgetting(self, query: QueryState) -> Sequence[JobSpec]:
        """Only once the end is written may the table go: whoever has to collect its files again
        needs it."""
        if query.table is None:
            return ()
        return [
            JobSpec(
                kind=FORGET_TABLE,
                payload={"payload": self._order.payload(), "state": query.state()},
            )
        ]

    async def _drop(self, query: QueryState) -> None:
        if query.table is not None:
            await self._unload.drop(_target(query.table))


def _target(table: tuple[str, str, str]) -> Target:
    catalog, schema, name = table
    return Target(catalog=catalog, schema=schema, table=name)
