"""What tests ask of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2


def error(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The error of an answer, after a look at its envelope."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "meta"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert body["meta"] == {"request_id": answer.headers["x-request-id"]}
    assert body["error"]["code"] == code
    assert body["error"]["message"]
    found: dict[str, Any] = body["error"]
    return found


async def enqueue(operator: httpx2.AsyncClient, **values: object) -> int:
    answer = await operator.post("/api/jobs", json={"kind": "work"} | values)
    assert answer.status_code == 201, answer.text
    job_id: int = answer.json()["data"]["id"]
    return job_id
