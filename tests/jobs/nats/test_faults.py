"""NATS fails in mid-run: no job is lost, it is shown, and what failed comes back by itself."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from penstock.jobs.model import JobSpec
from penstock.jobs.nats import connection, deliveries, relay
from penstock.kit import background
from penstock.kit.backoff import Backoff
from tests.api.control_plane import plane
from tests.chaos.proxy import Proxy
from tests.jobs.conformance import Subject, done
from tests.jobs.nats.streams import announcer, connected, jetstream, nats_settings
from tests.servers.nats import NatsServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from penstock.jobs.nats.settings import NatsSettings
    from tests.api.control_plane import Edge
    from tests.jobs.conformance import Clock

JOBS = 30
PATIENCE = 90.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RESTART", Backoff(base=0.05, factor=2, cap=0.4))
    monkeypatch.setattr(connection, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(connection, "CHECK_TIMEOUT", 1)
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(relay, "PUBLISH_SECONDS", 1.0)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as server:
        yield server


@asynccontextmanager
async def running(database: str, clock: Clock, settings: NatsSettings) -> AsyncIterator[Subject]:
    async with plane(database, nats=settings) as services:
        subject = Subject(store=services.store, services=services, clock=clock)
        await connected(subject)
        yield subject


async def work(subject: Subject, jobs: int) -> set[int]:
    """A worker: it waits for work until so many jobs are done."""
    ended: set[int] = set()
    while len(ended) < jobs:
        claimed = await subject.store.claim("w1", ["default", "stage"], 4, wait=5)
        await subject.store.finish([done(c) for c in claimed])
        ended |= {c.job_id for c in claimed}
        await asyncio.sleep(0)
    return ended


async def add(subject: Subject, jobs: int) -> set[int]:
    """Both streams get some."""
    specs = [JobSpec(kind="work", queue=["default", "stage"][n % 2]) for n in range(jobs)]
    return {(await subject.store.enqueue([spec]))[0].job_id for spec in specs}


async def eventually(subject: Subject, task: str, text: str) -> None:
    """Wait until the task fails with the text."""
    async with asyncio.timeout(PATIENCE):
        while text not in subject.plane.metrics.background.failing.get(task, ""):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def quiet(subject: Subject, server: NatsServer, settings: NatsSettings) -> None:
    """Wait until nothing fails, the outbox is empty, and no stream has a message."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await asyncio.sleep(0.05)
            if subject.plane.metrics.background.failing:
                continue
            if await subject.clock.fetch("SELECT FROM penstock.outbox"):
                continue
            try:
                lags = [await asyncio.to_thread(server.lag, s.name) for s in settings.streams]
            except (LookupError, OSError):
                continue
            if lags == [0, 0]:
                return


async def test_a_deleted_stream_is_made_again_and_nothing_is_lost(
    database: str, clock: Clock, own_server: NatsServer
) -> None:
    settings = nats_settings(own_server)
    async with running(database, clock, settings) as subject, asyncio.timeout(PATIENCE):
        before = await add(subject, JOBS)
        async with jetstream(own_server) as js:
            for stream in settings.streams:
                await js.delete_stream(stream.name)
        worker = asyncio.create_task(work(subject, 2 * JOBS))
        after = await add(subject, JOBS)
        assert await worker == before | after
        await quiet(subject, own_server, settings)


async def test_what_a_deleted_stream_had_is_announced_again(
    database: str, clock: Clock, own_server: NatsServer
) -> None:
    """Otherwise a scaler would see no work, and take away the workers that run it."""
    settings = nats_settings(own_server)
    async with running(database, clock, settings) as subject, asyncio.timeout(PATIENCE):
        await add(subject, 8)
        claimed = await subject.store.claim("w1", ["default"], 2)
        async with jetstream(own_server) as js:
            for stream in settings.streams:
                await js.purge_stream(stream.name)
        again = 0
        while again < 8:
            again += (await announcer(subject).run_once()).again
            await asyncio.sleep(0.05)
        while [own_server.lag(s.name) for s in settings.streams] != [4, 4]:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
        assert again == 8
        sample = subject.services.registry.get_sample_value
        assert sample("penstock_nats_announced_again_total", {"stream": "exec"}) == 4
        await subject.store.finish([done(c) for c in claimed])
        await work(subject, 6)
        await quiet(subject, own_server, settings)
        assert (await announcer(subject).run_once()).again == 0


async def test_a_killed_server_costs_latency_and_is_shown(
    database: str, clock: Clock, own_server: NatsServer, edge: Edge
) -> None:
    settings = nats_settings(own_server)
    async with running(database, clock, settings) as subject, asyncio.timeout(PATIENCE):
        with edge.showing(subject.services) as url:
            own_server.kill()
            jobs = await add(subject, JOBS)
            assert await work(subject, JOBS) == jobs
            await eventually(subject, "nats connection", "No NATS server can be reached")
            async with httpx2.AsyncClient(base_url=url) as client:
                ready = await client.get("/ready")
                assert ready.status_code == 200
                assert "PENSTOCK_NATS_URL" in ready.json()["failing"]["nats connection"]
                metrics = (await client.get("/metrics")).text
            assert "penstock_nats_connected 0.0" in metrics
            assert 'penstock_background_errors_total{task="nats connection"}' in metrics
            own_server.start()
            await quiet(subject, own_server, settings)


async def test_a_network_that_drops_everything_is_noticed(
    database: str, clock: Clock, own_server: NatsServer
) -> None:
    proxy = Proxy()
    await proxy.start()
    proxy.upstream("nats", own_server.port)
    settings = nats_settings(own_server, nats_url=f"nats://127.0.0.1:{proxy.port}")
    async with running(database, clock, settings) as subject, asyncio.timeout(PATIENCE):
        worker = asyncio.create_task(work(subject, 2 * JOBS))
        before = await add(subject, JOBS)
        proxy.drop(True)
        after = await add(subject, JOBS)
        assert await worker == before | after
        await eventually(subject, "nats connection", "did not answer in time")
        proxy.drop(False)
        proxy.cut()
        await quiet(subject, own_server, settings)
    await proxy.stop()


async def test_a_full_stream_leaves_announcements_in_the_database(
    database: str, clock: Clock, own_server: NatsServer
) -> None:
    settings = nats_settings(own_server)
    async with running(database, clock, settings) as subject, asyncio.timeout(PATIENCE):
        async with jetstream(own_server) as js:
            for stream in settings.streams:
                await js.update_stream(stream.config(), max_msgs=3)
        jobs = await add(subject, JOBS)
        await eventually(subject, "nats relay exec", "maximum messages exceeded")
        await announcer(subject).run_once()
        rows = subject.services.registry.get_sample_value("penstock_nats_outbox_rows")
        assert JOBS - 6 <= (rows or 0) <= JOBS
        assert await work(subject, JOBS) == jobs
        await quiet(subject, own_server, settings)


async def test_a_restarted_server_keeps_what_was_announced(
    database: str, clock: Clock, own_server: NatsServer
) -> None:
    settings = nats_settings(own_server)
    async with running(database, clock, settings) as subject, asyncio.timeout(PATIENCE):
        jobs = await add(subject, JOBS)
        own_server.kill()
        own_server.start()
        assert await work(subject, JOBS) == jobs
        await quiet(subject, own_server, settings)


async def test_what_was_lost_is_announced_again_once_by_two_planes(
    database: str, clock: Clock, own_server: NatsServer
) -> None:
    settings = nats_settings(own_server)
    async with (
        running(database, clock, settings) as here,
        running(database, clock, settings) as there,
        asyncio.timeout(PATIENCE),
    ):
        await add(here, 8)
        while await clock.fetch("SELECT FROM penstock.outbox"):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
        async with jetstream(own_server) as js:
            for stream in settings.streams:
                await js.purge_stream(stream.name)
        again = 0
        for _ in range(8):
            passes = await asyncio.gather(*(announcer(p).run_once() for p in (here, there)))
            again += sum(one.again for one in passes)
        assert again == 8
        for subject in (here, there):
            await announcer(subject).run_once()
            value = subject.services.registry.get_sample_value("penstock_nats_outbox_rows")
            assert value is not None
            assert value <= 8
