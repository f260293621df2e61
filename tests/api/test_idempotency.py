"""Idempotency keys: a repeated write is done once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from penstock.accounts.retention import AnswerRetention
from penstock.api.requests import idempotency
from penstock.kit.db import Db
from penstock.kit.loop import LoopMetrics
from tests.api.answers import error
from tests.api.control_plane import ADMIN
from tests.api.test_users import add, bearer, make_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import httpx2

    from penstock.api.services import Services


@pytest.fixture
async def db(database: str) -> AsyncIterator[Db]:
    async with Db(database, size=1) as opened:
        yield opened


KEY = {"Idempotency-Key": "4b1c-1"}


async def count(operator: httpx2.AsyncClient) -> int:
    total: int = (await operator.get("/api/jobs")).json()["meta"]["total"]
    return total


async def test_the_same_key_and_body_get_the_first_answer(operator: httpx2.AsyncClient) -> None:
    first = await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    again = await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["content-type"] == first.headers["content-type"]
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (
        None,
        "true",
    )
    assert await count(operator) == 1


async def test_the_same_key_with_another_body_is_a_conflict(operator: httpx2.AsyncClient) -> None:
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    answer = await operator.post("/api/jobs", json={"kind": "work", "priority": 1}, headers=KEY)
    error(answer, 409, "CONFLICT")
    assert await count(operator) == 1


async def test_a_key_belongs_to_its_caller_its_method_and_its_path(
    operator: httpx2.AsyncClient,
) -> None:
    await add(operator, "ann", role="ops")
    ann = bearer((await make_key(operator, "ann"))["key"])
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | ann)
    assert await count(operator) == 2
    cancelled = [await operator.post(f"/api/jobs/{n}/cancel", headers=KEY) for n in (1, 2)]
    assert [answer.json()["data"]["id"] for answer in cancelled] == [1, 2]
    assert (
        await operator.put("/api/drain", json={"draining": False}, headers=KEY)
    ).status_code == 200


async def test_whoever_was_demoted_does_not_get_the_answer_of_their_earlier_role(
    operator: httpx2.AsyncClient,
) -> None:
    await add(operator, "ann", role="ops")
    ann = bearer((await make_key(operator, "ann"))["key"])
    cleo = {"username": "cleo"}
    first = await operator.post("/api/users", json=cleo, headers=KEY | ann)
    assert first.status_code == 201
    for role, message in (
        ("admin", "for the role ops; your role is now admin"),
        ("analyst", "The role analyst may not do this"),
    ):
        await operator.put("/api/users/ann/role", json={"role": role})
        again = await operator.post("/api/users", json=cleo, headers=KEY | ann)
        assert message in error(again, 403, "PERMISSION_DENIED")["message"]
        assert "idempotency-replayed" not in again.headers
    await operator.put("/api/users/ann/role", json={"role": "ops"})
    again = await operator.post("/api/users", json=cleo, headers=KEY | ann)
    assert (again.status_code, again.content) == (201, first.content)


async def test_a_deactivated_user_and_another_one_get_no_stored_answer(
    operator: httpx2.AsyncClient,
) -> None:
    for name in ("ann", "bob"):
        await add(operator, name, role="ops")
    ann, bob = [bearer((await make_key(operator, name))["key"]) for name in ("ann", "bob")]
    first = await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | ann)
    other = await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | bob)
    assert other.json()["data"]["id"] != first.json()["data"]["id"]
    await operator.delete("/api/users/ann")
    again = await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | ann)
    error(again, 401, "INVALID_TOKEN")


async def test_a_new_credential_of_the_same_user_is_the_same_caller(
    operator: httpx2.AsyncClient,
) -> None:
    await add(operator, "ann", role="ops")
    for _ in range(2):
        ann = bearer((await make_key(operator, "ann"))["key"])
        await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | ann)
    assert await count(operator) == 1


async def test_many_at_once_do_it_once(operator: httpx2.AsyncClient) -> None:
    async def one() -> httpx2.Response:
        return await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)

    answers = await asyncio.gather(*(one() for _ in range(10)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert await count(operator) == 1


async def test_a_refusal_that_says_something_of_the_request_is_kept(
    operator: httpx2.AsyncClient,
) -> None:
    missing = [await operator.post("/api/jobs/1/cancel", headers=KEY) for _ in range(2)]
    assert [answer.status_code for answer in missing] == [404, 404]
    assert missing[0].content == missing[1].content


async def test_what_did_nothing_can_be_tried_again_with_the_same_key(
    operator: httpx2.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    error(
        await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | bearer("wrong")),
        401,
        "INVALID_TOKEN",
    )
    error(
        await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY | bearer(ADMIN)),
        403,
        "PERMISSION_DENIED",
    )
    error(await operator.post("/api/jobs", json={"kind": 3}, headers=KEY), 422, "VALIDATION_FAILED")
    await services.store.drain(True, actor="ann")
    error(await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY), 503, "DRAINING")
    await services.store.drain(False, actor="ann")
    with monkeypatch.context() as patch:
        patch.setattr(type(services.store), "submit", _broken)
        error(await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY), 500, "INTERNAL")
    assert (await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)).status_code == 201


async def _broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError


async def test_an_answer_with_a_secret_is_not_written_down(
    operator: httpx2.AsyncClient, db: Db
) -> None:
    await add(operator, "ann")
    response = await operator.post("/api/users/ann/api-keys", headers=KEY)
    assert response.headers["cache-control"] == "no-store"
    refused = error(await operator.post("/api/users/ann/api-keys", headers=KEY), 409, "CONFLICT")
    assert "secret" in refused["message"]
    assert len((await operator.get("/api/users/ann/api-keys")).json()["data"]) == 1
    async with db.connection() as connection:
        rows: list[Any] = await connection.fetch("SELECT * FROM penstock_secret.idempotency")
    assert response.json()["key"] not in str(rows)
    assert KEY["Idempotency-Key"] not in str(rows)


async def test_a_day_later_a_key_is_as_good_as_new(
    operator: httpx2.AsyncClient, db: Db, move_time: Callable[[str], Awaitable[None]]
) -> None:
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    await move_time("23 hours 59 minutes")
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    assert await count(operator) == 1
    loop = AnswerRetention(db, every=3600, metrics=LoopMetrics(CollectorRegistry()))
    assert (await loop.run_once()).answers == 0
    await move_time("24 hours 1 minute")
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    assert await count(operator) == 2
    await move_time("50 hours")
    assert (await loop.run_once()).answers == 1


async def test_a_turn_that_was_left_lying_is_taken_over(
    operator: httpx2.AsyncClient, db: Db, move_time: Callable[[str], Awaitable[None]]
) -> None:
    """As if the process had died between the work and the note of it."""
    await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)
    async with db.connection() as connection:
        await connection.execute(
            "UPDATE penstock_secret.idempotency SET answered_at = NULL, status = NULL, body = NULL"
        )
    error(await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY), 409, "CONFLICT")
    await move_time("6 minutes")
    assert (await operator.post("/api/jobs", json={"kind": "work"}, headers=KEY)).status_code == 201


@pytest.mark.parametrize("key", ["", "a b", "a" * 256, "ü"])
async def test_a_key_that_is_none_is_refused(operator: httpx2.AsyncClient, key: str) -> None:
    answer = await operator.post(
        "/api/jobs", json={"kind": "work"}, headers={"Idempotency-Key": key.encode()}
    )
    error(answer, 422, "VALIDATION_FAILED")


async def test_a_key_at_its_longest_is_taken_and_reading_needs_none(
    operator: httpx2.AsyncClient,
) -> None:
    longest = {"Idempotency-Key": "a" * 255}
    assert (
        await operator.post("/api/jobs", json={"kind": "work"}, headers=longest)
    ).status_code == 201
    for _ in range(2):
        assert (await operator.get("/api/jobs", headers=longest)).json()["meta"]["total"] == 1


async def test_a_body_without_a_length_is_not_held_in_memory(operator: httpx2.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"kind": "work"}'

    json = {"Content-Type": "application/json"}
    error(
        await operator.post("/api/jobs", content=pieces(), headers=KEY | json),
        422,
        "VALIDATION_FAILED",
    )
    assert (await operator.post("/api/jobs", content=pieces(), headers=json)).status_code == 201


async def test_an_answer_is_written_down_up_to_its_limit_and_not_past_it(
    operator: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account could fill the database with long answers under ever new keys."""

    async def enqueue(key: str) -> httpx2.Response:
        return await operator.post(
            "/api/jobs", json={"kind": "work"}, headers={"Idempotency-Key": key}
        )

    length = len((await enqueue("a")).content)
    monkeypatch.setattr(idempotency, "MAX_ANSWER", length)
    assert (await enqueue("b")).status_code == 201
    assert (await enqueue("b")).headers["idempotency-replayed"] == "true"
    monkeypatch.setattr(idempotency, "MAX_ANSWER", length - 1)
    assert (await enqueue("c")).status_code == 201
    assert "too long" in error(await enqueue("c"), 409, "CONFLICT")["message"]
    assert await count(operator) == 3
