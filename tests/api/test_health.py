from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from penstock.jobs.model import JobSpec
from tests.api.answers import error
from tests.api.test_users import add, bearer, make_key

if TYPE_CHECKING:
    import httpx2
    import pytest

    from penstock.api.services import Services
    from penstock.kit.postgres import Cluster


async def test_readiness_names_a_background_task_that_fails_until_it_works_again(
    anyone: httpx2.AsyncClient, services: Services
) -> None:
    health = services.store.metrics.background
    health.failed("queue sweep", RuntimeError("no such database"))
    failing = (await anyone.get("/ready")).json()["failing"]
    assert failing == {"queue sweep": "RuntimeError: no such database"}
    health.works("queue sweep")
    assert (await anyone.get("/ready")).json()["failing"] == {}


def value(text: str, sample: str) -> float:
    match = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.MULTILINE)
    assert match, f"{sample} is not there"
    return float(match[1])


async def test_health_and_readiness_are_not_in_the_envelope(
    anyone: httpx2.AsyncClient, services: Services
) -> None:
    assert (await anyone.get("/health")).json() == {"status": "ok"}
    assert (await anyone.get("/ready")).json() == {
        "status": "ready",
        "draining": False,
        "failing": {},
    }
    await services.store.drain(True, actor="ann")
    assert (await anyone.get("/ready")).json() == {
        "status": "ready",
        "draining": True,
        "failing": {},
    }


async def test_metrics_show_the_queues_as_they_stand(
    anyone: httpx2.AsyncClient, services: Services
) -> None:
    services.store.metrics.know(["empty"])
    await services.store.enqueue([JobSpec(kind="work")] * 3)
    await services.store.claim("w1", ["default"], 1)
    answer = await anyone.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert value(answer.text, 'penstock_queue_depth{queue="default"}') == 2
    assert value(answer.text, 'penstock_running_jobs{queue="default"}') == 1
    assert value(answer.text, 'penstock_queue_depth{queue="empty"}') == 0
    assert value(answer.text, 'penstock_job_pickup_seconds_count{queue="default"}') == 1
    assert value(answer.text, "penstock_database_up") == 1


async def test_scrapers_share_a_look_at_the_queues(
    anyone: httpx2.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = type(services.browser).queues

    async def counted(self: object) -> object:
        nonlocal looks
        looks += 1
        return await look(self)

    monkeypatch.setattr(type(services.browser), "queues", counted)
    await asyncio.gather(*(anyone.get("/metrics") for _ in range(10)))
    assert looks == 1


async def test_without_a_database_everything_says_so_and_comes_back_by_itself(
    operator: httpx2.AsyncClient, services: Services, pg: Cluster
) -> None:
    await operator.post("/api/jobs", json={"kind": "work"})
    await add(operator, "ann")
    ann = bearer((await make_key(operator, "ann"))["key"])
    await pg.stop()
    try:
        error(await operator.get("/ready"), 503, "DATABASE_UNAVAILABLE")
        for call in (
            operator.get("/api/jobs"),
            operator.get("/api/jobs/1"),
            operator.post("/api/jobs", json={"kind": "work"}),
            operator.get("/api/queues"),
            operator.get("/api/users/ann", headers=ann),
            operator.post("/api/jobs", json={"kind": "work"}, headers={"Idempotency-Key": "1"}),
            operator.put("/api/drain", json={"draining": True}),
        ):
            answer = await call
            error(answer, 503, "DATABASE_UNAVAILABLE")
            assert answer.headers["retry-after"]
        assert (await operator.get("/health")).status_code == 200
        metrics = await operator.get("/metrics")
        assert metrics.status_code == 200
        assert value(metrics.text, "penstock_database_up") == 0
    finally:
        await pg.start()
    async with asyncio.timeout(30):
        while (await operator.get("/ready")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (await operator.get("/api/jobs/1")).status_code == 200
