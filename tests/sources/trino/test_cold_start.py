"""A cluster that sleeps answers its first query with a timeout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.kit.errors import PenstockError
from penstock.sources.config import read
from penstock.sources.contract import Limits
from penstock.sources.errors import SourceError, SourceQueryError
from penstock.sources.trino import Config, TrinoSource
from tests.servers.http import Fault
from tests.servers.trino_engine import QueryError
from tests.servers.trino_fake import Script
from tests.sources.conformance import chunk
from tests.sources.trino.clock import FastClock
from tests.sources.trino.subjects import FakeSubject

if TYPE_CHECKING:
    from tests.servers.trino_fake import TrinoFake

SQL = "SELECT n FROM numbers"


@pytest.fixture
def config(fake_trino: TrinoFake) -> Config:
    subject = FakeSubject(fake_trino)
    fake_trino.engine.load("numbers", pa.table({"n": pa.array(range(9000), pa.int64())}))
    return read(Config, {**subject.config, "encodings": []}, {}, source="trino")


async def rows(config: Config, clock: FastClock) -> int:
    async with TrinoSource(config, clock=clock) as source:
        return sum([batch.num_rows async for batch in source.stream(chunk(SQL))])


def runs(fake: TrinoFake) -> int:
    return sum(query.sql == SQL for query in fake.queries.values())


@pytest.mark.parametrize(
    "error",
    [
        QueryError(
            "CLUSTER_STARTUP_TIMEOUT", "the cluster did not come up", "INSUFFICIENT_RESOURCES"
        ),
        QueryError("GENERIC_INTERNAL_ERROR", "Request timed out after 30s", "INTERNAL_ERROR"),
        QueryError("REMOTE_TASK_ERROR", "Timeout waiting for workers", "EXTERNAL"),
    ],
    ids=lambda error: error.name,
)
async def test_a_timeout_is_tried_twice_more_five_seconds_apart(
    fake_trino: TrinoFake, config: Config, error: QueryError
) -> None:
    clock = FastClock()
    fake_trino.scripts.append(Script(match=SQL, error=error, times=2))
    assert await rows(config, clock) == 9000
    assert clock.slept == [5.0, 5.0]
    assert runs(fake_trino) == 3


async def test_after_two_retries_it_is_given_up(fake_trino: TrinoFake, config: Config) -> None:
    clock = FastClock()
    fake_trino.scripts.append(
        Script(match=SQL, error=QueryError("STARTUP_TIMEOUT", "still asleep", "EXTERNAL"))
    )
    with pytest.raises(SourceError) as error:
        await rows(config, clock)
    assert error.value.message == "Direct export failed after 2 retries: STARTUP_TIMEOUT"
    assert clock.slept == [5.0, 5.0]
    assert runs(fake_trino) == 3


async def test_the_query_that_timed_out_is_cancelled_before_the_next_begins(
    fake_trino: TrinoFake, config: Config
) -> None:
    impatient = replace(config, request_timeout=0.3, retry_seconds=0)
    async with TrinoSource(impatient, clock=FastClock()) as source:
        [planned] = (await source.plan(SQL, Limits())).chunks
        fake_trino.faults.append(Fault(misdeed="hang"))
        assert sum([batch.num_rows async for batch in source.stream(planned)]) == 9000
    first, second = (query for query in fake_trino.queries.values() if query.sql == SQL)
    assert first.error is not None
    assert first.error.name == "USER_CANCELED"
    assert second.state == "FINISHED"
    order = [
        request.method for request in fake_trino.requests if request.method in ("POST", "DELETE")
    ]
    assert order[-2:] == ["DELETE", "POST"]


async def test_a_timeout_after_the_first_rows_is_not_retried_for_they_would_come_twice(
    fake_trino: TrinoFake, config: Config
) -> None:
    clock = FastClock()
    impatient = replace(config, request_timeout=0.3, retry_seconds=0)
    async with TrinoSource(impatient, clock=clock) as source:
        [planned] = (await source.plan(SQL, Limits())).chunks
        fake_trino.faults.append(Fault(misdeed="hang", skip=2))
        batches = source.stream(planned)
        assert [(await anext(batches)).num_rows for _ in range(2)] == [2000, 2000]
        with pytest.raises(PenstockError, match="ReadTimeout"):
            await anext(batches)
    assert clock.slept == []
    assert runs(fake_trino) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            QueryError(
                "EXCEEDED_MEMORY_LIMIT", "Query exceeded per-node memory", "INSUFFICIENT_RESOURCES"
            ),
            SourceError,
        ),
        (QueryError("DIVISION_BY_ZERO", "/ by zero"), SourceQueryError),
        (QueryError("HIVE_BAD_DATA", "bad", "EXTERNAL"), SourceError),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_any_other_error_fails_at_once_with_trinos_own_words(
    fake_trino: TrinoFake, config: Config, error: QueryError, kind: type[PenstockError]
) -> None:
    clock = FastClock()
    fake_trino.scripts.append(Script(match=SQL, error=error))
    with pytest.raises(kind) as failure:
        await rows(config, clock)
    assert failure.value.message == f"{error.name}: {error.message}"
    assert failure.value.details["error_type"] == error.kind
    assert failure.value.details["query_id"]
    assert clock.slept == []
    assert runs(fake_trino) == 1
