"""Assertions on API responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2


def error(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The error of a response, after checking its envelope."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "meta"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert body["meta"] == {"request_id": answer.headers["x-request-id"]}
    assert body["error"]["code"] == code
    assert body["error"]["message"]
    body_error: dict[str, Any] = body["error"]
    return body_error


async def enqueue(operator: httpx2.AsyncClient, **values: object) -> int:
    answer = await operator.post("/api/jobs", json={"kind": "work"} | values)
    assert answer.status_code == 201, answer.text
    job_id: int = answer.json()["data"]["id"]
    return job_id
