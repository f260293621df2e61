"""From the outbox to a stream, to who waits, and to the lag that a scaler reads."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from penstock.jobs import queue_watch
from penstock.jobs.model import JobSpec, Parking, Release
from penstock.jobs.nats import deliveries
from penstock.jobs.nats.streams import ACK_WAIT_SECONDS
from tests.jobs.conformance import done
from tests.jobs.nats.streams import announcer, connected, jetstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.jobs.nats.settings import NatsSettings
    from tests.jobs.conformance import Clock
    from tests.jobs.nats.conftest import Planes
    from tests.servers.nats import NatsServer


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.1)


@pytest.fixture
def lag(nats_server: NatsServer, nats: NatsSettings) -> Callable[[str], int]:
    """What a scaler sees of a stream."""
    return lambda label: nats_server.lag(
        next(stream.name for stream in nats.streams if stream.label == label)
    )


async def lags(lag: Callable[[str], int], messages: int, label: str = "exec") -> None:
    """Wait until the stream's lag is this: longer than a consumer waits for an acknowledgement."""
    async with asyncio.timeout(3 * ACK_WAIT_SECONDS):
        while True:
            try:
                if await asyncio.to_thread(lag, label) == messages:
                    return
            except LookupError:
                pass  # the stream is not there yet
            await asyncio.sleep(0.02)


async def emptied(clock: Clock) -> None:
    """Wait until the relay's transaction is over: it commits after the stream has the message."""
    async with asyncio.timeout(20):
        while await clock.fetch("SELECT FROM penstock.outbox"):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


async def test_a_message_carries_the_id_of_its_job(
    planes: Planes,
    nats_server: NatsServer,
    nats: NatsSettings,
    lag: Callable[[str], int],
    clock: Clock,
) -> None:
    async with planes() as here:
        job_id = await here.add(payload={"secret": "of the job"})
        await lags(lag, 1)
        async with jetstream(nats_server) as js:
            message = await js.get_msg(nats.streams[1].name, seq=1)
        assert message.data == str(job_id).encode()
        assert "secret" not in str(message)
        await emptied(clock)


async def test_the_queues_of_each_stream_are_announced_in_it(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    async with planes() as here:
        await here.add(queue="stage")
        await here.add(queue="match")
        await here.add(queue="default")
        await lags(lag, 1, "stage")
        await lags(lag, 2, "exec")


async def test_the_lag_counts_what_is_ready_and_what_runs(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    async with planes() as here:
        for _ in range(4):
            await here.add()
        await lags(lag, 4)
        first, second, third = await here.claim(3)
        await asyncio.sleep(3 * deliveries.LOOK_SECONDS)
        await lags(lag, 4)
        await here.store.finish([done(first)])
        await lags(lag, 3)
        await here.store.park([Parking(fence=second.fence, state={}, wake_in=3600)])
        await lags(lag, 2)
        await here.store.release([Release(fence=third.fence, reason="the worker stops")])
        await lags(lag, 2)
        await here.store.finish([done(c) for c in await here.claim(10)])
        await lags(lag, 0)


async def test_a_job_that_is_cancelled_or_lapses_leaves_no_message(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    async with planes() as here:
        cancelled = await here.add()
        await here.add(kind="once")
        await lags(lag, 2)
        await here.store.cancel(cancelled, actor="alice")
        await lags(lag, 1)
        await here.claim_one()
        await here.lapse()
        await lags(lag, 0)


async def test_a_job_that_was_taken_back_has_one_message(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    async with planes() as here:
        await here.held()
        await lags(lag, 1)
        await asyncio.sleep(3 * deliveries.LOOK_SECONDS)
        await here.lapse()
        claimed = await here.claim_one()
        await asyncio.sleep(3 * deliveries.LOOK_SECONDS)
        await lags(lag, 1)
        await here.store.finish([done(claimed)])
        await lags(lag, 0)


async def test_a_job_wakes_who_waits_at_another_plane(
    planes: Planes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the slow poll, and without a notification of PostgreSQL."""
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 3600)
    async with planes() as here, planes() as there:
        for connection in (here, there):
            await connected(connection)
        waiting = asyncio.create_task(there.store.claim("w1", ["default"], 1, wait=50))
        await asyncio.sleep(0.3)
        job_id = await here.add()
        assert [c.job_id for c in await asyncio.wait_for(waiting, 20)] == [job_id]


async def test_what_one_plane_claims_and_another_finishes_is_acknowledged(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    async with planes() as here, planes() as there:
        for _ in range(20):
            await here.add()
        await lags(lag, 20)
        claimed = await here.claim(20)
        await there.store.finish([done(c) for c in claimed])
        await lags(lag, 0)


async def test_a_plane_that_stops_gives_its_messages_to_another(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    async with planes() as here:
        async with planes() as there:
            for _ in range(10):
                await there.add()
            await lags(lag, 10)
        await here.store.finish([done(c) for c in await here.claim(10)])
        await lags(lag, 0)


async def test_an_announcement_of_a_job_that_is_over_is_not_sent(
    planes: Planes, lag: Callable[[str], int], clock: Clock
) -> None:
    await clock.execute(
        "INSERT INTO penstock.outbox (job_id, order_key, queue) VALUES (4711, 1, 'default')"
    )
    async with planes() as here:
        await lags(lag, 0)
        await here.add()
        await lags(lag, 1)
        await emptied(clock)


async def test_a_message_of_somebody_else_is_acknowledged_and_ignored(
    planes: Planes, nats_server: NatsServer, nats: NatsSettings, lag: Callable[[str], int]
) -> None:
    async with planes() as here:
        await connected(here)
        async with jetstream(nats_server) as js:
            for data in (b"", b"not a number", b"9" * 40, b"-1", "٣".encode()):
                await js.publish(nats.streams[1].subject, data, headers={"Penstock-Order": "x"})
        await here.add()
        await lags(lag, 1)
        assert here.plane.metrics.background.failing == {}


async def test_due_jobs_are_announced_while_no_worker_waits(
    planes: Planes, lag: Callable[[str], int]
) -> None:
    """A scaler that has taken the last worker away must hear of them."""
    async with planes() as here:
        await here.store.enqueue([JobSpec(kind="work", run_in=timedelta(seconds=30))])
        await lags(lag, 0)
        await here.clock.advance(31)
        await announcer(here).run_once()
        await lags(lag, 1)
