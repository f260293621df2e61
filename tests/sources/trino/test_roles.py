"""Every query says who it is for. Roles come with the call, and never from the call before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pytest

from penstock.kit.errors import InvalidInput
from penstock.sources.contract import Chunk, Limits
from penstock.sources.errors import SourceRefused
from tests.sources.conformance import chunk, collect_batches
from tests.sources.trino.subjects import FakeSubject, RealSubject, opened

if TYPE_CHECKING:
    from tests.servers.trino import Trino
    from tests.servers.trino_fake import TrinoFake

MISSING = "Missing use case ID (X-Use-Case-Id header required)"


@pytest.fixture
def subject(fake_trino: TrinoFake) -> FakeSubject:
    return FakeSubject(fake_trino)


async def test_a_statement_says_who_asks_for_whom_and_for_what(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async with opened(subject, session={"query_max_run_time": "1h"}) as source:
        async for _ in source.stream(chunk("SELECT 1 AS one"), trace="job-12/3"):
            pass
    [*_, query] = fake_trino.queries.values()
    assert {name: value for name, value in query.headers.items() if name.startswith("x-trino")} == {
        "x-trino-user": "tester",
        "x-trino-source": "graph-olap-export-worker",
        "x-trino-client-tags": "graph-olap-export",
        "x-trino-client-capabilities": "PARAMETRIC_DATETIME",
        "x-trino-time-zone": "UTC",
        "x-trino-trace-token": "job-12/3",
        "x-trino-role": "system=ROLE%7Banalyst%7D",
        "x-trino-catalog": "memory",
        "x-trino-schema": "main",
        "x-trino-session": "query_max_run_time=1h",
        "x-trino-query-data-encoding": "json+zstd,json+lz4,json",
    }


async def test_source_and_tags_are_chosen_by_the_configuration(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async with opened(subject, source="nightly", client_tags=["a", "b"]) as source:
        await source.test()
    [query] = fake_trino.queries.values()
    assert query.headers["x-trino-source"] == "nightly"
    assert query.headers["x-trino-client-tags"] == "a,b"


@pytest.mark.parametrize(
    "change", [{"source": ""}, {"client_tags": []}, {"client_tags": ["a,b"]}, {"source": "a\nb"}]
)
def test_source_and_tags_cannot_be_left_out_or_broken(
    subject: FakeSubject, change: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        opened(subject, **change)


async def test_without_a_role_nothing_is_asked(fake_trino: TrinoFake, subject: FakeSubject) -> None:
    async with opened(subject, starburst_role=None) as source:
        for attempt in (
            source.schema("SELECT 1 AS one"),
            source.plan("SELECT 1 AS one", Limits()),
            collect_batches(source, "SELECT 1 AS one"),
        ):
            with pytest.raises(InvalidInput) as error:
                await attempt
            assert error.value.message == MISSING
        with pytest.raises(InvalidInput, match="Missing use case ID"):
            source.unload()
        with pytest.raises(InvalidInput, match="Missing use case ID"):
            source.statements()
        with pytest.raises(InvalidInput, match="Missing use case ID"):
            _ = source.catalog
    assert fake_trino.requests == []


@pytest.mark.parametrize("role", ["a}b", "x\ny", "{", "r" * 201])
async def test_a_role_that_would_break_the_header_is_refused(
    subject: FakeSubject, role: str
) -> None:
    async with opened(subject) as source:
        with pytest.raises(InvalidInput, match="use case ID"):
            await source.as_role(role).schema("SELECT 1 AS one")


async def test_a_role_in_any_script_reaches_the_server(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async with opened(subject) as source:
        await source.as_role("Größe & co=1,2").schema("SELECT 1 AS one")
    [query] = fake_trino.queries.values()
    assert query.headers["x-trino-role"] == "system=" + quote_plus("ROLE{Größe & co=1,2}")


async def test_forty_calls_at_once_never_mix_their_roles(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async def one(source_number: int) -> None:
        role = f"role-{source_number}"
        sql = f"SELECT {source_number} AS number"
        if source_number % 2:
            await collect_batches(source.as_role(role), sql)
        else:
            part = Chunk(number=0, sql=sql, extra={"starburst_role": role})
            assert [
                b.num_rows async for b in source.stream(part, trace=f"job-{source_number}/1")
            ] == [1]

    async with opened(subject) as source:
        await asyncio.gather(*(one(number) for number in range(40)))
    mine = {
        query.sql: query.headers
        for query in fake_trino.queries.values()
        if "LIMIT 0" not in query.sql
    }
    assert len(mine) == 40
    for number in range(40):
        assert (
            mine[f"SELECT {number} AS number"]["x-trino-role"] == f"system=ROLE%7Brole-{number}%7D"
        )
    assert all(
        mine[f"SELECT {n} AS number"]["x-trino-trace-token"] == f"job-{n}/1"
        for n in range(0, 40, 2)
    )


async def test_a_role_travels_from_the_plan_to_the_stream(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async with opened(subject, starburst_role=None) as source:
        plan = await source.as_role("planner").plan("SELECT 1 AS one", Limits())
        assert [batch.num_rows async for batch in source.stream(plan.chunks[0])] == [1]
    assert {q.headers["x-trino-role"] for q in fake_trino.queries.values()} == {
        "system=ROLE%7Bplanner%7D"
    }


async def test_a_role_that_the_user_does_not_have_is_refused(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    fake_trino.forbidden_roles.add("stranger")
    async with opened(subject) as source:
        with pytest.raises(SourceRefused, match="Cannot set role") as error:
            await source.as_role("stranger").schema("SELECT 1 AS one")
    assert "\n" not in error.value.message


async def test_a_real_trino_understands_the_header_and_refuses_the_role(real_trino: Trino) -> None:
    """It has no system roles: a header that it could not read would be HTTP 400 instead."""
    async with opened(RealSubject(real_trino), role_catalog="system") as source:
        with pytest.raises(SourceRefused, match=r"^Access Denied: Cannot set role analyst$"):
            await source.schema("SELECT 1 AS one")
