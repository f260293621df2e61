"""Favorites over HTTP; a favorite is deleted with its resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.answers import error
from tests.api.running_api import Api, data_of, running_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

    from tests.api.control_plane import Edge

FAVORITES = "/api/favorites"


@pytest.fixture
async def api(database: str, edge: Edge, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(database, edge, tmp_path) as api:
        yield api


async def add(somebody: httpx2.AsyncClient, kind: str, number: int) -> Any:
    return data_of(
        await somebody.post(FAVORITES, json={"resource_type": kind, "resource_id": number}), 201
    )


async def names(somebody: httpx2.AsyncClient, **params: str) -> list[str]:
    return [
        favorite["resource_name"]
        for favorite in data_of(await somebody.get(FAVORITES, params=params))
    ]


async def test_everybody_keeps_their_own_of_every_kind_newest_first(api: Api) -> None:
    await add(api.ann, "mapping", await api.mapping("M"))
    await add(api.ann, "snapshot", await api.snapshot("S", owner="ben"))
    favorite = await add(api.ann, "instance", await api.instance("I"))
    assert (favorite["resource_type"], favorite["resource_name"]) == ("instance", "I")
    assert favorite["created_at"].endswith("Z")
    assert await names(api.ann) == ["I", "S", "M"]
    assert await names(api.ann, sort_order="asc") == ["M", "S", "I"]
    assert await names(api.ann, resource_type="snapshot") == ["S"]
    assert await names(api.ben) == []
    page = (await api.ann.get(FAVORITES, params={"limit": "1", "offset": "1"})).json()
    assert [favorite["resource_name"] for favorite in page["data"]] == ["S"]
    assert page["meta"]["total"] == 3


async def test_a_thing_is_a_favourite_once_and_must_be_there(api: Api) -> None:
    number = await api.mapping()
    await add(api.ann, "mapping", number)
    twice = await api.ann.post(FAVORITES, json={"resource_type": "mapping", "resource_id": number})
    error(twice, 409, "CONFLICT")
    await add(api.ben, "mapping", number)
    for kind, missing in (("mapping", number + 1), ("snapshot", number), ("instance", 2**63 - 1)):
        answer = await api.ann.post(FAVORITES, json={"resource_type": kind, "resource_id": missing})
        error(answer, 404, "RESOURCE_NOT_FOUND")


UNFIT: list[dict[str, Any]] = [
    {"resource_type": "pod", "resource_id": 1},
    {"resource_type": "mapping", "resource_id": 0},
    {"resource_type": "mapping", "resource_id": 2**63},
    {"resource_type": "mapping", "resource_id": "1"},
    {"resource_type": "mapping"},
]


async def test_what_is_no_thing_is_refused(api: Api) -> None:
    for body in UNFIT:
        error(await api.ann.post(FAVORITES, json=body), 422, "VALIDATION_FAILED")


async def test_dropping_twice_is_no_error_and_drops_nobody_elses(api: Api) -> None:
    number = await api.mapping()
    await add(api.ann, "mapping", number)
    await add(api.ben, "mapping", number)
    assert data_of(await api.ann.delete(f"{FAVORITES}/mapping/{number}")) == {"deleted": True}
    assert data_of(await api.ann.delete(f"{FAVORITES}/mapping/{number}")) == {"deleted": False}
    assert data_of(await api.ann.delete(f"{FAVORITES}/snapshot/{number}")) == {"deleted": False}
    assert await names(api.ben) == ["m"]
    error(await api.ann.delete(f"{FAVORITES}/pod/1"), 422, "VALIDATION_FAILED")
    error(await api.ann.delete(f"{FAVORITES}/mapping/{2**63}"), 422, "VALIDATION_FAILED")


async def test_a_thing_that_is_deleted_is_nobodys_favourite_and_a_new_name_is_shown(
    api: Api,
) -> None:
    things = {
        "mapping": await api.mapping("old"),
        "snapshot": await api.snapshot("old"),
        "instance": await api.instance("old"),
    }
    for kind, number in things.items():
        await add(api.ann, kind, number)
        await api.sql(f"UPDATE penstock.{kind} SET name = 'new'")
        assert await names(api.ann, resource_type=kind) == ["new"]
        await api.sql(f"DELETE FROM penstock.{kind}")
        assert await names(api.ann) == []
