from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg

from penstock.jobs.model import Ending, Failed, GroupSpec, JobSpec, Succeeded
from tests.api.answers import enqueue, error

if TYPE_CHECKING:
    import httpx2

    from penstock.api.services import Services


async def end(services: Services, outcome: Succeeded | Failed) -> int:
    [claimed] = await services.store.claim("w1", ["default"], 1)
    await services.store.finish([Ending(fence=claimed.fence, outcome=outcome)])
    return claimed.job_id


async def test_a_job_is_shown_with_its_attempts_its_fences_and_its_lock(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    job_id = await enqueue(operator, payload={"table": "a"}, lock_key="table:a", priority=2)
    [claimed] = await services.store.claim("w1", ["default"], 1)
    shown = (await operator.get(f"/api/jobs/{job_id}")).json()["data"]
    assert (shown["status"], shown["maintenance_status"]) == ("running", None)
    assert shown["payload"] == {"table": "a"}
    assert shown["created_by"] == "operator"
    assert shown["lock"] == {"key": "table:a", "held": True}
    assert [a["attempt_id"] for a in shown["attempts"]] == [str(claimed.fence.attempt_id)]
    assert shown["created_at"].endswith("Z")
    await services.store.finish(
        [Ending(fence=claimed.fence, outcome=Succeeded(result={"rows": 1}))]
    )
    shown = (await operator.get(f"/api/jobs/{job_id}")).json()["data"]
    assert (shown["status"], shown["result"], shown["lock"]["held"]) == (
        "succeeded",
        {"rows": 1},
        False,
    )


async def test_lists_filter_page_and_count(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    ids = [await enqueue(operator, payload={"n": n}) for n in range(5)]
    other = await enqueue(operator, kind="elsewhere")
    await end(services, Succeeded(result=1))
    await end(services, Failed(error={"code": "BAD"}))
    await services.store.claim("w1", ["default"], 1)

    async def listed(**query: object) -> list[int]:
        answer = await operator.get("/api/jobs", params=query)
        assert answer.status_code == 200, answer.text
        return [job["id"] for job in answer.json()["data"]]

    assert await listed() == [other, *reversed(ids)]
    assert await listed(sort_order="asc") == [*ids, other]
    assert await listed(status="succeeded") == [ids[0]]
    assert await listed(status="failed") == [ids[1]]
    assert await listed(status="running") == [ids[2]]
    assert await listed(status="queued") == [other, ids[4], ids[3]]
    assert await listed(status="pending") == await listed(status="queued")
    assert await listed(status="completed") == [ids[0]]
    assert await listed(kind="elsewhere") == [other]
    assert await listed(queue="other") == [other]
    assert await listed(created_after="2999-01-01T00:00:00Z") == []
    assert await listed(created_before="2000-01-01") == []
    assert await listed(offset=1, limit=2) == [ids[4], ids[3]]
    answer = (await operator.get("/api/jobs", params={"limit": 2, "status": "queued"})).json()
    assert answer["meta"] | {"request_id": ""} == {
        "total": 3,
        "offset": 0,
        "limit": 2,
        "request_id": "",
        "total_is_estimate": False,
    }
    assert "payload" not in answer["data"][0]


async def test_a_group_can_be_listed(operator: httpx2.AsyncClient, services: Services) -> None:
    group_id, members = await services.store.open_group(
        GroupSpec(name="g"), [JobSpec(kind="work")] * 2
    )
    await enqueue(operator)
    answer = (
        await operator.get("/api/jobs", params={"group_id": group_id, "sort_order": "asc"})
    ).json()
    assert [j["id"] for j in answer["data"]] == [m.job_id for m in members]


async def test_pages_have_bounds(operator: httpx2.AsyncClient) -> None:
    assert (await operator.get("/api/jobs", params={"limit": 5000})).json()["meta"]["limit"] == 100
    for query in (
        {"limit": 0},
        {"limit": -1},
        {"limit": "many"},
        {"offset": -1},
        {"offset": 1_000_001},
        {"offset": 10**30},
        {"sort_by": "payload"},
        {"sort_order": "sideways"},
        {"status": "unheard"},
        {"kind": "nul\x00"},
        {"queue": "no spaces"},
        {"group_id": 2**63},
        {"created_after": "yesterday"},
        {"created_after": "0001-01-01T00:00:00+14:00"},
        {"created_before": "9999-12-31T23:59:59-14:00"},
        {"colour": "blue"},
    ):
        error(await operator.get("/api/jobs", params=query), 422, "VALIDATION_FAILED")
    assert (await operator.get("/api/jobs", params={"offset": 1_000_000})).json()["data"] == []


async def test_an_unknown_kind_is_refused_with_the_known_ones(operator: httpx2.AsyncClient) -> None:
    answer = await operator.post("/api/jobs", json={"kind": "nonsense"})
    details = error(answer, 422, "VALIDATION_FAILED")["details"]
    assert "work" in details["hint"]


async def test_a_payload_that_is_too_large_is_refused(operator: httpx2.AsyncClient) -> None:
    answer = await operator.post("/api/jobs", json={"kind": "work", "payload": "x" * (1024 * 1024)})
    error(answer, 413, "PAYLOAD_TOO_LARGE")


async def test_a_lock_that_is_held_is_refused_with_its_holder(operator: httpx2.AsyncClient) -> None:
    holder = await enqueue(operator, lock_key="t")
    details = error(
        await operator.post("/api/jobs", json={"kind": "work", "lock_key": "t"}),
        409,
        "RESOURCE_LOCKED",
    )["details"]
    assert (details["holder_job_id"], details["holder_name"], details["lock_key"]) == (
        holder,
        "operator",
        "t",
    )


async def test_a_unique_key_answers_with_the_job_that_is_there(
    operator: httpx2.AsyncClient,
) -> None:
    job_id = await enqueue(operator, unique_key="only")
    again = await operator.post("/api/jobs", json={"kind": "work", "unique_key": "only"})
    assert (again.status_code, again.json()["data"]) == (200, {"id": job_id, "created": False})


async def test_a_cancel_is_final_and_may_be_repeated(operator: httpx2.AsyncClient) -> None:
    job_id = await enqueue(operator)
    first = await operator.post(f"/api/jobs/{job_id}/cancel", json={"reason": "no need"})
    assert first.json()["data"] == {"id": job_id, "status": "cancelled", "newly": True}
    again = await operator.post(f"/api/jobs/{job_id}/cancel")
    assert again.json()["data"]["newly"] is False
    shown = (await operator.get(f"/api/jobs/{job_id}")).json()["data"]
    assert (shown["status"], shown["error"]["message"]) == ("cancelled", "no need")


async def test_what_has_succeeded_can_neither_be_cancelled_nor_done_again(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    await enqueue(operator)
    job_id = await end(services, Succeeded())
    error(await operator.post(f"/api/jobs/{job_id}/cancel"), 409, "INVALID_STATE")
    error(await operator.post(f"/api/jobs/{job_id}/retry"), 409, "INVALID_STATE")
    error(await operator.post("/api/jobs/999/retry"), 404, "RESOURCE_NOT_FOUND")


async def test_doing_a_job_again_makes_a_new_one_and_leaves_the_old_end_alone(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    await enqueue(
        operator,
        payload={"n": 1},
        priority=3,
        lock_key="t",
        unique_key="only",
        max_attempts=7,
        timeout=90,
    )
    old = await end(services, Failed(error={"code": "BAD"}))
    answer = await operator.post(f"/api/jobs/{old}/retry")
    assert answer.status_code == 201
    new = answer.json()["data"]["id"]
    assert new != old
    before, after = [(await operator.get(f"/api/jobs/{i}")).json()["data"] for i in (old, new)]
    assert (before["status"], before["error"]) == ("failed", {"code": "BAD"})
    assert (after["status"], after["retry_of"], after["attempt_no"]) == ("queued", old, 0)
    for name in ("kind", "queue", "payload", "priority", "lock_key", "max_attempts"):
        assert after[name] == before[name]
    error(await operator.post(f"/api/jobs/{new}/retry"), 409, "INVALID_STATE")
    again = await operator.post(f"/api/jobs/{old}/retry")
    assert (again.status_code, again.json()["data"]) == (200, {"id": new, "created": False})


async def test_doing_a_job_again_minds_the_lock_and_the_drain(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    await enqueue(operator, lock_key="t")
    old = await end(services, Failed(error="x"))
    holder = await enqueue(operator, lock_key="t")
    error(await operator.post(f"/api/jobs/{old}/retry"), 409, "RESOURCE_LOCKED")
    await operator.post(f"/api/jobs/{holder}/cancel")
    await services.store.drain(True, actor="ann")
    error(await operator.post(f"/api/jobs/{old}/retry"), 503, "DRAINING")


async def test_enqueues_of_people_share_commits_and_each_is_audited(
    services: Services, database: str
) -> None:
    people = [f"person-{number % 7}" for number in range(70)]
    spec = JobSpec(kind="work")
    added = await asyncio.gather(*(services.store.submit(spec, actor=name) for name in people))
    connection = await asyncpg.connect(database)
    rows = await connection.fetch("SELECT actor, subject, detail, xmin::text FROM penstock.audit")
    authors = await connection.fetch("SELECT job_id, created_by FROM penstock.job")
    await connection.close()
    by_job = {f"job:{job.job_id}": name for job, name in zip(added, people, strict=True)}
    assert {row["subject"]: row["actor"] for row in rows} == by_job
    assert {f"job:{row['job_id']}": row["created_by"] for row in authors} == by_job
    assert {row["detail"] for row in rows} == {'{"kind": "work"}'}
    assert len(rows) == len(people)
    assert len({row["xmin"] for row in rows}) < len(people) / 10


async def test_what_people_do_is_written_down(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    job_id = await enqueue(operator)
    await operator.post(f"/api/jobs/{job_id}/cancel", json={"reason": "no need"})
    new = (await operator.post(f"/api/jobs/{job_id}/retry")).json()["data"]["id"]
    answer = (await operator.get("/api/audit", params={"sort_order": "asc"})).json()
    assert answer["meta"]["total"] == 3
    assert [(e["actor"], e["action"], e["subject"], e["detail"]) for e in answer["data"]] == [
        ("operator", "job.enqueue", f"job:{job_id}", {"kind": "work"}),
        ("operator", "job.cancel", f"job:{job_id}", {"reason": "no need"}),
        ("operator", "job.retry", f"job:{job_id}", {"job_id": new}),
    ]
    of_one = (
        await operator.get("/api/audit", params={"subject": f"job:{job_id}", "limit": 1})
    ).json()
    assert (of_one["meta"]["total"], len(of_one["data"])) == (3, 1)
