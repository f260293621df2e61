"""Mode unload: what is sent, how often is asked, and what comes back."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.kit.poll_interval import poll_delay
from penstock.sources.contract import Failed, Finished, Running
from penstock.sources.trino.unload import Target, ctas_sql, unload_sql
from tests.servers.trino_engine import QueryError
from tests.servers.trino_fake import Script, TrinoFake
from tests.sources.trino.subjects import FakeSubject, opened, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def starburst() -> AsyncIterator[TrinoFake]:
    """A server that has the function."""
    async with TrinoFake(client_timeout=30, unload=True) as fake:
        fake.engine.load("orders", pa.table({"n": pa.array(range(1234), pa.int64())}))
        yield fake


def test_the_delays_grow_like_fibonaccis_rabbits_up_to_ninety_seconds() -> None:
    assert [poll_delay(polls, 600) for polls in range(12)] == [
        0,
        2,
        3,
        5,
        8,
        13,
        21,
        34,
        55,
        89,
        90,
        90,
    ]


def test_no_delay_is_longer_than_a_third_of_the_servers_patience() -> None:
    assert [poll_delay(polls, 300) for polls in (8, 9, 10, 1000)] == [55, 89, 90, 90]
    assert [poll_delay(polls, 60) for polls in (1, 6, 7, 1000)] == [2, 20, 20, 20]
    assert all(
        poll_delay(polls, timeout) <= timeout / 3
        for polls in range(50)
        for timeout in (1, 10, 90, 269, 300)
    )


def test_the_statement_names_the_catalog_and_quotes_what_it_is_given() -> None:
    sql = unload_sql(
        "SELECT 1 AS a;", catalog='la"ke', location="s3://bucket/it's/", compression="SNAPPY"
    )
    assert sql == (
        'SELECT * FROM TABLE("la""ke".system.unload(input => TABLE(\nSELECT 1 AS a\n), '
        "location => 's3://bucket/it''s/', format => 'PARQUET', compression => 'SNAPPY'))"
    )


def test_a_ctas_writes_parquet_where_it_is_told() -> None:
    target = Target(catalog="lake", schema="exports", table="job_7_2")
    assert ctas_sql("SELECT 1 AS a", target) == (
        'CREATE TABLE "lake"."exports"."job_7_2" WITH (format = \'PARQUET\') AS\nSELECT 1 AS a'
    )
    assert ", location = 's3://b/p/'" in ctas_sql("SELECT 1 AS a", target, location="s3://b/p/")
    assert ", external_location = 's3://b/p/'" in ctas_sql(
        "SELECT 1 AS a", target, location="s3://b/p/", kind="hive"
    )


async def test_an_unload_tells_how_many_rows_it_wrote(starburst: TrinoFake) -> None:
    async with opened(FakeSubject(starburst)) as source:
        sql = unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        assert await run(source.statements(trace="job-1/1"), sql) == Finished(rows=1234)
    [query] = starburst.queries.values()
    assert query.headers["x-trino-trace-token"] == "job-1/1"
    assert "x-trino-query-data-encoding" not in query.headers


async def test_a_server_without_the_function_may_name_the_error_as_it_likes(
    starburst: TrinoFake,
) -> None:
    words = "line 1:21: Table function 'lake.system.unload' not registered"
    starburst.scripts.append(Script(match="unload", error=QueryError("INVALID_ARGUMENTS", words)))
    async with opened(FakeSubject(starburst)) as source:
        statements = source.statements()
        submitted = await statements.submit(
            unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        )
        step = await statements.poll(submitted.next_uri)
        while isinstance(step, Running):
            step = await statements.poll(step.next_uri, rows=step.rows)
    assert isinstance(step, Failed)
    assert step.unsupported


async def test_nothing_runs_before_the_first_poll_and_a_poll_is_one_get(
    starburst: TrinoFake,
) -> None:
    async with opened(FakeSubject(starburst)) as source:
        statements = source.statements()
        submitted = await statements.submit(
            unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        )
        assert starburst.queries[submitted.query_id].state == "REGISTERED"
        gets = 0
        step: Running | Finished | Failed = await statements.poll(submitted.next_uri)
        while isinstance(step, Running):
            gets += 1
            assert sum(request.method == "GET" for request in starburst.requests) == gets
            step = await statements.poll(step.next_uri, rows=step.rows)


async def test_a_poll_that_sees_the_end_coming_asks_again_at_once(starburst: TrinoFake) -> None:
    async with opened(FakeSubject(starburst)) as source:
        statements = source.statements()
        submitted = await statements.submit(
            unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        )
        steps = [await statements.poll(submitted.next_uri)]
        while isinstance(last := steps[-1], Running):
            steps.append(await statements.poll(last.next_uri, rows=last.rows))
    assert [
        (step.state, step.at_once, step.rows) for step in steps if isinstance(step, Running)
    ] == [
        ("QUEUED", False, None),
        ("RUNNING", True, 1234),
        ("FINISHED", True, 1234),
        ("FINISHED", True, 1234),
    ]


async def test_a_poll_can_be_repeated_when_its_answer_was_never_written_down(
    starburst: TrinoFake,
) -> None:
    async with opened(FakeSubject(starburst)) as first, opened(FakeSubject(starburst)) as second:
        submitted = await first.statements().submit(
            unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        )
        uri, rows = submitted.next_uri, None
        while True:
            lost = await first.statements().poll(uri, rows=rows)
            again = await second.statements().poll(uri, rows=rows)
            assert lost == again
            if not isinstance(again, Running):
                break
            uri, rows = again.next_uri, again.rows
    assert again == Finished(rows=1234)


async def test_a_parked_query_is_cancelled_by_whoever_has_its_number(starburst: TrinoFake) -> None:
    starburst.scripts.append(Script(match="unload", release=asyncio.Event()))
    async with opened(FakeSubject(starburst)) as source:
        statements = source.statements()
        submitted = await statements.submit(
            unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        )
        step = await statements.poll(submitted.next_uri)
        assert isinstance(step, Running)
        await statements.cancel(submitted.query_id, submitted.next_uri + "0")
        end = await statements.poll(step.next_uri)
    assert isinstance(end, Failed)
    assert end.error.details["error_name"] == "USER_CANCELED"


async def test_what_is_persisted_between_polls_fits_into_a_jobs_state(starburst: TrinoFake) -> None:
    async with opened(FakeSubject(starburst)) as source:
        statements = source.statements()
        submitted = await statements.submit(
            unload_sql("SELECT n FROM orders", catalog="lake", location="s3://b/p/")
        )
        state = json.loads(
            json.dumps(
                {"query_id": submitted.query_id, "next_uri": submitted.next_uri, "rows": None}
            )
        )
        assert isinstance(await statements.poll(state["next_uri"], rows=state["rows"]), Running)
