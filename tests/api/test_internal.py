"""Long polls over HTTP: callers that disconnect, and a server that stops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from penstock.jobs import queue_watch
from penstock.jobs.http_store import HttpJobStore
from penstock.jobs.model import JobSpec, Status
from penstock.jobs.store import PgJobStore
from tests.api.answers import error
from tests.api.control_plane import SERVICE
from tests.jobs.conformance import DONE, done

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from penstock.api.services import Services
    from penstock.jobs.model import Claimed
    from penstock.jobs.notifier import Line

CLAIM = {"worker": "w1", "queues": ["default"], "limit": 1, "wait_seconds": 20}


@pytest.fixture
async def store(url: str) -> AsyncIterator[HttpJobStore]:
    async with HttpJobStore(url, SERVICE) as store:
        yield store


async def waiting(services: Services, callers: int) -> None:
    """Until so many callers wait for the bell."""
    async with asyncio.timeout(10):
        while services.store.notifier.waiting != callers:  # noqa: ASYNC110 - nobody rings when somebody begins to wait
            await asyncio.sleep(0.005)


async def test_nothing_is_claimed_for_a_caller_who_left_while_waiting(
    worker: httpx2.AsyncClient, services: Services
) -> None:
    poll = asyncio.create_task(worker.post("/claim", json=CLAIM))
    await waiting(services, 1)
    poll.cancel()
    await waiting(services, 0)
    [added] = await services.store.enqueue([JobSpec(kind="work")])
    assert (await services.store.job(added.job_id)).attempts == []
    assert (await worker.post("/claim", json=CLAIM)).json()["data"]["jobs"][0][
        "job_id"
    ] == added.job_id


async def test_who_still_waits_gets_the_job_that_a_leaver_was_rung_for(
    store: HttpJobStore,
    worker: httpx2.AsyncClient,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 25.0)
    leavers = [asyncio.create_task(worker.post("/claim", json=CLAIM)) for _ in range(5)]
    await waiting(services, 5)
    stayer = asyncio.create_task(store.claim("stayer", ["default"], 1, wait=20))
    await waiting(services, 6)
    for leaver in leavers:
        leaver.cancel()
    [added] = await services.store.enqueue([JobSpec(kind="work")])
    async with asyncio.timeout(15):
        assert [c.job_id for c in await stayer] == [added.job_id]
    assert len((await services.store.job(added.job_id)).attempts) == 1


async def test_a_claim_that_was_under_way_when_its_caller_left_is_handed_back_uncounted(
    worker: httpx2.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = asyncio.Event()
    claim = PgJobStore.claim

    async def slow_claim(self: PgJobStore, *args: Any, line: Line, **values: Any) -> list[Claimed]:
        jobs = await claim(self, *args, line=line, **values)
        claimed.set()
        while not line.dead:  # noqa: ASYNC110 - a line has no event
            await asyncio.sleep(0.005)
        return jobs

    [added] = await services.store.enqueue([JobSpec(kind="work", max_attempts=1)])
    monkeypatch.setattr(PgJobStore, "claim", slow_claim)
    poll = asyncio.create_task(worker.post("/claim", json=CLAIM))
    await claimed.wait()
    poll.cancel()
    async with asyncio.timeout(10):
        while (await services.store.job(added.job_id)).status is not Status.READY:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    monkeypatch.undo()
    [again] = await services.store.claim("w2", ["default"], 1)
    assert (again.job_id, again.attempt_no) == (added.job_id, 1)
    history = (await services.store.job(added.job_id)).attempts
    assert [a.how for a in history] == ["released", "running"]


async def test_closing_the_polls_answers_everybody_at_once_with_nothing(
    store: HttpJobStore, services: Services
) -> None:
    polls = [asyncio.create_task(store.claim(f"w{n}", ["default"], 1, wait=20)) for n in range(5)]
    await waiting(services, 5)
    services.polls.close()
    async with asyncio.timeout(15):
        assert await asyncio.gather(*polls) == [[]] * 5
        assert await store.claim("late", ["default"], 1, wait=20) == []


async def test_an_exchange_of_a_closing_server_still_writes_its_ends(
    store: HttpJobStore, services: Services
) -> None:
    await services.store.enqueue([JobSpec(kind="work")])
    [claimed] = await store.claim("w1", ["default"], 1)
    services.polls.close()
    exchanged = await store.exchange([done(claimed)], "w1", ["default"], 1, wait=20)
    assert (list(exchanged.verdicts), list(exchanged.claimed)) == ([DONE], [])


async def test_a_stale_attempt_is_an_answer_and_not_an_error(worker: httpx2.AsyncClient) -> None:
    fence = {"job_id": 7, "attempt_id": "00000000-0000-0000-0000-000000000001"}
    answer = await worker.post("/finish", json={"endings": [fence | {"status": "succeeded"}]})
    assert (answer.status_code, answer.json()) == (200, {"data": {"verdicts": ["stale"]}})


async def test_a_wrong_item_of_a_batch_is_named_by_its_place(worker: httpx2.AsyncClient) -> None:
    fence = {"job_id": 7, "attempt_id": "00000000-0000-0000-0000-000000000001"}
    body = {"endings": [fence | {"status": "succeeded"}, fence | {"status": "undecided"}]}
    message = error(await worker.post("/finish", json=body), 422, "VALIDATION_FAILED")["message"]
    assert "body.endings.1" in message
    assert "undecided" not in message
