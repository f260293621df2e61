"""The fast path gives the same responses as the routes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from penstock.api import direct
from penstock.api.jobs.jobs import JobSummary
from tests.api.control_plane import ADMIN, ANALYST, OPERATOR, SERVICE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import httpx2

CLAIM = {"worker": "w1", "queues": ["default"], "limit": 1}
BEAT = {"worker": "w1", "session": str(uuid4()), "queues": ["default"], "slots": 1, "version": "1"}
FENCE = {"job_id": 1, "attempt_id": str(uuid4())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    method: str = "GET"
    path: str
    token: str | None = OPERATOR
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    in_pieces: bool = False


def listing(query: str = "", **more: Any) -> Ask:
    return Ask(path=f"/api/jobs{query}", **more)


def verb(name: str, body: object, **more: Any) -> Ask:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"X-Component": "worker", "Content-Type": "application/json"}
    headers |= more.pop("headers", {})
    path = f"/api/internal/jobs/{name}"
    token = more.pop("token", SERVICE)
    return Ask(method="POST", path=path, token=token, headers=headers, content=content, **more)


def new_job(body: object, **more: Any) -> Ask:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | more.pop("headers", {})
    path = f"/api/jobs{more.pop('query', '')}"
    return Ask(method="POST", path=path, headers=headers, content=content, **more)


JOB = {"kind": "probe", "payload": {"n": 1}}
ASKED = [
    new_job(JOB),
    new_job(JOB, token=ANALYST),
    new_job(JOB, token=None),
    new_job(JOB, token="nobody's"),
    new_job(JOB, query="?colour=red"),
    new_job(JOB, query="?a=%00"),
    new_job(JOB, headers={"Content-Type": "text/plain"}),
    new_job(JOB, in_pieces=True),
    new_job(b"{"),
    new_job(JOB | {"colour": "red"}),
    new_job(JOB | {"priority": 10}),
    new_job(JOB | {"kind": "no-such-kind"}),
    new_job(JOB | {"lock_key": "lock-1"}),
    new_job(JOB | {"group_id": 99}),
    new_job(JOB | {"run_in": 5, "priority": 2}),
    listing(),
    listing("?limit=2&offset=1&sort_order=asc"),
    listing("?limit=1000"),
    listing("?limit=0"),
    listing("?limit="),
    listing("?limit=1&limit=2"),
    listing("?kind=probe&status=queued&created_after=2020-01-01T00:00:00Z"),
    listing("?kind="),
    listing("?kind=a%00b"),
    listing("?created_after=1700000000"),
    listing("?colour=red"),
    listing("?queue=%C3%A9"),
    listing("?offset=1&"),
    listing(token=ADMIN),
    listing(token=ANALYST),
    listing(token="nobody's"),
    listing(token=None),
    listing(token=None, headers={"Authorization": "Basic eDp5"}),
    listing(method="HEAD"),
    listing("/"),
    verb("claim", CLAIM),
    verb("claim", CLAIM | {"colour": "red"}),
    verb("claim", CLAIM | {"limit": 10**20}),
    verb("claim", CLAIM | {"limit": -1}),
    verb("claim", CLAIM | {"wait_seconds": 61}),
    verb("claim", CLAIM | {"queues": ["\x00"]}),
    verb("claim", b'{"worker": NaN}'),
    verb("claim", b"{"),
    verb("claim", b""),
    verb("claim", CLAIM, in_pieces=True),
    verb("claim", CLAIM, token=OPERATOR),
    verb("claim", CLAIM, token=None),
    verb("claim", CLAIM, headers={"X-Component": "wrapper"}),
    verb("claim", CLAIM, headers={"X-Component": "king"}),
    verb("claim", CLAIM, headers={"Content-Type": "text/plain"}),
    verb("claim", CLAIM, headers={"Content-Type": "application/json; charset=utf-8"}),
    verb("renew", BEAT),
    verb("renew", BEAT | {"held": [FENCE]}),
    verb("renew", BEAT | {"held": [{}]}),
    verb("finish", {"endings": []}),
    verb("finish", {"endings": [FENCE | {"status": "succeeded", "result": [1, None]}]}),
    verb("finish", {"endings": [FENCE | {"status": "lost"}]}),
    verb("exchange", CLAIM | {"endings": [FENCE | {"status": "failed", "error": "x"}]}),
]


async def answer(client: httpx2.AsyncClient, asked: Ask) -> tuple[int, dict[str, str], object]:
    async def pieces() -> AsyncIterator[bytes]:
        assert asked.content is not None
        middle = len(asked.content) // 2
        yield asked.content[:middle]
        yield asked.content[middle:]

    headers = dict(asked.headers)
    if asked.token is not None:
        headers["Authorization"] = f"Bearer {asked.token}"
    content = pieces() if asked.in_pieces else asked.content
    response = await client.request(asked.method, asked.path, headers=headers, content=content)
    document = json.loads(response.content) if response.content else None
    if isinstance(document, dict):
        document.get("meta", {}).pop("request_id", None)
    if asked.path == "/api/jobs" and response.status_code == 201:
        del document["data"]["id"]
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in ("date", "x-request-id")
    }
    if document is not None:
        headers.pop("content-length", None)
    return response.status_code, headers, document


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.method} {asked.path}")
async def test_both_ways_say_the_same(
    anyone: httpx2.AsyncClient, asked: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    for number in range(3):
        job = {"kind": "work", "queue": "far", "lock_key": f"lock-{number}"}
        assert (await anyone.post("/api/jobs", json=job, headers=headers)).status_code == 201
    short = await answer(anyone, asked)
    monkeypatch.setattr(direct, "_handler", lambda _scope: None)
    assert short == await answer(anyone, asked)


async def test_a_listed_job_is_as_its_model_says(
    operator: httpx2.AsyncClient, worker: httpx2.AsyncClient
) -> None:
    await operator.post("/api/jobs", json={"kind": "work"})
    body = {"worker": "w1", "queues": ["default"], "limit": 1}
    [claimed] = (await worker.post("/claim", json=body)).json()["data"]["jobs"]
    fence = {"job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"]}
    update = {"updates": [fence | {"progress": {"done": 1.5, "of": [None, "x"]}}]}
    assert (await worker.post("/progress", json=update)).json()["data"] == {"written": [True]}
    await operator.post("/api/jobs", json={"kind": "once"})
    for document in (await operator.get("/api/jobs")).json()["data"]:
        assert document.keys() == JobSummary.model_fields.keys()
        summary = JobSummary.model_validate(document | {"job_id": document["id"]})
        assert json.loads(summary.model_dump_json()) == document
