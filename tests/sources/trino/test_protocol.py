"""What the driver knows of Trino's protocol, held against a real server and against the one in our
process."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.kit.outbound import FOR_OPERATOR
from penstock.sources.contract import (
    Failed,
    Finished,
    Limits,
    ParkedQuery,
    QueryStep,
    Running,
    Table,
)
from penstock.sources.errors import SourceQueryError
from penstock.sources.trino.client import Client
from penstock.sources.trino.failure import QueryLost
from penstock.sources.trino.headers import Session
from penstock.sources.trino.unload import Target, ctas_sql, unload_sql
from penstock.sources.trino.wire import Wire
from tests.sources.conformance import chunk, freed, started, until
from tests.sources.trino.subjects import ROLE, RealSubject, opened, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.sources.trino.reply import Reply
    from penstock.sources.trino.statements import Statements
    from tests.servers.trino import Trino
    from tests.sources.trino.subjects import TrinoSubject

SESSION = Session(role=ROLE, trace="job-7/2")


@pytest.fixture
async def client(trino_server: TrinoSubject) -> AsyncIterator[Client]:
    async with opened(trino_server) as source:
        config = source._config
    it = Client(config, Wire(config, FOR_OPERATOR))
    yield it
    await it.close()


async def follow(client: Client, reply: Reply) -> list[Reply]:
    replies = [reply]
    while replies[-1].next_uri is not None:
        replies.append((await client.advance(replies[-1].next_uri)).checked())
    return replies


def parked(target: Target) -> ParkedQuery:
    table = (target.catalog, target.schema, target.table)
    return ParkedQuery(query_id="", next_uri="", table=table)


async def drained(statements: Statements, step: QueryStep) -> Finished | Failed:
    while isinstance(step, Running):
        step = await statements.poll(step.next_uri, rows=step.rows)
    return step


async def test_a_post_registers_a_query_and_the_first_get_starts_it(
    trino_server: TrinoSubject, client: Client
) -> None:
    await freed(trino_server)
    reply = await client.submit(trino_server.endless, SESSION)
    assert await trino_server.running() == 0
    assert reply.next_uri is not None
    reply = await client.advance(reply.next_uri)
    assert await trino_server.running() == 1
    await client.cancel(reply.query_id, reply.next_uri)
    await freed(trino_server)


async def test_the_last_page_may_be_asked_for_again_and_an_older_one_is_gone(
    trino_server: TrinoSubject, client: Client
) -> None:
    reply = await client.submit(trino_server.endless, SESSION)
    pages: list[str] = []
    while len(pages) < 4:
        assert reply.next_uri is not None
        reply = await client.advance(reply.next_uri)
        pages += [reply.next_uri] if reply.next_uri and "/executing/" in reply.next_uri else []
    assert (await client.advance(pages[-2])).next_uri == pages[-1]
    for older in pages[:-2]:
        with pytest.raises(QueryLost):
            await client.advance(older)
    await client.cancel(reply.query_id, reply.next_uri)
    await freed(trino_server)


async def test_a_query_is_over_when_there_is_no_next_page_and_not_when_it_says_finished(
    client: Client,
) -> None:
    """Whether an answer says so too early is a matter of luck; within a few queries one does."""
    early = 0
    for _ in range(25):
        replies = await follow(client, await client.submit("SELECT 1 AS one", SESSION))
        early += sum(reply.state == "FINISHED" and reply.next_uri is not None for reply in replies)
        assert [reply.rows for reply in replies if reply.rows] == [b"[[1]]"]
        if early:
            break
    assert early


@pytest.mark.parametrize("by", ["page", "id"])
async def test_a_cancelled_query_ends_at_trino(
    trino_server: TrinoSubject, client: Client, by: str
) -> None:
    reply = await client.submit(trino_server.endless, SESSION)
    reply = await client.advance(reply.next_uri or "")
    await client.cancel(reply.query_id, reply.next_uri if by == "page" else None)
    assert await trino_server.ended(reply.query_id) == "USER_CANCELED"


async def test_a_stream_that_is_closed_early_is_cancelled_at_trino(
    trino_server: TrinoSubject,
) -> None:
    sql = await trino_server.many(300_000)
    async with opened(trino_server, encodings=[]) as source:
        async with aclosing(source.stream(chunk(sql), trace="job-8/1")) as batches:
            await anext(batches)
        assert await trino_server.ended(await trino_server.newest()) == "USER_CANCELED"


async def test_a_stream_whose_task_is_cancelled_is_cancelled_at_trino(
    trino_server: TrinoSubject,
) -> None:
    async with opened(trino_server) as source:
        plan = await source.plan(trino_server.endless, Limits())
        task = asyncio.create_task(anext(source.stream(plan.chunks[0])))
        await started(trino_server)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await trino_server.ended(await trino_server.newest()) == "USER_CANCELED"


async def test_an_answered_query_is_not_cancelled_afterwards(trino_server: TrinoSubject) -> None:
    async with opened(trino_server) as source:
        async for _ in source.stream(chunk("SELECT 1 AS one")):
            pass
        assert await trino_server.ended(await trino_server.newest()) == "FINISHED"


async def test_a_parked_query_outlives_its_poller(trino_server: TrinoSubject) -> None:
    """The first poller is killed before it could write down what its last poll said."""
    await trino_server.prepare_lake()
    target = Target(catalog="lake", schema="exports", table="taken_over")
    written = parked(target)
    job = json.dumps({"config": trino_server.config, "sql": ctas_sql(trino_server.writing, target)})
    command = [sys.executable, "-m", "tests.sources.trino.poller", job]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    query_id, *persisted = [(await child.stdout.readline()).decode().strip() for _ in range(4)]
    child.kill()
    await child.wait()

    async with opened(trino_server) as source:
        statements = source.statements(trace="second")
        end = await drained(statements, await statements.poll(persisted[-1]))
        assert end == Finished(rows=trino_server.writing_rows)
        assert await trino_server.ended(query_id) == "FINISHED"
        unload = source.unload()
        files = await unload.files(written) or []
        assert sum(file.rows for file in files) == trino_server.writing_rows
        assert all(file.size > 0 and file.path.endswith(".parquet") for file in files)
        await unload.drop(written)


async def test_a_table_can_be_forgotten_while_its_files_stay(real_trino: Trino) -> None:
    subject = RealSubject(real_trino)
    await subject.prepare_lake()
    target = Target(catalog="lake", schema="exports", table="it's")
    written = parked(target)
    async with opened(subject) as source:
        statements = source.statements()
        await run(
            statements,
            ctas_sql("SELECT name FROM tpch.tiny.nation", target, location="local:///elsewhere/1"),
        )
        unload = source.unload()
        [file] = await unload.files(written) or []
        await unload.forget(written)
        with pytest.raises(SourceQueryError):
            await unload.files(written)
    left = real_trino.folder / file.path.removeprefix("local:///")
    assert file.path.startswith("local:///elsewhere/1/")
    assert pq.read_metadata(left).num_rows == file.rows == 25


async def test_a_silent_reader_loses_its_query_and_a_slow_one_keeps_it(
    trino_server: TrinoSubject,
) -> None:
    """A slow consumer sends no GET either, but its driver says that it is there."""
    trino_server.hurry()
    sql = await trino_server.many(300_000)
    async with opened(trino_server, encodings=[], parallel=1, client_timeout=1.5) as source:
        batches = source.stream(chunk(sql))
        rows = (await anext(batches)).num_rows
        statements = source.statements()
        step = await statements.poll((await statements.submit(trino_server.endless)).next_uri)
        assert isinstance(step, Running)
        silent = await trino_server.newest()

        async def abandoned() -> bool:
            return await trino_server.ended(silent) is not None

        await until(abandoned)
        assert await trino_server.ended(silent) == "ABANDONED_QUERY"
        lost = await statements.poll(step.next_uri)
        assert isinstance(lost, Failed)
        assert isinstance(lost.error, QueryLost)
        rows += sum([batch.num_rows async for batch in batches])
    assert rows == 300_000


async def test_a_server_without_unload_says_so(trino_server: TrinoSubject) -> None:
    async with opened(trino_server) as source:
        statements = source.statements()
        submitted = await statements.submit(
            unload_sql("SELECT 1 AS one", catalog="lake", location="s3://bucket/prefix/")
        )
        end = await drained(statements, await statements.poll(submitted.next_uri))
    assert isinstance(end, Failed)
    assert end.unsupported
    assert not isinstance(end.error, QueryLost)
    assert "not registered" in end.error.message


async def test_a_failed_ctas_is_a_failure_and_nothing_else(trino_server: TrinoSubject) -> None:
    await trino_server.prepare_lake()
    target = Target(catalog="lake", schema="exports", table="failing")
    async with opened(trino_server) as source:
        statements = source.statements()
        submitted = await statements.submit(ctas_sql("SELECT x FROM no_such_table", target))
        end = await drained(statements, await statements.poll(submitted.next_uri))
    assert isinstance(end, Failed)
    assert not end.unsupported
    assert not isinstance(end.error, QueryLost)
    assert end.error.details["error_name"] == "TABLE_NOT_FOUND"


async def test_the_catalog_can_be_browsed(trino_server: TrinoSubject) -> None:
    await trino_server.load("browsed", pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}))
    async with opened(trino_server) as source:
        tables = await source.catalog.tables()
        [mine] = [table for table in tables if table.name == "browsed"]
        columns = await source.catalog.columns(mine)
        assert await source.catalog.keys(mine.catalog, mine.schema) == []
        assert await source.catalog.columns(Table(catalog="memory", schema="x'y", name="no")) == []
    assert mine.catalog == "memory"
    assert [(column.name, column.position, column.nullable) for column in columns] == [
        ("id", 1, True),
        ("name", 2, True),
    ]


async def test_all_catalogs_are_browsed_when_none_is_configured(trino_server: TrinoSubject) -> None:
    async with opened(trino_server, catalog=None, schema=None) as source:
        catalogs = {table.catalog for table in await source.catalog.tables()}
    assert catalogs >= {"memory"}
    assert "system" not in catalogs
