"""A network and a coordinator at their worst: no row is lost, none comes twice, and what cannot be
had is said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.kit.outbound import FOR_OPERATOR
from penstock.sources.config import read
from penstock.sources.errors import SourceError, SourceUnavailable
from penstock.sources.trino import Config, TrinoSource
from penstock.sources.trino.client import Client
from penstock.sources.trino.wire import Wire
from tests.servers.http import Fault, Misdeed
from tests.sources.conformance import chunk
from tests.sources.trino.clock import FastClock
from tests.sources.trino.subjects import FakeSubject

if TYPE_CHECKING:
    from tests.servers.trino_fake import TrinoFake

NUMBERS = "SELECT n FROM numbers"
SPOOL = "/v1/spooled/download"


@pytest.fixture
def clock() -> FastClock:
    return FastClock()


@pytest.fixture
def config(fake_trino: TrinoFake) -> Config:
    subject = FakeSubject(fake_trino)
    fake_trino.engine.load("numbers", pa.table({"n": pa.array(range(9000), pa.int64())}))
    return read(Config, {**subject.config, "encodings": []}, {}, source="trino")


async def numbers(config: Config, clock: FastClock) -> list[int]:
    wire = Wire(config, FOR_OPERATOR, clock=clock, jitter=lambda: 0.0)
    async with TrinoSource(config, clock=clock, client=Client(config, wire)) as source:
        return [
            n
            for batch in [b async for b in source.stream(chunk(NUMBERS))]
            for n in batch["n"].to_pylist()
        ]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(misdeed="torn", skip=5, times=2),
        Fault(misdeed="reset", skip=5, times=3),
        Fault(misdeed="empty", skip=4, times=2),
        Fault(misdeed="status", skip=4, times=2, status=502),
        Fault(misdeed="status", skip=4, times=2, status=503),
        Fault(misdeed="status", skip=4, times=2, status=504),
        Fault(misdeed="reset", path="/v1/statement/queued"),
        Fault(misdeed="reset", method="POST", path="/v1/statement", times=2),
        Fault(misdeed="empty", method="POST", path="/v1/statement", times=1),
    ],
    ids=lambda fault: f"{fault.method}-{fault.misdeed}-{fault.status}",
)
async def test_a_fault_that_passes_is_never_seen(
    fake_trino: TrinoFake, config: Config, clock: FastClock, fault: Fault
) -> None:
    fake_trino.faults.append(fault)
    assert await numbers(config, clock) == list(range(9000))
    assert fault.times == 0
    assert len(clock.slept) >= 1


@pytest.mark.parametrize("misdeed", ["torn", "reset", "empty"])
async def test_a_segment_that_was_torn_is_fetched_again(
    fake_trino: TrinoFake, config: Config, clock: FastClock, misdeed: Misdeed
) -> None:
    fake_trino.faults.append(Fault(misdeed=misdeed, path=SPOOL, skip=1, times=2))
    assert await numbers(replace(config, encodings=("json+zstd",)), clock) == list(range(9000))


async def test_a_page_that_hangs_is_asked_for_again(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fake_trino.faults.append(Fault(misdeed="hang", skip=4, times=1))
    assert await numbers(replace(config, request_timeout=0.5), clock) == list(range(9000))


async def test_retry_after_is_obeyed_up_to_a_third_of_the_clients_timeout(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fake_trino.faults.append(
        Fault(misdeed="status", status=429, skip=3, headers={"Retry-After": "7"})
    )
    fake_trino.faults.append(
        Fault(misdeed="status", status=503, skip=5, headers={"Retry-After": "3600"})
    )
    date = {"Retry-After": "Sun, 15 Nov 2026 00:00:26 GMT"}
    fake_trino.faults.append(Fault(misdeed="status", status=503, skip=6, headers=date))
    assert await numbers(config, clock) == list(range(9000))
    assert clock.slept == [7.0, 10.0, 9.0]


async def test_waits_between_tries_grow_and_are_spread(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fake_trino.faults.append(Fault(misdeed="status", skip=3, times=8))
    wire = Wire(config, FOR_OPERATOR, clock=clock, jitter=lambda: 1.0)
    async with TrinoSource(config, clock=clock, client=Client(config, wire)) as source:
        assert sum([batch.num_rows async for batch in source.stream(chunk(NUMBERS))]) == 9000
    assert clock.slept == pytest.approx(
        [1.25 * wait for wait in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5)]
    )


async def test_a_submission_is_tried_three_times(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fault = Fault(misdeed="reset", method="POST", path="/v1/statement", times=99)
    fake_trino.faults.append(fault)
    with pytest.raises(SourceUnavailable, match="after 3 tries"):
        await numbers(config, clock)
    assert fault.times == 99 - 3
    assert clock.slept == [0.5, 1.0]


async def test_a_coordinator_that_stays_away_is_unavailable(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fake_trino.faults.append(Fault(misdeed="status", skip=4, times=999))
    with pytest.raises(SourceUnavailable, match="HTTP 503"):
        await numbers(config, clock)
    assert sum(clock.slept) == pytest.approx(config.retry_seconds, abs=6)


async def test_a_proxy_that_speaks_html_is_not_a_coordinator(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fake_trino.faults.append(Fault(misdeed="html", skip=1))
    with pytest.raises(SourceError, match="JSON"):
        await numbers(config, clock)


async def test_an_answer_that_leads_elsewhere_is_not_followed(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    elsewhere = replace(config, url=config.url.replace("127.0.0.1", "localhost"))
    with pytest.raises(SourceError, match=r"instead of http://localhost") as error:
        await numbers(elsewhere, clock)
    assert "process-forwarded" in (error.value.hint or "")


async def test_a_query_that_another_reader_went_on_with_is_lost(
    fake_trino: TrinoFake, config: Config, clock: FastClock
) -> None:
    fake_trino.faults.append(Fault(misdeed="status", status=410, skip=4))
    with pytest.raises(SourceUnavailable, match="no longer has"):
        await numbers(config, clock)


async def test_nothing_listens_there(
    config: Config, clock: FastClock, unused_tcp_port: int
) -> None:
    with pytest.raises(SourceUnavailable, match="ConnectError"):
        await numbers(replace(config, url=f"http://127.0.0.1:{unused_tcp_port}"), clock)
