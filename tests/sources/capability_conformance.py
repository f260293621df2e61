"""What every driver must do that has a capability beyond the contract of all."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow.parquet as pq
import pytest

from penstock.sources.contract import (
    Failed,
    FileSource,
    Finished,
    Limits,
    ParkedQuery,
    QueryStep,
    Running,
    Source,
    SpoolSource,
    Unload,
    UnloadRequest,
    UnloadSource,
)
from penstock.sources.errors import SourceQueryError
from penstock.sources.receipts import Receipts
from tests.sources.conformance import (
    ROWS,
    Conformance,
    Subject,
    chunk,
    collect_batches,
    freed,
    loaded,
    opened,
    sample,
    travelled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class UnloadSubject(Subject, Protocol):
    writing: str
    """A query with two integer columns, that a table may hold."""
    writing_rows: int

    async def prepare_lake(self) -> None:
        """Make what the requests of `target` need."""
        ...

    def target(self, name: str) -> dict[str, str]:
        """Catalog, schema and location of a request of this name."""
        ...


def unload_of(source: Source) -> Unload:
    assert isinstance(source, UnloadSource)
    return source.unload(trace="conformance")


def request(subject: UnloadSubject, sql: str, name: str) -> UnloadRequest:
    target = subject.target(name)
    return UnloadRequest(sql=sql, columns=["a"], name=name, through_table=True, **target)


def persisted(query: ParkedQuery) -> ParkedQuery:
    """The query after its way through a job's state."""
    state = json.loads(json.dumps(asdict(query)))
    return ParkedQuery(**state | {"table": tuple(state["table"]) if state["table"] else None})


async def poll(subject: UnloadSubject, query: ParkedQuery) -> QueryStep:
    """One poll by a process that knows only what was persisted."""
    async with opened(subject) as source:
        return await unload_of(source).poll(persisted(query))


async def ended(subject: UnloadSubject, query: ParkedQuery) -> Finished | Failed:
    while isinstance(step := await poll(subject, query), Running):
        query = replace(query, next_uri=step.next_uri, rows=step.rows)
    return step


class UnloadConformance(Conformance):
    @pytest.fixture
    async def subject(self) -> UnloadSubject:
        raise NotImplementedError

    @pytest.fixture
    async def source(self, subject: UnloadSubject) -> AsyncIterator[Source]:
        await subject.prepare_lake()
        async with opened(subject) as source:
            yield source

    async def test_files_are_written_while_only_polls_of_others_come(
        self, subject: UnloadSubject, source: Source
    ) -> None:
        unload = unload_of(source)
        query = await unload.submit(request(subject, subject.writing, "conform_written"))
        step = await ended(subject, query)
        assert step == Finished(rows=subject.writing_rows)
        files = await unload.files(query)
        assert files is not None
        assert sum(file.rows for file in files) == subject.writing_rows
        assert all(file.size > 0 for file in files)
        for _ in range(2):
            await unload.drop(query)
        with pytest.raises(SourceQueryError):
            await unload.files(query)

    async def test_a_poll_whose_answer_was_lost_is_repeated(
        self, subject: UnloadSubject, source: Source
    ) -> None:
        unload = unload_of(source)
        query = await unload.submit(request(subject, subject.writing, "conform_repeated"))
        at = query
        while isinstance(await poll(subject, at), Running):
            step = await poll(subject, at)
            if not isinstance(step, Running):
                break
            at = replace(at, next_uri=step.next_uri, rows=step.rows)
        assert await poll(subject, at) == Finished(rows=subject.writing_rows)
        await unload.drop(query)

    async def test_a_cancelled_unload_stops_at_the_source(
        self, subject: UnloadSubject, source: Source
    ) -> None:
        unload = unload_of(source)
        query = await unload.submit(request(subject, subject.endless, "conform_cancelled"))
        step = await poll(subject, query)
        assert isinstance(step, Running)
        query = replace(query, next_uri=step.next_uri)
        for _ in range(2):
            await unload.cancel(query)
        await freed(subject)
        assert isinstance(await ended(subject, query), Failed)
        await unload.drop(query)

    async def test_an_unload_of_wrong_sql_fails_as_the_users_error(
        self, subject: UnloadSubject, source: Source
    ) -> None:
        sql = "SELECT 1 AS a FROM no_such_table"
        query = await unload_of(source).submit(request(subject, sql, "conform_wrong"))
        step = await ended(subject, query)
        assert isinstance(step, Failed)
        assert isinstance(step.error, SourceQueryError)
        assert not step.unsupported

    async def test_it_says_for_how_long_it_keeps_a_query(self, source: Source) -> None:
        unload = unload_of(source)
        assert unload.patience >= 1
        assert unload.product


class SpoolConformance(Conformance):
    async def test_rows_are_released_when_all_of_them_are_stored(self, subject: Subject) -> None:
        sql, receipts = await subject.many(50_000), Receipts()
        async with opened(subject) as source:
            assert isinstance(source, SpoolSource)
            batches = source.spooled_stream(chunk(sql), receipts)
            rows = sum([batch.num_rows async for batch in batches])
            spooled = len(receipts)
            await receipts.stored(rows)
            assert (spooled > 0, len(receipts)) == (True, 0)
            assert await collect_batches(source, sql) == rows


class FileConformance(Conformance):
    async def test_a_whole_table_may_be_read_from_its_files(self, subject: Subject) -> None:
        async with loaded(subject, sample=sample()) as source:
            assert isinstance(source, FileSource)
            paths = await source.on_disk("SELECT * FROM sample")
            assert paths is not None
            assert sum(pq.read_metadata(path).num_rows for path in paths) == len(ROWS)
            assert await source.on_disk("SELECT id FROM sample WHERE id > 0") is None

    async def test_a_planned_chunk_says_which_files_it_reads(self, subject: Subject) -> None:
        async with loaded(subject, sample=sample()) as source:
            assert isinstance(source, FileSource)
            plan = await source.plan("SELECT * FROM sample", Limits())
            [file] = {file for part in plan.chunks for file in source.files(travelled(part))}
            assert file.local is not None
            assert (file.local.name, file.local.stat().st_size) == (file.path, file.size)
