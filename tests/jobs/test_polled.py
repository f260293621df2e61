"""Claimers that take only what was parked before, or only what never was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.jobs import queue_watch
from penstock.jobs.model import JobSpec, Parking

if TYPE_CHECKING:
    import pytest

    from penstock.api.services import Services
    from penstock.jobs.store import PgJobStore


async def park_one(store: PgJobStore, *, wake_in: float = 0) -> int:
    [job] = await store.claim("w", ["default"], 1)
    assert await store.park([Parking(fence=job.fence, state={"seen": True}, wake_in=wake_in)]) == [
        True
    ]
    return job.job_id


async def test_each_finds_its_own_and_everybody_else_finds_all(services: Services) -> None:
    store = services.store
    await store.enqueue([JobSpec(kind="work") for _ in range(3)])
    parked = await park_one(store)
    assert [c.job_id for c in await store.claim("w", ["default"], 10, polled=True)] == [parked]
    fresh = await store.claim("w", ["default"], 1, polled=False)
    assert [c.polls for c in fresh] == [0]
    await store.enqueue([JobSpec(kind="work")])
    parked = await park_one(store)
    assert await store.claim("w", ["default"], 10, polled=False)
    assert [c.job_id for c in await store.claim("w", ["default"], 10)] == [parked]


async def test_a_filtered_claim_hides_nothing_from_the_others(services: Services) -> None:
    """It skips older jobs, so it may not move the mark below which this process looks no more."""
    store = services.store
    await store.enqueue([JobSpec(kind="work") for _ in range(2)])
    [first] = await store.claim("w", ["default"], 1)
    await store.enqueue([JobSpec(kind="work")])
    await store.park([Parking(fence=first.fence, state=1, wake_in=0)])
    await store.claim("w", ["default"], 1, polled=False)
    await store.claim("w", ["default"], 1, polled=False)
    assert [c.job_id for c in await store.claim("w", ["default"], 10)] == [first.job_id]


async def test_one_who_waits_for_what_was_never_parked_keeps_no_other_from_being_woken(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_watch, "LOOK_SECONDS", 25.0)
    store = services.store
    await store.notifier.listening.wait()
    await store.enqueue([JobSpec(kind="work")])
    [job] = await store.claim("w", ["default"], 1)
    picky = [
        asyncio.create_task(store.claim("p", ["default"], 1, wait=20, polled=False))
        for _ in range(3)
    ]
    anybody = asyncio.create_task(store.claim("a", ["default"], 1, wait=20))
    await store.park([Parking(fence=job.fence, state=1, wake_in=0)])
    async with asyncio.timeout(15):
        assert [c.job_id for c in await anybody] == [job.job_id]
    await store.enqueue([JobSpec(kind="work")])
    done, _ = await asyncio.wait(picky, timeout=15, return_when=asyncio.FIRST_COMPLETED)
    assert sum(len(task.result()) for task in done) == 1
    for task in picky:
        task.cancel()
    await asyncio.gather(*picky, return_exceptions=True)
