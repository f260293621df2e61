from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.api.answers import error
from tests.api.control_plane import ADMIN, ANALYST, OPERATOR, plane

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.api.services import Services
    from tests.api.control_plane import Edge

FIELDS = {
    "username",
    "email",
    "display_name",
    "role",
    "is_active",
    "created_at",
    "updated_at",
    "last_login_at",
    "role_changed_at",
    "role_changed_by",
}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def add(operator: httpx2.AsyncClient, username: str, **values: object) -> dict[str, Any]:
    answer = await operator.post("/api/users", json={"username": username} | values)
    assert answer.status_code == 201, answer.text
    user: dict[str, Any] = answer.json()
    return user


async def make_key(operator: httpx2.AsyncClient, username: str, **values: object) -> dict[str, Any]:
    answer = await operator.post(f"/api/users/{username}/api-keys", json=values)
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


async def test_a_user_is_a_flat_object_and_the_list_has_them_under_data(
    operator: httpx2.AsyncClient,
) -> None:
    user = await add(operator, "ann", email="ann@example.com", display_name="Ann Łukasz 安")
    assert set(user) == FIELDS
    assert (user["role"], user["is_active"], user["last_login_at"]) == ("analyst", True, None)
    assert user["created_at"].endswith("Z")
    assert (await operator.get("/api/users/ann")).json() == user
    assert (await operator.get("/api/users")).json() == {"data": [user]}


async def test_users_are_listed_newest_first_a_page_at_a_time(operator: httpx2.AsyncClient) -> None:
    for name in ("ann", "bob", "cid"):
        await add(operator, name)
    await operator.delete("/api/users/bob")

    async def names(**query: object) -> list[str]:
        answer = await operator.get("/api/users", params=query)
        assert answer.status_code == 200, answer.text
        return [user["username"] for user in answer.json()["data"]]

    assert await names() == ["cid", "bob", "ann"]
    assert await names(limit=1, offset=1) == ["bob"]
    assert await names(limit=100_000) == ["cid", "bob", "ann"]
    assert await names(is_active=True) == ["cid", "ann"]
    assert await names(is_active=False) == ["bob"]
    for wrong in ({"limit": 0}, {"offset": -1}, {"is_active": "perhaps"}, {"colour": "blue"}):
        error(await operator.get("/api/users", params=wrong), 422, "VALIDATION_FAILED")


async def test_a_name_is_taken_whatever_its_case(operator: httpx2.AsyncClient) -> None:
    await add(operator, "Ann")
    error(await operator.post("/api/users", json={"username": "ann"}), 409, "CONFLICT")
    assert (await operator.get("/api/users/aNN")).json()["username"] == "Ann"


@pytest.mark.parametrize(
    "username",
    [
        "",
        " ",
        "a b",
        "a/b",
        "..",
        ".hidden",
        "-x",
        "安",
        "a\0",
        "a" * 201,
        "operator",
        "Penstock",
        "bootstrap",
        "a'--",
    ],
)
async def test_a_name_that_could_be_no_folder_is_refused(
    operator: httpx2.AsyncClient, username: str
) -> None:
    error(await operator.post("/api/users", json={"username": username}), 422, "VALIDATION_FAILED")


async def test_a_name_at_its_longest_is_taken(operator: httpx2.AsyncClient) -> None:
    longest = "a" * 200
    assert (await add(operator, longest))["username"] == longest


async def test_a_user_is_changed_and_what_is_left_out_stays(operator: httpx2.AsyncClient) -> None:
    await add(operator, "ann", email="ann@example.com")
    changed = (await operator.put("/api/users/ann", json={"display_name": "Ann"})).json()
    assert (changed["email"], changed["display_name"]) == ("ann@example.com", "Ann")
    assert changed["updated_at"] > changed["created_at"]
    error(await operator.put("/api/users/nobody", json={}), 404, "RESOURCE_NOT_FOUND")
    for wrong in (
        {"email": "no"},
        {"is_active": 1},
        {"role": "ops"},
        {"display_name": ""},
        {"display_name": "a\0"},
    ):
        error(await operator.put("/api/users/ann", json=wrong), 422, "VALIDATION_FAILED")


async def test_a_role_is_stored_enforced_and_says_who_changed_it(
    operator: httpx2.AsyncClient,
) -> None:
    await add(operator, "ann")
    ann = bearer((await make_key(operator, "ann"))["key"])
    error(await operator.get("/api/users", headers=ann), 403, "PERMISSION_DENIED")
    changed = (await operator.put("/api/users/ann/role", json={"role": "admin"})).json()
    assert (changed["role"], changed["role_changed_by"]) == ("admin", "operator")
    assert changed["role_changed_at"] == changed["updated_at"]
    assert (await operator.get("/api/users", headers=ann)).status_code == 200
    await operator.put("/api/users/ann/role", json={"role": "analyst"})
    error(await operator.get("/api/users", headers=ann), 403, "PERMISSION_DENIED")
    error(
        await operator.put("/api/users/ann/role", json={"role": "king"}), 422, "VALIDATION_FAILED"
    )
    audit = (await operator.get("/api/audit", params={"subject": "user:ann"})).json()["data"]
    assert [entry["action"] for entry in audit] == [
        "user.role",
        "user.role",
        "api_key.create",
        "user.add",
    ]


async def test_nobody_reaches_a_role_above_their_own(operator: httpx2.AsyncClient) -> None:
    await add(operator, "boss", role="ops")
    await add(operator, "ann")
    admin = bearer(ADMIN)
    for method, path, body in (
        ("POST", "/api/users", {"username": "x", "role": "ops"}),
        ("PUT", "/api/users/ann/role", {"role": "ops"}),
        ("PUT", "/api/users/boss/role", {"role": "analyst"}),
        ("PUT", "/api/users/boss", {"email": "me@example.com"}),
        ("DELETE", "/api/users/boss", None),
        ("POST", "/api/users/boss/api-keys", {}),
        ("DELETE", "/api/users/boss/api-keys", None),
    ):
        error(
            await operator.request(method, path, json=body, headers=admin), 403, "PERMISSION_DENIED"
        )
    assert (await operator.get("/api/users/boss")).json()["role"] == "ops"


async def test_a_deactivated_user_is_not_let_in_until_they_are_active_again(
    operator: httpx2.AsyncClient,
) -> None:
    await add(operator, "ann")
    ann = bearer((await make_key(operator, "ann"))["key"])
    assert (await operator.delete("/api/users/ann")).json()["is_active"] is False
    assert (await operator.delete("/api/users/ann")).json()["is_active"] is False
    error(await operator.get("/api/users/ann", headers=ann), 401, "INVALID_TOKEN")
    await operator.put("/api/users/ann", json={"is_active": True})
    assert (await operator.get("/api/users/ann", headers=ann)).status_code == 200


async def test_a_login_is_noted(operator: httpx2.AsyncClient) -> None:
    await add(operator, "ann")
    ann = bearer((await make_key(operator, "ann"))["key"])
    await operator.get("/api/users/ann", headers=ann)
    shown = (await operator.get("/api/users/ann", headers=ann)).json()
    assert shown["last_login_at"] > shown["created_at"]
    [key] = (await operator.get("/api/users/ann/api-keys")).json()["data"]
    assert key["last_used_at"] >= shown["last_login_at"][:19]


async def test_a_key_is_shown_once_and_works_until_it_is_revoked(
    operator: httpx2.AsyncClient, services: Services
) -> None:
    await add(operator, "ann")
    new_key = await make_key(operator, "ann", name="notebook", expires_in_days=1)
    assert new_key["key"].startswith("pst_")
    assert len(new_key["key"]) > 40
    assert new_key["key"].startswith(new_key["prefix"])
    ann = bearer(new_key["key"])
    listed = (await operator.get("/api/users/ann/api-keys", headers=ann)).json()["data"]
    assert [key["name"] for key in listed] == ["notebook"]
    assert new_key["key"] not in str(listed)
    error(
        await operator.get("/api/users/ann", headers=bearer(new_key["key"] + "x")),
        401,
        "INVALID_TOKEN",
    )
    assert (await operator.delete(f"/api/users/ann/api-keys/{new_key['id']}")).json() == {
        "revoked": 1
    }
    assert (await operator.delete(f"/api/users/ann/api-keys/{new_key['id']}")).json() == {
        "revoked": 0
    }
    error(await operator.get("/api/users/ann", headers=ann), 401, "INVALID_TOKEN")
    await add(operator, "bob")
    error(
        await operator.delete(f"/api/users/bob/api-keys/{new_key['id']}"), 404, "RESOURCE_NOT_FOUND"
    )


async def test_an_expired_key_opens_nothing(
    operator: httpx2.AsyncClient, move_time: Callable[[str], Any]
) -> None:
    await add(operator, "ann")
    ann = bearer((await make_key(operator, "ann", expires_in_days=1))["key"])
    await move_time("23 hours")
    assert (await operator.get("/api/users/ann", headers=ann)).status_code == 200
    await move_time("25 hours")
    error(await operator.get("/api/users/ann", headers=ann), 401, "INVALID_TOKEN")


async def test_a_key_lives_at_most_a_year(operator: httpx2.AsyncClient) -> None:
    await add(operator, "ann")
    await make_key(operator, "ann", expires_in_days=366)
    for wrong in (0, 367, -1, "1", 1.5):
        answer = await operator.post("/api/users/ann/api-keys", json={"expires_in_days": wrong})
        error(answer, 422, "VALIDATION_FAILED")


async def test_a_user_has_at_most_fifty_keys_that_work(operator: httpx2.AsyncClient) -> None:
    await add(operator, "ann")
    for _ in range(50):
        await make_key(operator, "ann")
    error(await operator.post("/api/users/ann/api-keys"), 409, "CONFLICT")
    assert (await operator.delete("/api/users/ann/api-keys")).json() == {"revoked": 50}
    await make_key(operator, "ann")


async def test_an_analyst_sees_and_keys_only_themselves(operator: httpx2.AsyncClient) -> None:
    await add(operator, "analyst")
    await add(operator, "bob")
    me = bearer(ANALYST)
    assert (await operator.get("/api/users/analyst", headers=me)).status_code == 200
    assert (await operator.post("/api/users/analyst/api-keys", headers=me)).status_code == 201
    error(await operator.get("/api/users/bob", headers=me), 403, "PERMISSION_DENIED")
    error(await operator.post("/api/users/bob/api-keys", headers=me), 403, "PERMISSION_DENIED")


async def test_the_first_user_is_made_once_even_if_many_try(operator: httpx2.AsyncClient) -> None:
    async def one(number: int) -> httpx2.Response:
        return await operator.post("/api/users/bootstrap", json={"username": f"user{number}"})

    answers = await asyncio.gather(*(one(number) for number in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    first_user = next(answer.json() for answer in answers if answer.status_code == 201)
    assert set(first_user) == FIELDS | {"api_key"}
    assert first_user["role"] == "ops"
    listed = await operator.get("/api/users", headers=bearer(first_user["api_key"]))
    assert [user["username"] for user in listed.json()["data"]] == [first_user["username"]]


async def test_strangers_make_no_first_user(operator: httpx2.AsyncClient) -> None:
    for headers, status, code in (
        ({"Authorization": ""}, 401, "AUTHENTICATION_REQUIRED"),
        (bearer("wrong"), 401, "INVALID_TOKEN"),
        (bearer(ADMIN), 403, "PERMISSION_DENIED"),
    ):
        error(
            await operator.post("/api/users/bootstrap", json={"username": "x"}, headers=headers),
            status,
            code,
        )


async def test_also_on_a_machine_of_ones_own_the_first_user_needs_the_operator_token(
    database: str, edge: Edge
) -> None:
    async with plane(database, local_only=True) as services:
        with edge.showing(services) as url:
            async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
                ann = {"username": "ann"}
                error(
                    await client.post("/api/users/bootstrap", json=ann),
                    401,
                    "AUTHENTICATION_REQUIRED",
                )
                response = await client.post(
                    "/api/users/bootstrap", json=ann, headers=bearer(OPERATOR)
                )
                assert response.status_code == 201


async def test_the_word_of_a_route_is_nobodys_name(operator: httpx2.AsyncClient) -> None:
    for method in ("GET", "PUT", "DELETE"):
        refused = await operator.request(method, "/api/users/bootstrap")
        error(refused, 405, "METHOD_NOT_ALLOWED")
        assert refused.headers["allow"] == "POST"
