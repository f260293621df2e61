from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.api.requests import request_ids
from penstock.kit.errors import Draining
from tests.api.answers import error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from penstock.api.services import Services

JSON = {"Content-Type": "application/json"}


async def test_an_unknown_route_and_an_unknown_method_are_answered_in_the_envelope(
    operator: httpx2.AsyncClient,
) -> None:
    error(await operator.get("/nothing/here"), 404, "RESOURCE_NOT_FOUND")
    error(await operator.get("/api/jobs/"), 404, "RESOURCE_NOT_FOUND")
    refused = await operator.patch("/api/jobs")
    error(refused, 405, "METHOD_NOT_ALLOWED")
    assert refused.headers["allow"] == "GET, POST"
    assert (await operator.get("/api/internal/jobs/claim")).status_code == 405


async def test_a_field_that_is_wrong_is_named(operator: httpx2.AsyncClient) -> None:
    answer = await operator.post(
        "/api/jobs", json={"kind": "work", "priority": 10, "colour": "blue"}
    )
    details = error(answer, 422, "VALIDATION_FAILED")["details"]
    assert {f["field"] for f in details["fields"]} == {"body.priority", "body.colour"}
    missing = await operator.post("/api/jobs", json={})
    assert "body.kind" in str(error(missing, 422, "VALIDATION_FAILED")["message"])


async def test_what_was_sent_is_not_repeated_in_an_error(operator: httpx2.AsyncClient) -> None:
    answer = await operator.post("/api/jobs", json={"kind": ["hunter2"], "password": "hunter2"})
    assert answer.status_code == 422
    assert "hunter2" not in answer.text


NOT_JSON = [
    b"",
    b"{",
    b"\xff\xfe",
    b'{"kind": "work", "payload": NaN}',
    b'{"kind": "work", "payload": Infinity}',
    b'{"kind": "work", "payload": 1e999}',
    b'{"kind": "work", "payload": "\\ud800"}',
    b'{"kind": "work", "payload": "\\u0000"}',
    b'{"kind": "wo\\u0000rk"}',
    b'{"kind": "work", "lock_key": "a\\u0000b"}',
    b'{"kind": "work", "payload": 123456789012345678901234567890}',
    b'{"kind": "work", "payload": ' + b"9" * 5000 + b"}",
    b'{"kind": "work", "payload": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"kind": "work", "payload": ' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"kind": "work", "group_id": 9223372036854775808}',
    b'{"kind": "work", "group_id": -1}',
    b'{"kind": "work", "priority": true}',
    b'{"kind": "work", "priority": "5"}',
    b'{"kind": "work", "run_in": 1e300}',
    b'{"kind": "work", "run_in": -1}',
    b'["kind"]',
    b'"kind"',
    b"null",
]


async def test_no_body_breaks_anything(operator: httpx2.AsyncClient) -> None:
    for body in NOT_JSON:
        answer = await operator.post("/api/jobs", content=body, headers=JSON)
        assert answer.status_code == 422, (body[:80], answer.text)
        error(answer, 422, "VALIDATION_FAILED")


async def test_a_body_that_does_not_say_it_is_json_is_refused(operator: httpx2.AsyncClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = await operator.post(
            "/api/jobs", content=b'{"kind": "work"}', headers={"Content-Type": kind}
        )
        error(answer, 422, "VALIDATION_FAILED")


async def test_no_identifier_breaks_anything(operator: httpx2.AsyncClient) -> None:
    for job_id in (
        "abc",
        "-1",
        "0",
        "1.5",
        "9223372036854775808",
        "9" * 5000,
        "%00",
        "1%0A",
        "null",
        "１",
    ):
        answer = await operator.get(f"/api/jobs/{job_id}")
        assert answer.status_code in (404, 422), (job_id, answer.text)
    error(await operator.get("/api/jobs/9007199254740991"), 404, "RESOURCE_NOT_FOUND")


async def test_a_body_past_the_limit_is_refused_whether_it_says_so_or_not(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(services.max_body_bytes // 65536 + 1):
            yield b" " * 65536

    too_large = b" " * (services.max_body_bytes + 1)
    error(
        await operator.post("/api/jobs", content=too_large, headers=JSON), 413, "PAYLOAD_TOO_LARGE"
    )
    error(
        await operator.post("/api/jobs", content=unannounced(), headers=JSON),
        413,
        "PAYLOAD_TOO_LARGE",
    )
    fits = b'{"kind": "work"}'.ljust(services.max_body_bytes)
    assert (await operator.post("/api/jobs", content=fits, headers=JSON)).status_code == 201


async def test_what_nobody_foresaw_is_an_internal_error_without_internals(
    operator: httpx2.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the password is hunter2")

    class Log:
        def exception(self, event: str, **values: str) -> None:
            logged.append((event, values["path"]))

    logged: list[tuple[str, str]] = []
    monkeypatch.setattr(type(services.store), "job", broken)
    monkeypatch.setattr(request_ids, "log", Log())
    answer = await operator.get("/api/jobs/1")
    assert logged == [("request_failed", "/api/jobs/1")]
    error(answer, 500, "INTERNAL")
    assert "hunter2" not in answer.text
    assert "ZeroDivision" not in answer.text


async def test_an_error_that_passes_says_when_to_try_again(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    await services.store.drain(True, actor="ann")
    answer = await operator.post("/api/jobs", json={"kind": "work"})
    error(answer, 503, Draining.code)
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("shown", ["abc-123", "A" * 128])
async def test_the_callers_request_id_is_echoed(operator: httpx2.AsyncClient, shown: str) -> None:
    answer = await operator.get("/api/jobs", headers={"X-Request-ID": shown})
    assert answer.headers["x-request-id"] == shown
    assert answer.json()["meta"]["request_id"] == shown


@pytest.mark.parametrize(
    "shown", ["", "a b", "A" * 129, "<script>", "é".encode().decode("latin-1"), "a;b"]
)
async def test_a_request_id_that_is_not_harmless_is_replaced(
    operator: httpx2.AsyncClient, shown: str
) -> None:
    answer = await operator.get("/health", headers={"X-Request-ID": shown.encode("latin-1")})
    assert answer.headers["x-request-id"] != shown
    assert len(answer.headers["x-request-id"]) == 32


async def test_two_requests_have_two_ids(operator: httpx2.AsyncClient) -> None:
    first, second = [(await operator.get("/health")).headers["x-request-id"] for _ in range(2)]
    assert first != second
