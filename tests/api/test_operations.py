from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from penstock.jobs.model import Beat
from tests.api.answers import enqueue, error

if TYPE_CHECKING:
    import httpx2

    from penstock.api.services import Services

NIGHTLY = {
    "cron": "0 3 * * *",
    "zone": "Europe/Vienna",
    "job": {"kind": "work", "payload": {"n": 1}, "priority": 7},
}


async def test_queues_show_what_waits_and_what_runs(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    for _ in range(3):
        await enqueue(operator)
    await enqueue(operator, kind="elsewhere", run_in=60)
    await services.store.claim("w1", ["default"], 1)
    answer = (await operator.get("/api/queues")).json()
    assert [(q["queue"], q["ready"], q["running"], q["scheduled"]) for q in answer["data"]] == [
        ("default", 2, 1, 0),
        ("other", 0, 0, 1),
    ]
    assert answer["data"][0]["oldest_wait"] >= 0
    assert answer["data"][1]["oldest_wait"] is None
    assert (await operator.get("/api/queues", params={"offset": 1})).json()["meta"]["total"] == 2


async def test_workers_are_listed_with_what_they_do(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    beat = Beat(worker="w1", session=uuid4(), queues=["default", "other"], slots=4, version="1.2.3")
    await services.store.renew(beat)
    [shown] = (await operator.get("/api/workers")).json()["data"]
    assert (shown["name"], shown["slots"], shown["running"]) == ("w1", 4, 0)
    assert (shown["queues"], shown["version"]) == (["default", "other"], "1.2.3")


async def test_the_tap_is_turned_off_and_on_again(operator: httpx2.AsyncClient) -> None:
    assert (await operator.get("/api/drain")).json()["data"]["draining"] is False
    shown = (await operator.put("/api/drain", json={"draining": True, "reason": "upgrade"})).json()[
        "data"
    ]
    assert (shown["draining"], shown["reason"], shown["changed_by"]) == (
        True,
        "upgrade",
        "operator",
    )
    error(await operator.post("/api/jobs", json={"kind": "work"}), 503, "DRAINING")
    assert (await operator.put("/api/drain", json={"draining": False})).json()["data"][
        "reason"
    ] == ""
    await enqueue(operator)
    for wrong in (
        {},
        {"draining": "yes"},
        {"draining": True, "reason": "x" * 501},
        {"draining": True, "reason": "\0"},
    ):
        error(await operator.put("/api/drain", json=wrong), 422, "VALIDATION_FAILED")


async def test_a_schedule_is_added_shown_changed_and_dropped(operator: httpx2.AsyncClient) -> None:
    schedule = (await operator.put("/api/schedules/nightly", json=NIGHTLY)).json()["data"]
    assert (schedule["cron"], schedule["zone"], schedule["enabled"], schedule["last_job"]) == (
        "0 3 * * *",
        "Europe/Vienna",
        True,
        None,
    )
    assert schedule["next_at"].endswith("Z")
    assert schedule["job"] == {"kind": "work", "payload": {"n": 1}, "priority": 7}
    assert (await operator.get("/api/schedules/nightly")).json()["data"] == schedule
    await operator.put("/api/schedules/nightly", json=NIGHTLY | {"enabled": False})
    [listed] = (await operator.get("/api/schedules")).json()["data"]
    assert (listed["name"], listed["enabled"]) == ("nightly", False)
    assert (await operator.delete("/api/schedules/nightly")).json()["data"] == {"name": "nightly"}
    error(await operator.get("/api/schedules/nightly"), 404, "RESOURCE_NOT_FOUND")
    error(await operator.delete("/api/schedules/nightly"), 404, "RESOURCE_NOT_FOUND")
    audit = (await operator.get("/api/audit", params={"subject": "schedule:nightly"})).json()[
        "data"
    ]
    assert [e["action"] for e in audit] == ["schedule.drop", "schedule.put", "schedule.put"]


async def test_a_schedule_that_cannot_work_is_refused_when_it_is_written(
    operator: httpx2.AsyncClient,
) -> None:
    for wrong in (
        {"cron": "every day"},
        {"cron": "0 0 30 2 *"},
        {"cron": "x" * 201},
        {"cron": "\0"},
        {"zone": "Mars/Olympus"},
        {"zone": "../../etc/passwd"},
        {"zone": "Europe"},
        {"zone": ""},
        {"job": {"kind": "nonsense"}},
        {"job": {"kind": "work", "payload": "\0"}},
        {"job": {"kind": "work", "priority": 11}},
        {"enabled": 1},
    ):
        error(
            await operator.put("/api/schedules/s", json=NIGHTLY | wrong), 422, "VALIDATION_FAILED"
        )
    error(await operator.put("/api/schedules/no%20spaces", json=NIGHTLY), 422, "VALIDATION_FAILED")
    too_large = {"job": {"kind": "work", "payload": "x" * (1024 * 1024)}}
    error(
        await operator.put("/api/schedules/s", json=NIGHTLY | too_large), 413, "PAYLOAD_TOO_LARGE"
    )
    assert (await operator.get("/api/schedules")).json()["data"] == []
